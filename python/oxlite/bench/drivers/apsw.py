"""apsw, the other complete Python wrapper around SQLite."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, cast

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.scenarios.axes import HANDLERS
from oxlite.bench.scenarios.scenario import Scenario

CACHED_STATEMENTS = 100
"""Its own default."""


class Apsw(Driver):
    """``apsw``."""

    name = "apsw"
    title = "apsw"
    module = "apsw"
    install = "pip install apsw"
    refused_busy: ClassVar[Mapping[str, str]] = {
        "fair": "apsw's busy handler is a Python callable; the one measured here is native",
        "gate": "the gate is Oxlite's; apsw has no queue for locks",
        **dict.fromkeys(HANDLERS, "the lab's handlers are measured on oxlite alone"),
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
        import apsw

        # Any thread may use a connection of apsw's.
        connection = apsw.Connection(
            str(path), statementcachesize=CACHED_STATEMENTS if prepared else 0
        )
        if scenario.get("busy") != "none":
            connection.set_busy_timeout(round(timeout_seconds * 1000))
        # Its cursor's ``fetchone`` and ``fetchall`` are those of the protocol.
        return cast(Connection, connection)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        import apsw

        return {"driver": apsw.apsw_version(), "sqlite": apsw.sqlite_lib_version()}
