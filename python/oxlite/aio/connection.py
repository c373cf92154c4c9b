"""One connection for an event loop, in the words of aiosqlite.

Every method of the driver's ``Connection`` is here awaited: it runs in a native thread when its
turn has come, one after the other.

Invariants:
- The connection is used by one call at a time, in the order in which they were asked for.
- Cancelling interrupts a read at once and withdraws what has not begun; a write that has begun goes
  on to its end, and the connection stays usable.
- Closing is done whoever waits for it; one that nobody closes is closed in the background.
"""

import asyncio
import sys
import warnings
from asyncio import Future
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, cast

from oxlite import sqlite3
from oxlite.aio.loops import SerialExecutor
from oxlite.connection import ConnectOptions, driver_connection
from oxlite.connection import connect as open_connection

__all__ = [
    "ITERATION_CHUNK_SIZE",
    "Connection",
    "ConnectionClosedError",
    "Cursor",
    "Opening",
    "connect",
]

_Parameters = Sequence[Any] | Mapping[str, Any]
_T = TypeVar("_T")
_P = ParamSpec("_P")

# How many rows an iteration fetches at once.
ITERATION_CHUNK_SIZE = 64


_NOT_OPEN = "no active connection: it was not opened; await it, or enter it with 'async with'"
_CLOSED = "Connection closed: Cannot operate on a closed database."


class ConnectionClosedError(sqlite3.ProgrammingError, ValueError):
    """The connection is not open, or not any more: a ``ValueError`` too, as aiosqlite has it."""


class Opening(Generic[_T], Coroutine[Any, Any, _T]):
    """What is awaited, or entered: then a cursor is closed at the end of the block."""

    def __init__(self, coroutine: Coroutine[Any, Any, _T]) -> None:
        self._coroutine = coroutine
        self._made: _T | None = None

    def __await__(self) -> Generator[Any, None, _T]:
        """Do it."""
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:  # noqa: ANN401 - a coroutine's
        """Go on, as a coroutine does."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:  # noqa: ANN401 - a coroutine's
        """Go on with an exception, as a coroutine does."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End it, as a coroutine is ended."""
        self._coroutine.close()

    async def __aenter__(self) -> _T:
        """Do it."""
        self._made = made = await self._coroutine
        return made

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the cursor, if it is one."""
        if isinstance(self._made, Cursor):
            await self._made.close()


class Cursor:
    """What a statement returns, row by row."""

    def __init__(self, connection: "Connection", cursor: sqlite3.Cursor) -> None:
        self._connection = connection
        self._cursor = cursor

    async def execute(self, sql: str, parameters: _Parameters | None = None) -> Self:
        """Execute a statement. Raises as the driver's ``Cursor.execute`` does."""
        await self._call(self._cursor.execute, sql, () if parameters is None else parameters)
        return self

    async def executemany(self, sql: str, parameters: Iterable[_Parameters]) -> Self:
        """Execute a data modification with each set of parameters."""
        await self._call(self._cursor.executemany, sql, parameters)
        return self

    async def executescript(self, sql_script: str) -> Self:
        """Execute several statements, after committing an open transaction."""
        await self._call(self._cursor.executescript, sql_script)
        return self

    async def fetchone(self) -> Any:  # noqa: ANN401 - a row is what the factory makes
        """The next row; ``None`` at the end."""
        return await self._call(self._cursor.fetchone)

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next rows: ``size`` of them, ``arraysize`` if that is not given."""
        return await self._call(
            self._cursor.fetchmany, self._cursor.arraysize if size is None else size
        )

    async def fetchall(self) -> list[Any]:
        """All rows that are left."""
        return await self._call(self._cursor.fetchall)

    async def close(self) -> None:
        """Let go of the statement; that is done whoever waits for it."""
        await self._connection._call_anyway(self._cursor.close)

    async def _call(self, function: Callable[..., _T], *arguments: object) -> _T:
        return await self._connection._call(function, *arguments)

    def __aiter__(self) -> AsyncIterator[Any]:
        """The rows that are left, some of them fetched ahead."""
        return self._rows()

    async def _rows(self) -> AsyncIterator[Any]:
        size = self._connection._iter_chunk_size
        while rows := await self.fetchmany(size):
            for row in rows:
                yield row

    async def __aenter__(self) -> Self:
        """The cursor, which is closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The driver's connection."""
        return self._cursor.connection

    @property
    def rowcount(self) -> int:
        """How many rows were changed; -1 if nothing was to be."""
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        """The row id of the latest insert."""
        return self._cursor.lastrowid

    @property
    def description(self) -> Any:  # noqa: ANN401 - PEP 249's
        """The columns, as PEP 249 describes them; ``None`` without any."""
        return self._cursor.description

    @property
    def arraysize(self) -> int:
        """How many rows ``fetchmany`` fetches."""
        return self._cursor.arraysize

    @arraysize.setter
    def arraysize(self, value: int) -> None:
        self._cursor.arraysize = value

    @property
    def row_factory(self) -> Any:  # noqa: ANN401 - whatever can be called
        """What makes rows: called with the driver's cursor and a tuple; ``None`` for tuples."""
        return self._cursor.row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:  # noqa: ANN401
        self._cursor.row_factory = factory


class Connection(Awaitable["Connection"]):
    """A connection to a database, awaited. ``connect`` makes one, ``Database`` lends them.

    It is opened when it is awaited or entered.
    """

    _driver: sqlite3.Connection | None = None

    def __init__(self, connector: Callable[[], sqlite3.Connection], iter_chunk_size: int) -> None:
        """Open nothing yet.

        Args:
            connector: Opens the driver's connection; called in a native thread.
            iter_chunk_size: How many rows an iteration fetches at once.
        """
        self._connector = connector
        self._executor = SerialExecutor()
        self._iter_chunk_size = iter_chunk_size
        self._refusal = _NOT_OPEN
        self._is_lent = False
        # The isolation level that is to come: it has been set, and its turn has not come yet.
        self._level: list[str | None] | None = None

    @classmethod
    def _lent(cls, connection: sqlite3.Connection) -> "Connection":
        """One that is open, and somebody else's."""
        lent = cls(lambda: connection, ITERATION_CHUNK_SIZE)
        lent._driver = connection
        lent._is_lent = True
        return lent

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._driver is None:
            raise ConnectionClosedError(self._refusal)
        return self._driver

    @property
    def _conn(self) -> sqlite3.Connection:
        """The driver's connection, by aiosqlite's name; Tortoise ORM sets its row factory there."""
        return self._connection

    def _end(self, refusal: str) -> None:
        """Refuse everything from now on, in these words."""
        self._driver, self._refusal = None, refusal

    async def _open(self) -> "Connection":
        if self._driver is not None:
            return self
        if self._refusal != _NOT_OPEN:
            raise ConnectionClosedError(self._refusal)
        connector = self._connector
        opened: list[sqlite3.Connection] = []
        try:
            await self._executor.call_anyway(lambda: opened.append(connector()))
        except BaseException:
            # Its turn comes after the opening, which goes on.
            self._executor.call_unheard(_close_all, opened)
            raise
        if self._driver is None:
            self._driver = opened[0]
        else:
            self._executor.call_unheard(_close_all, opened)  # two tasks have opened it
        return self

    def __await__(self) -> Generator[Any, None, "Connection"]:
        """Open it, unless it is open."""
        return self._open().__await__()

    async def __aenter__(self) -> "Connection":
        """Open it, unless it is open; it is closed at the end of the block."""
        return await self._open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    def __del__(
        self,
        _warn: Callable[..., None] = warnings.warn,
        _is_finalizing: Callable[[], bool] = sys.is_finalizing,
    ) -> None:
        """Warn that it was not closed, and close it in the background."""
        driver = self._driver
        if driver is None or self._is_lent:
            return
        _warn(
            f"{self!r} was deleted before being closed: use 'async with', or await close()",
            ResourceWarning,
            source=self,
            stacklevel=2,
        )
        if not _is_finalizing():
            self._executor.call_unheard(driver.close)

    async def _call(self, function: Callable[..., _T], *arguments: object) -> _T:
        return await self._executor.call(self._connection, function, *arguments)

    async def _call_anyway(self, function: Callable[[], _T]) -> _T:
        """Call a function in its turn; a task that is cancelled only waits no more."""
        if self._driver is None:
            raise ConnectionClosedError(self._refusal)
        return await asyncio.shield(self._executor.call_anyway(function))

    async def run_sync(
        self,
        function: Callable[Concatenate[sqlite3.Connection, _P], _T],
        *arguments: _P.args,
        **keywords: _P.kwargs,
    ) -> _T:
        """Call a function with the driver's connection, when its turn has come.

        Args:
            function: Called in a native thread as ``function(connection, *arguments, **keywords)``;
                the event loop goes on meanwhile. Several statements at one go are faster so.
            arguments: What else it gets.
            keywords: What else it gets, by name.

        Returns:
            What it returns; it raises what that raises.
        """
        connection = self._connection
        return await self._call(lambda: function(connection, *arguments, **keywords))

    def cursor(self) -> Opening[Cursor]:
        """A new cursor."""
        return Opening(self._made(lambda connection: connection.cursor()))

    def execute(self, sql: str, parameters: _Parameters | None = None) -> Opening[Cursor]:
        """Execute a statement: ``await`` it, or enter it to have the cursor closed.

        Raises:
            oxlite.sqlite3.Error: As the driver's ``Connection.execute``.
        """
        return Opening(
            self._made(
                lambda connection: connection.execute(sql, () if parameters is None else parameters)
            )
        )

    def executemany(self, sql: str, parameters: Iterable[_Parameters]) -> Opening[Cursor]:
        """Execute a data modification with each set of parameters."""
        return Opening(self._made(lambda connection: connection.executemany(sql, parameters)))

    def executescript(self, sql_script: str) -> Opening[Cursor]:
        """Execute several statements, after committing an open transaction."""
        return Opening(self._made(lambda connection: connection.executescript(sql_script)))

    async def _made(self, make: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> Cursor:
        return Cursor(self, await self._call(make, self._connection))

    def execute_insert(self, sql: str, parameters: _Parameters | None = None) -> Opening[Any]:
        """Execute an insert; a row with the latest row id."""

        def insert(connection: sqlite3.Connection) -> object:
            connection.execute(sql, () if parameters is None else parameters).close()
            return connection.execute("SELECT last_insert_rowid()").fetchone()

        return Opening(self.run_sync(insert))

    def execute_fetchall(
        self, sql: str, parameters: _Parameters | None = None
    ) -> Opening[list[Any]]:
        """Execute a query; all its rows. The fastest way to read with a connection."""
        return Opening(self._fetched(sql, () if parameters is None else parameters))

    async def _fetched(self, sql: str, parameters: _Parameters) -> list[Any]:
        return await self._executor.fetch(self._connection, sql, parameters)

    async def commit(self) -> None:
        """Commit the open transaction, if there is one."""
        await self._call(self._connection.commit)

    async def rollback(self) -> None:
        """Roll the open transaction back, if there is one; that is done whoever waits for it."""
        await self._call_anyway(self._connection.rollback)

    async def close(self) -> None:
        """Close the connection; an open transaction is rolled back. Closing twice is allowed.

        What was asked for before is done first. Cancelling changes nothing but that nobody waits.
        """
        driver = self._driver
        if driver is None:
            return
        self._end(_CLOSED)
        try:
            await asyncio.shield(self._executor.call_anyway(driver.close))
        except sqlite3.Error:
            self._driver = driver  # it is open still: it is being copied into, for one
            raise

    def stop(self) -> "Future[None] | None":
        """Close the connection without waiting, also without an event loop.

        Returns:
            What can be awaited, if a loop runs.
        """
        driver, self._driver = self._driver, None
        self._refusal = _CLOSED
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            if driver is not None:
                self._executor.call_unheard(driver.close)
            return None
        if driver is not None:
            return self._executor.call_anyway(driver.close)
        done: Future[None] = loop.create_future()
        done.set_result(None)
        return done

    async def interrupt(self) -> None:
        """Make what runs now fail with ``OperationalError: interrupted``; does not wait."""
        self._connection.interrupt()

    async def create_function(
        self,
        name: str,
        num_params: int,
        func: Callable[..., Any] | None,
        deterministic: bool = False,
    ) -> None:
        """Register a function for SQL; see the driver's. It is called in a native thread."""
        connection = self._connection
        await self._call(
            lambda: connection.create_function(name, num_params, func, deterministic=deterministic)
        )

    async def create_aggregate(self, name: str, num_params: int, aggregate_class: Any) -> None:  # noqa: ANN401
        """Register an aggregate for SQL."""
        await self._call(self._connection.create_aggregate, name, num_params, aggregate_class)

    async def create_collation(self, name: str, callback: Callable[[str, str], int] | None) -> None:
        """Register a collation for SQL."""
        await self._call(self._connection.create_collation, name, callback)

    async def enable_load_extension(self, value: bool) -> None:
        """Allow extensions to be loaded, or not."""
        await self._call(self._connection.enable_load_extension, value)

    async def load_extension(self, path: str) -> None:
        """Load an extension."""
        await self._call(self._connection.load_extension, path)

    async def set_progress_handler(self, handler: Callable[[], object] | None, n: int) -> None:
        """Have a function called every ``n`` instructions; a true answer ends the statement."""
        await self._call(self._connection.set_progress_handler, handler, n)

    async def set_trace_callback(self, handler: Callable[[str], object] | None) -> None:
        """Have a function called with each statement."""
        await self._call(self._connection.set_trace_callback, handler)

    async def set_authorizer(self, authorizer_callback: Callable[..., int] | None) -> None:
        """Have a function asked for each access while a statement is prepared."""
        await self._call(self._connection.set_authorizer, authorizer_callback)

    async def iterdump(self, *, filter: str | None = None) -> AsyncIterator[str]:
        """The database as SQL statements.

        Args:
            filter: A pattern of LIKE for the names of tables.
        """
        # The driver looks at the database when the dump is made, not only when it is read.
        dump = await self.run_sync(lambda connection: connection.iterdump(filter=filter))
        while lines := await self._call(lambda: list(islice(dump, self._iter_chunk_size))):
            for line in lines:
                yield line

    async def backup(
        self,
        target: "Connection | sqlite3.Connection",
        *,
        pages: int = 0,
        progress: Callable[[int, int, int], object] | None = None,
        name: str = "main",
        sleep: float = 0.25,
    ) -> None:
        """Copy the database into another one, which nobody may use meanwhile.

        Args:
            target: Where to.
            pages: How many at a time; 0 for all at once.
            progress: Called after each step with its status, the pages left, and all pages.
            name: Which database: ``"main"``, ``"temp"`` or an attached one.
            sleep: How long to wait between tries, in seconds.
        """
        connection = self._connection
        to = target._connection if isinstance(target, Connection) else target
        await self._call(
            lambda: connection.backup(to, pages=pages, progress=progress, name=name, sleep=sleep)
        )

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    @property
    def total_changes(self) -> int:
        """How many rows the connection has changed."""
        return self._connection.total_changes

    @property
    def isolation_level(self) -> str | None:
        """How an implicit transaction begins; ``None`` for none.

        Setting it to ``None`` commits the open transaction, when what was asked for before is done.
        Where that fails the event loop is told, since nobody waits; ``await commit()`` before.
        """
        connection, coming = self._connection, self._level
        return connection.isolation_level if coming is None else coming[0]

    @isolation_level.setter
    def isolation_level(self, value: Any) -> None:  # noqa: ANN401 - the driver checks it
        connection = self._connection
        if value is not None:
            connection.isolation_level = value
            if self._level is not None:
                self._level[0] = value
            return
        coming: list[str | None] = [None]

        def begin_no_transactions() -> None:
            try:
                connection.isolation_level = None
            finally:
                if coming[0] is not None:
                    connection.isolation_level = cast(Any, coming[0])
                if self._level is coming:
                    self._level = None

        self._level = coming
        try:
            self._executor.call_anyway(begin_no_transactions)
        except RuntimeError:
            begin_no_transactions()  # no loop runs that would have to wait

    @property
    def row_factory(self) -> Any:  # noqa: ANN401 - whatever can be called
        """What makes rows: called with the driver's cursor and a tuple; ``None`` for tuples."""
        return self._connection.row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:  # noqa: ANN401
        self._connection.row_factory = factory

    @property
    def text_factory(self) -> Any:  # noqa: ANN401 - whatever can be called
        """What makes text: called with bytes; ``str``, or ``bytes`` for what is stored."""
        return self._connection.text_factory

    @text_factory.setter
    def text_factory(self, factory: Any) -> None:  # noqa: ANN401
        self._connection.text_factory = factory


def connect(
    database: str | bytes | PathLike[str] | PathLike[bytes],
    *,
    iter_chunk_size: int = ITERATION_CHUNK_SIZE,
    loop: asyncio.AbstractEventLoop | None = None,
    **options: Unpack[ConnectOptions],
) -> Connection:
    """Open a database for an event loop: ``await`` it, or enter it to have it closed.

    >>> async with oxlite.aio.connect("app.db") as connection:
    ...     async with connection.execute("SELECT name FROM user") as cursor:
    ...         async for (name,) in cursor:
    ...             print(name)

    Args:
        database: As for ``oxlite.connect``.
        iter_chunk_size: How many rows an iteration fetches at once.
        loop: Of no effect; aiosqlite takes it still, with a ``DeprecationWarning``.
        options: The options of ``oxlite.connect``, but for ``check_same_thread``, which does not
            arise: each call has the connection to itself, in whatever thread.

    Returns:
        The connection, which is opened when it is awaited or entered.

    Raises:
        ValueError: ``iter_chunk_size`` is not positive; and as ``oxlite.connect``.
        oxlite.sqlite3.Error: As ``oxlite.connect``.
    """
    if iter_chunk_size < 1:
        raise ValueError(f"iter_chunk_size must be at least 1, not {iter_chunk_size}")
    if loop is not None:
        warnings.warn(
            "connect(loop=…) has no effect: a connection works in whatever loop awaits it",
            DeprecationWarning,
            stacklevel=2,
        )
    options["check_same_thread"] = False
    return Connection(
        lambda: driver_connection(open_connection(database, **options)), iter_chunk_size
    )


def _close_all(connections: Iterable[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()
