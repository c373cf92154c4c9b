"""One connection for an event loop, in the words of aiosqlite.

Every method of the driver's ``Connection`` is here awaited: it runs in a native thread when its
turn has come, one after the other.

Invariants:
- The connection is used by one call at a time, in the order in which they were asked for.
- Cancelling interrupts a read at once and withdraws what has not begun; a write that has begun goes
  on to its end, and the connection stays usable.
"""

from asyncio import CancelledError
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
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack

from oxlite import sqlite3
from oxlite.aio.loops import Turns
from oxlite.opening import ConnectOptions
from oxlite.opening import connect as open_connection

__all__ = ["ITERATION_CHUNK_SIZE", "Connection", "Cursor", "Opening", "connect"]

_Parameters = Sequence[Any] | Mapping[str, Any]
_T = TypeVar("_T")
_P = ParamSpec("_P")

# How many rows an iteration fetches at once.
ITERATION_CHUNK_SIZE = 64


class _Closing(Protocol):
    async def close(self) -> None: ...


_C = TypeVar("_C", bound=_Closing)


class Opening(Generic[_C], Awaitable[_C]):
    """Something to be awaited, or entered and closed at the end of the block."""

    def __init__(self, coroutine: Coroutine[Any, Any, _C]) -> None:
        self._coroutine = coroutine
        self._opened: _C | None = None

    def __await__(self) -> Generator[Any, None, _C]:
        """Open it."""
        return self._coroutine.__await__()

    async def __aenter__(self) -> _C:
        """Open it."""
        self._opened = await self._coroutine
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        if self._opened is not None:
            await self._opened.close()


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
        """Let go of the statement."""
        await self._call(self._cursor.close)

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


class Connection:
    """A connection to a database, awaited. ``connect`` opens one, ``Database`` lends them."""

    def __init__(self, connection: sqlite3.Connection, turns: Turns, iter_chunk_size: int) -> None:
        self._driver: sqlite3.Connection | None = connection
        self._turns = turns
        self._iter_chunk_size = iter_chunk_size
        self._refusal = ""

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._driver is None:
            raise sqlite3.ProgrammingError(self._refusal)
        return self._driver

    def _end(self, refusal: str) -> None:
        """Refuse everything from now on, in these words."""
        self._driver, self._refusal = None, refusal

    async def _call(self, function: Callable[..., _T], *arguments: object) -> _T:
        return await self._turns.call(self._connection, function, *arguments)

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
        return Opening(self._made(lambda: self._connection.cursor()))

    def execute(self, sql: str, parameters: _Parameters | None = None) -> Opening[Cursor]:
        """Execute a statement: ``await`` it, or enter it to have the cursor closed.

        Raises:
            oxlite.sqlite3.Error: As the driver's ``Connection.execute``.
        """
        return Opening(
            self._made(
                lambda: self._connection.execute(sql, () if parameters is None else parameters)
            )
        )

    def executemany(self, sql: str, parameters: Iterable[_Parameters]) -> Opening[Cursor]:
        """Execute a data modification with each set of parameters."""
        return Opening(self._made(lambda: self._connection.executemany(sql, parameters)))

    def executescript(self, sql_script: str) -> Opening[Cursor]:
        """Execute several statements, after committing an open transaction."""
        return Opening(self._made(lambda: self._connection.executescript(sql_script)))

    async def _made(self, make: Callable[[], sqlite3.Cursor]) -> Cursor:
        return Cursor(self, await self._call(make))

    async def execute_insert(self, sql: str, parameters: _Parameters | None = None) -> Any:  # noqa: ANN401
        """Execute an insert; a row with its row id, ``None`` if it inserted nothing."""

        def insert(connection: sqlite3.Connection) -> object:
            connection.execute(sql, () if parameters is None else parameters).close()
            return connection.execute("SELECT last_insert_rowid()").fetchone()

        return await self.run_sync(insert)

    async def execute_fetchall(self, sql: str, parameters: _Parameters | None = None) -> list[Any]:
        """Execute a query; all its rows. The fastest way to read with a connection."""
        return await self._turns.fetch(
            self._connection, sql, () if parameters is None else parameters
        )

    async def commit(self) -> None:
        """Commit the open transaction, if there is one."""
        await self._call(self._connection.commit)

    async def rollback(self) -> None:
        """Roll the open transaction back, if there is one."""
        await self._call(self._connection.rollback)

    async def close(self) -> None:
        """Close the connection; an open transaction is rolled back. Closing twice is allowed."""
        if self._driver is not None:
            await self._turns.call(None, self._driver.close)

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
        dump = self._connection.iterdump(filter=filter)
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
        """How an implicit transaction begins; ``None`` for none."""
        return self._connection.isolation_level

    @isolation_level.setter
    def isolation_level(self, value: Any) -> None:  # noqa: ANN401 - the driver checks it
        self._connection.isolation_level = value

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

    async def __aenter__(self) -> Self:
        """The connection, which is closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()


def connect(
    database: str | bytes | PathLike[str] | PathLike[bytes],
    *,
    iter_chunk_size: int = ITERATION_CHUNK_SIZE,
    **options: Unpack[ConnectOptions],
) -> Opening[Connection]:
    """Open a database for an event loop: ``await`` it, or enter it to have it closed.

    >>> async with oxlite.aio.connect("app.db") as connection:
    ...     async with connection.execute("SELECT name FROM user") as cursor:
    ...         async for (name,) in cursor:
    ...             print(name)

    Args:
        database: As for ``oxlite.connect``.
        iter_chunk_size: How many rows an iteration fetches at once.
        options: The options of ``oxlite.connect``, but for ``check_same_thread``, which does not
            arise: each call has the connection to itself, in whatever thread.

    Returns:
        The open connection.

    Raises:
        ValueError: ``iter_chunk_size`` is not positive; and as ``oxlite.connect``.
        oxlite.sqlite3.Error: As ``oxlite.connect``.
    """
    if iter_chunk_size < 1:
        raise ValueError(f"iter_chunk_size must be at least 1, not {iter_chunk_size}")
    return Opening(_opened(database, iter_chunk_size, options))


async def _opened(
    database: str | bytes | PathLike[str] | PathLike[bytes],
    iter_chunk_size: int,
    options: ConnectOptions,
) -> Connection:
    options["check_same_thread"] = False
    turns = Turns()
    opened: list[sqlite3.Connection] = []
    try:
        await turns.call_anyway(lambda: opened.append(open_connection(database, **options)))
    except CancelledError:
        # Its turn comes after the opening, which goes on.
        turns.call_anyway(_close_all, opened)
        raise
    return Connection(opened[0], turns, iter_chunk_size)


def _close_all(connections: Iterable[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()
