"""The dialect ``sqlite+oxlite`` for ``create_async_engine``.

SQLAlchemy's dialects are written for blocking drivers; under asyncio they run in a greenlet, where
``await_only`` hands something awaitable to the event loop and comes back with its outcome. So the
connection and the cursor here look like a blocking driver's, and each of their calls is one turn on
a connection of ``oxlite.aio``: a statement runs, and all its rows are fetched, in one go. Only
``stream()`` fetches in parts.

Invariants:
- The event loop never waits for SQLite.
- A call that needs nothing of SQLite (a rollback without a transaction) costs no turn.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakSet

from sqlalchemy import exc, pool
from sqlalchemy.dialects.sqlite.base import SQLiteExecutionContext
from sqlalchemy.engine import URL, AdaptedConnection
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.util import await_only

from oxlite import aio, sqlite3
from oxlite.connection import refuse_writes
from oxlite.sqlalchemy import dbapi
from oxlite.sqlalchemy.dialect import SQLiteDialect_oxlite
from oxlite.sqlalchemy.functions import create_regexp
from oxlite.sqlalchemy.pools import AsyncQueuePool

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIModule  # not in the first releases of 2.0

__all__ = ["AsyncConnection", "AsyncCursor", "AsyncStreamingCursor", "SQLiteDialect_oxlite_async"]

_Answer = TypeVar("_Answer")
_Description = tuple[tuple[str, None, None, None, None, None, None], ...] | None


class AsyncConnection(AdaptedConnection):
    """A connection of ``oxlite.aio``, as a blocking one.

    ``driver_connection`` is the ``oxlite.aio.Connection``; ``run_async`` calls its methods from a
    listener.
    """

    _connection: Any

    def __init__(self, connection: aio.Connection) -> None:
        self._connection = connection
        # They alone can be in the middle of their rows.
        self._streaming: WeakSet[AsyncStreamingCursor] = WeakSet()

    def run(self, function: Callable[..., _Answer], *arguments: object) -> _Answer:
        """Call ``function(connection, *arguments)`` with the driver's connection, in one turn."""
        answer: _Answer = await_only(self._connection.run_sync(function, *arguments))
        return answer

    def cursor(self, server_side: bool = False) -> "AsyncCursor":
        """A cursor; with ``server_side`` one that fetches its rows in parts."""
        if not server_side:
            return AsyncCursor(self)
        cursor = AsyncStreamingCursor(self)
        self._streaming.add(cursor)
        return cursor

    def execute(self, sql: str, parameters: Any = ()) -> "AsyncCursor":
        """Run one statement."""
        cursor = self.cursor()
        cursor.execute(sql, parameters)
        return cursor

    def create_function(
        self,
        name: str,
        narg: int,
        func: Callable[..., Any] | None,
        *,
        deterministic: bool = False,
    ) -> None:
        """Register a function for SQL. It is called in a native thread."""
        await_only(self._connection.create_function(name, narg, func, deterministic=deterministic))

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._connection.in_transaction)

    @property
    def isolation_level(self) -> Any:
        """How an implicit transaction begins; ``None`` for none."""
        return self._connection.isolation_level

    @isolation_level.setter
    def isolation_level(self, value: Any) -> None:
        self._connection.isolation_level = value

    def commit(self) -> None:
        """Commit the open transaction, if there is one."""
        if self.in_transaction:
            await_only(self._connection.commit())

    def end_reads(self) -> bool:
        """Stop the reads that are in the middle of their rows; whether nothing is then."""
        if not self._streaming:
            return True
        self._streaming.clear()
        return self.run(sqlite3.Connection.end_reads)

    def rollback(self) -> None:
        """Roll the open transaction back, if there is one."""
        if self.in_transaction:
            await_only(self._connection.rollback())

    def close(self) -> None:
        """Close the connection."""
        await_only(self._connection.close())

    def terminate(self) -> None:
        """Close the connection of somebody who was cancelled, or has forgotten it.

        What has begun ends first. Where nobody can wait for that, in the garbage collector or
        outside the event loop, it happens in the background.
        """
        closing = self._connection.stop()
        if closing is not None:
            with suppress(exc.MissingGreenlet):
                await_only(asyncio.shield(closing))


class AsyncCursor:
    """A cursor whose rows are all fetched with the statement.

    Attributes:
        connection: The connection it belongs to.
        description: The columns, as PEP 249 describes them; ``None`` without any.
        rowcount: How many rows were changed; -1 if nothing was to be.
        lastrowid: The row id of the latest insert.
        arraysize: How many rows ``fetchmany`` fetches.
        server_side: Whether rows are fetched in parts.
    """

    server_side = False

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self.description: _Description = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1
        self._rows: deque[Any] = deque()

    def execute(self, operation: str, parameters: Any = ()) -> None:
        """Run one statement and fetch its rows.

        Raises:
            oxlite.sqlite3.Error: As the driver's ``Cursor.execute``.
        """
        rows = self._learn(*self.connection.run(_execute_and_fetch, operation, parameters))
        self._rows = deque(rows)

    def executemany(self, operation: str, parameters: Sequence[Any]) -> None:
        """Run one statement with many sets of parameters."""
        self._rows = deque(self._learn(*self.connection.run(_executemany, operation, parameters)))

    def _learn(self, cursor: sqlite3.Cursor, rows: list[Any]) -> list[Any]:
        """Keep what a cursor of the driver's has come to."""
        self.description = cursor.description
        self.rowcount = cursor.rowcount
        self.lastrowid = cursor.lastrowid
        return rows

    def fetchone(self) -> Any:
        """The next row; ``None`` at the end."""
        return self._rows.popleft() if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next rows: ``size`` of them, ``arraysize`` if that is not given."""
        wanted = self.arraysize if size is None else size
        return [self._rows.popleft() for _ in range(min(wanted, len(self._rows)))]

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        rows = list(self._rows)
        self._rows.clear()
        return rows

    def __iter__(self) -> Iterator[Any]:
        """The rows that are left."""
        while self._rows:
            yield self._rows.popleft()

    def close(self) -> None:
        """Let go of the rows."""
        self._rows.clear()

    async def _async_soft_close(self) -> None:
        """Let go of the statement and keep the rows, as SQLAlchemy asks: that is how it is."""

    def setinputsizes(self, *sizes: object) -> None:
        """Do nothing, as PEP 249 allows."""


class AsyncStreamingCursor(AsyncCursor):
    """A cursor that fetches its rows in parts: what ``stream()`` uses."""

    server_side = True

    def __init__(self, connection: AsyncConnection) -> None:
        super().__init__(connection)
        self._cursor: sqlite3.Cursor | None = None

    def execute(self, operation: str, parameters: Any = ()) -> None:
        """Run one statement up to its first row.

        Raises:
            oxlite.sqlite3.Error: As the driver's ``Cursor.execute``.
        """
        self._cursor = self.connection.run(sqlite3.Connection.execute, operation, parameters)
        self._learn(self._cursor, [])

    def fetchone(self) -> Any:
        """The next row; ``None`` at the end."""
        return self._fetch(sqlite3.Cursor.fetchone)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next rows: ``size`` of them, ``arraysize`` if that is not given."""
        return self._fetch(sqlite3.Cursor.fetchmany, self.arraysize if size is None else size)

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        return self._fetch(sqlite3.Cursor.fetchall)

    def __iter__(self) -> Iterator[Any]:
        """The rows that are left."""
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """Let go of the statement."""
        if self._cursor is not None:
            self._fetch(sqlite3.Cursor.close)
            self._cursor = None

    def _fetch(self, method: Callable[..., _Answer], *arguments: object) -> _Answer:
        cursor = self._cursor
        if cursor is None:
            raise sqlite3.ProgrammingError("Cannot operate on a closed cursor.")
        return self.connection.run(lambda connection: method(cursor, *arguments))


def _execute_and_fetch(
    connection: sqlite3.Connection, sql: str, parameters: Any
) -> tuple[sqlite3.Cursor, list[Any]]:
    cursor = connection.execute(sql, parameters)
    return cursor, [] if cursor.description is None else cursor.fetchall()


def _executemany(
    connection: sqlite3.Connection, sql: str, parameters: Sequence[Any]
) -> tuple[sqlite3.Cursor, list[Any]]:
    return connection.executemany(sql, parameters), []


class _AsyncDriver:
    """The driver's module, but for ``connect``, which waits for an event loop."""

    def __getattr__(self, name: str) -> Any:
        return getattr(dbapi, name)

    def connect(
        self,
        *cargs: Any,
        async_creator_fn: Callable[..., Awaitable[aio.Connection]] | None = None,
        **cparams: Any,
    ) -> AsyncConnection:
        """Open a connection, with what ``create_async_engine(async_creator=…)`` says if it does.

        Raises:
            sqlalchemy.exc.ArgumentError: The function has opened something else.
            sqlalchemy.exc.InvalidRequestError: No coroutine of SQLAlchemy's connects.
            oxlite.sqlite3.Error: As ``oxlite.aio.connect``.
        """
        # Each call has the connection to itself, in whatever thread.
        cparams.pop("check_same_thread", None)

        async def opened() -> AsyncConnection:
            if async_creator_fn is None:
                return AsyncConnection(await aio.connect(*cargs, **cparams))
            connection = await async_creator_fn(*cargs, **cparams)
            if not isinstance(connection, aio.Connection):
                raise exc.ArgumentError(
                    "async_creator must open a connection with oxlite.aio.connect(), not"
                    f" {type(connection).__module__}.{type(connection).__qualname__}"
                )
            return AsyncConnection(await connection)

        opening = opened()
        try:
            connection: AsyncConnection = await_only(opening)
        except exc.MissingGreenlet:
            opening.close()
            raise exc.InvalidRequestError(
                "sqlite+oxlite_async is for create_async_engine(), and connects from a coroutine;"
                " create_engine() wants sqlite+oxlite, which both of them take"
            ) from None
        return connection


class _ExecutionContext(SQLiteExecutionContext):
    """One execution; ``stream()`` asks it for a cursor of the server's side."""

    def create_server_side_cursor(self) -> DBAPICursor:
        """A cursor that fetches its rows in parts."""
        cursor: DBAPICursor = self._dbapi_connection.cursor(server_side=True)
        return cursor


class SQLiteDialect_oxlite_async(SQLiteDialect_oxlite):
    """``sqlite+oxlite`` for asyncio: SQLite by ``oxlite.aio.connect``."""

    driver = "oxlite_async"
    is_async = True
    has_terminate = True
    supports_statement_cache = True
    supports_server_side_cursors = True
    execution_ctx_cls = _ExecutionContext

    def _refuse_writes(self, connection: Any, refuses: bool) -> None:
        """Have a connection refuse to write, or not any more, in one turn."""
        connection.run(refuse_writes, refuses)

    @classmethod
    def get_async_dialect_cls(cls, url: URL) -> type[SQLiteDialect_oxlite]:
        """This class: it was asked for by its own name."""
        return cls

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """A queue for files; a database in memory is one connection."""
        return AsyncQueuePool if cls._is_url_file_db(url) else pool.StaticPool

    @classmethod
    def import_dbapi(cls) -> "DBAPIModule":
        """The driver, as PEP 249 has it, connecting from a coroutine."""
        return cast("DBAPIModule", _AsyncDriver())

    def create_regexp(self, connection: DBAPIConnection) -> None:
        """Put the driver's ``REGEXP`` in the place of SQLAlchemy's."""
        cast(AsyncConnection, connection).run(create_regexp)

    def do_terminate(self, dbapi_connection: DBAPIConnection) -> None:
        """Close a connection that cannot be used any more."""
        dbapi_connection.terminate()

    def get_driver_connection(self, connection: DBAPIConnection) -> Any:
        """The ``oxlite.aio.Connection``."""
        return connection.driver_connection
