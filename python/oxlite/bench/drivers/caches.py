"""Peers that keep keys and values: diskcache, and what Django has of its own.

They are for the workload ``cache`` alone, and know no SQL; a path is the directory of their files.
Redis, which is measured as a cache too, is among :mod:`oxlite.bench.drivers.messages`.
"""

import io
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, cast

from oxlite.bench.drivers.base import Connection, Driver, distribution_version
from oxlite.bench.scenarios.scenario import Scenario

DISKCACHE_SETTINGS = (
    "eviction_policy", "size_limit", "disk_min_file_size", "sqlite_journal_mode",
    "sqlite_synchronous", "sqlite_mmap_size",
)  # fmt: skip


class _Cache(Driver):
    """A driver of keys and values.

    Attributes:
        kept: where it keeps them.
    """

    kept: ClassVar[str]

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class."""
        if "way" not in scenario:
            return f"{self.title} is a cache: oxlite bench cache measures it"
        return super().refusal(scenario)

    def open(
        self,
        path: Path,
        scenario: Scenario,
        timeout_seconds: float,
        *,
        shared: bool = False,
        prepared: bool = True,
    ) -> Connection:
        """See the base class; there is nothing to connect to."""
        return cast(Connection, io.BytesIO())

    def errors(self) -> tuple[type[Exception], ...]:
        """See the base class."""
        return (OSError,)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {"driver": distribution_version(self.module)}

    def describe(self, connection: Any) -> dict[str, Any]:  # noqa: ANN401
        """See the base class."""
        return {
            "server": "no server:",
            "server_version": self.kept,
            "settings": dict(self.settings(connection)),
        }

    def settings(self, connection: Any) -> Mapping[str, object]:  # noqa: ANN401
        """Those that it says it has."""
        return {}


class Diskcache(_Cache):
    """``diskcache``, with the settings that it makes by itself: WAL, synchronous=NORMAL."""

    name = "diskcache"
    title = "diskcache"
    module = "diskcache"
    install = "pip install diskcache"
    kept = "a database, and files of its own for long values"

    def open(
        self,
        path: Path,
        scenario: Scenario,
        timeout_seconds: float,
        *,
        shared: bool = False,
        prepared: bool = True,
    ) -> Connection:
        """See the base class; what is returned is a cache, which can be asked for its settings."""
        return cast(Connection, import_module("diskcache").Cache(str(path)))

    def errors(self) -> tuple[type[Exception], ...]:
        """See the base class."""
        return (import_module("diskcache").Timeout,)

    def settings(self, connection: Any) -> Mapping[str, object]:  # noqa: ANN401
        """See the base class."""
        return {name: getattr(connection, name) for name in DISKCACHE_SETTINGS}


class FileBased(_Cache):
    """``filebased``, Django's cache with a file for each value."""

    name = "filebased"
    title = "Django's FileBasedCache"
    module = "django"
    install = "pip install django"
    kept = "a file for each value"


class LocMem(_Cache):
    """``locmem``, Django's cache in the memory of each process."""

    name = "locmem"
    title = "Django's LocMemCache"
    module = "django"
    install = "pip install django"
    kept = "one process"
