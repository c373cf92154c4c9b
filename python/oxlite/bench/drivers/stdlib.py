"""The standard library's ``sqlite3``, with whatever SQLite Python was built on, and aiosqlite.

aiosqlite is the same in a thread of its own, for asyncio.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from oxlite.bench.drivers.base import Connection, Driver, distribution_version
from oxlite.bench.scenarios.axes import HANDLERS
from oxlite.bench.scenarios.scenario import Scenario

CACHED_STATEMENTS = 128
"""Its own default, on every version of Python."""


class StandardLibrary(Driver):
    """``sqlite3`` of the running Python."""

    name = "stdlib"
    title = "the standard library's sqlite3"
    module = "_sqlite3"
    install = "a Python built with SQLite"
    refused_busy: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("fair", *HANDLERS),
            "the standard library lets nobody set a busy handler, only SQLite's own timeout",
        ),
        "gate": "the gate is Oxlite's; the standard library has no queue for locks",
    }

    def open(
        self,
        path: Path,
        scenario: Scenario,
        timeout_seconds: float,
        *,
        shared: bool = False,
        prepared: bool = True,
    ) -> Connection:
        """See the base class."""
        import sqlite3

        wait_seconds = 0.0 if scenario.get("busy") == "none" else timeout_seconds
        return sqlite3.connect(
            path,
            timeout=wait_seconds,
            isolation_level=None,
            check_same_thread=not shared,
            cached_statements=CACHED_STATEMENTS if prepared else 0,
        )

    def versions(self) -> dict[str, str]:
        """See the base class."""
        import platform
        import sqlite3

        return {"driver": platform.python_version(), "sqlite": sqlite3.sqlite_version}


class Aiosqlite(StandardLibrary):
    """``aiosqlite``; its connections are opened as the standard library's are."""

    name = "aiosqlite"
    title = "aiosqlite"
    module = "aiosqlite"
    install = "pip install aiosqlite"

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class."""
        if "tasks" not in scenario:
            return "aiosqlite is for asyncio: oxlite bench async measures it"
        if scenario.get("call") == "database":
            return "aiosqlite has connections, no database of readers and a writer"
        return super().refusal(scenario)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {**super().versions(), "driver": distribution_version("aiosqlite")}
