"""Readers and a writer: two engines on one file behind one ``Session``.

Readers have a pool of their own, so that reads do not wait for connections that write, and their
connections cannot write. ``RoutingSession`` sends each statement where it belongs:

- SELECT before the first write of its transaction, to the readers: each sees the newest commit;
- the first write, ``FOR UPDATE``, flush, SAVEPOINT or ``session.connection()``, and everything
  after it in that transaction, to the writer: the session sees what it has written.

This is the isolation level READ COMMITTED with two connections in place of one. Where the writer is
at another level, or ``sqlite_read_only``, everything is sent to it, since one snapshot, or one lock
from the start, is of one connection.

A writer knows its readers (``dialect.reader``), so a session has the usual ``bind`` or ``binds``
with writers, and code that needs one connection for everything, as migrations do, uses the writer.

Source:
    https://docs.sqlalchemy.org/en/20/orm/persistence_techniques.html#custom-vertical-partitioning
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy
from sqlalchemy import event, exc
from sqlalchemy.engine import (
    URL,
    AdaptedConnection,
    Connection,
    Dialect,
    Engine,
    make_url,
)
from sqlalchemy.orm import FromStatement, Session, SessionTransaction
from sqlalchemy.sql.elements import ClauseElement, TextClause
from sqlalchemy.sql.selectable import GenerativeSelect, SelectBase, TextualSelect

from oxlite.connection import only_read
from oxlite.sqlalchemy.dialect import SQLiteDialect_oxlite
from oxlite.sqlalchemy.isolation import DEFAULT, reads_only

if TYPE_CHECKING:
    # It needs greenlet, which SQLAlchemy 2.1 installs only when asked for its extra asyncio; the
    # blocking dialect, whose package this is a part of, does without.
    from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = [
    "AsyncEngines",
    "Engines",
    "RoutingSession",
    "create_async_engines",
    "create_engines",
    "create_reader_engine",
]

_READERS = 4
_WRITERS = 1


class Engines(NamedTuple):
    """The engines of one file.

    Attributes:
        writer: For a session's ``bind`` or ``binds``, and for migrations.
        reader: Only reads. A ``RoutingSession`` finds it by itself.
    """

    writer: Engine
    reader: Engine

    def status(self) -> str:
        """The sizes of both pools, who waits for a connection, and who has one."""
        return f"writer: {self.writer.pool.status()}\nreader: {self.reader.pool.status()}"

    def dispose(self, close: bool = True) -> None:
        """Dispose of both; see ``Engine.dispose``."""
        self.writer.dispose(close=close)


class AsyncEngines(NamedTuple):
    """The engines of one file, for an event loop.

    Attributes:
        writer: For the ``bind`` of an ``AsyncSession``, and for migrations.
        reader: Only reads. A ``RoutingSession`` finds it by itself.
    """

    writer: "AsyncEngine"
    reader: "AsyncEngine"

    def status(self) -> str:
        """The sizes of both pools, who waits for a connection, and who has one."""
        return f"writer: {self.writer.pool.status()}\nreader: {self.reader.pool.status()}"

    async def dispose(self, close: bool = True) -> None:
        """Dispose of both; see ``AsyncEngine.dispose``."""
        await self.writer.dispose(close=close)


def create_engines(
    url: str | URL, *, readers: int | None = None, writers: int = _WRITERS, **options: Any
) -> Engines:
    """Create the two engines of a file, one that writes and one that reads.

    ``sessionmaker(engines.writer, class_=RoutingSession)`` makes sessions that use both.

    Args:
        url: ``sqlite+oxlite:///app.db``, with options; ``?readers=8`` says how many there are.
        readers: How many connections read at most; 4, if the URL does not say it either.
        writers: How many connections are had for writing at most. One writes at a time, whoever
            else wants to waits: with one connection in the pool, with more for SQLite's lock.
        options: What ``create_engine`` takes, for both; but for the sizes of their pools.

    Returns:
        Both engines.

    Raises:
        sqlalchemy.exc.ArgumentError: The URL is of another dialect, or of a database in memory; an
            option is unknown; or there would be no reader or no writer.
    """
    url, readers = _counted(url, readers, writers, options)
    # Looked up when it is called, as below: instrumentation wraps it there.
    writer = sqlalchemy.create_engine(url, pool_size=writers, max_overflow=0, **options)
    reader = create_reader_engine(writer, readers=readers, **options)
    return Engines(writer, reader)


def create_async_engines(
    url: str | URL, *, readers: int | None = None, writers: int = _WRITERS, **options: Any
) -> AsyncEngines:
    """As ``create_engines``, for an event loop.

    ``async_sessionmaker(engines.writer, sync_session_class=RoutingSession)`` makes its sessions.
    Raises also ``ImportError`` where greenlet is not installed: ``oxlite[sqlalchemy]`` brings it.
    """
    from sqlalchemy.ext.asyncio import create_async_engine

    url, readers = _counted(url, readers, writers, options)
    writer = create_async_engine(url, pool_size=writers, max_overflow=0, **options)
    reader = create_async_engine(url, **_reading(readers, options))
    _join(writer.sync_engine, reader.sync_engine, options)
    return AsyncEngines(writer, reader)


def create_reader_engine(writer: Engine, *, readers: int = _READERS, **options: Any) -> Engine:
    """Give an engine that somebody else has made (Flask-SQLAlchemy, say) its readers.

    Args:
        writer: The engine; its URL is used again.
        readers: How many connections read at most.
        options: What ``create_engine`` takes: what was said for the writer beside its URL.

    Returns:
        The engine that only reads, which is disposed of with the writer.

    Raises:
        sqlalchemy.exc.ArgumentError: The engine is of another dialect, or of a database in memory.
    """
    if not isinstance(writer.dialect, SQLiteDialect_oxlite) or writer.dialect.is_async:
        raise exc.ArgumentError(
            f"readers are for engines of sqlite+oxlite, not {writer.url.drivername}"
        )
    _check(writer.url, options)
    reader = sqlalchemy.create_engine(writer.url, **_reading(readers, options))
    _join(writer, reader, options)
    return reader


def _counted(
    url: str | URL, readers: int | None, writers: int, options: dict[str, Any]
) -> tuple[URL, int]:
    """The URL without ``readers``, and how many there are to be."""
    url = make_url(url)
    said = url.query.get("readers")
    if readers is None:
        try:
            readers = _READERS if said is None else int(str(said))
        except ValueError:
            raise exc.ArgumentError(
                f"readers={said} in the URL: a number of connections is wanted"
            ) from None
    for name, count in (("readers", readers), ("writers", writers)):
        if count < 1:
            raise exc.ArgumentError(f"{name} must be at least 1, not {count}")
    if url.get_backend_name() != "sqlite" or not url.get_driver_name().startswith("oxlite"):
        raise exc.ArgumentError(f"readers are for engines of sqlite+oxlite, not {url.drivername}")
    _check(url, options)
    return url.difference_update_query(["readers"]), readers


def _check(url: URL, options: dict[str, Any]) -> None:
    """Refuse what cannot be had with readers."""
    if not SQLiteDialect_oxlite._is_url_file_db(url):
        raise exc.ArgumentError(
            "a database in memory has one connection, so it has no readers; with cache=shared those"
            " would be refused while somebody writes. Use a file."
        )
    for name in ("pool_size", "max_overflow", "poolclass"):
        if name in options:
            raise exc.ArgumentError(f"{name} is not taken here: say readers=… and writers=…")
    for name in ("creator", "pool"):
        if name in options:
            raise exc.ArgumentError(
                f"{name} is not taken here: a connection that reads is opened in another way than"
                " one that writes"
            )


def _reading(readers: int, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments for an engine that reads."""
    arguments = dict(options.get("connect_args", {}))
    arguments["pragmas"] = {**(arguments.get("pragmas") or {}), "query_only": True}
    return {
        **options,
        "connect_args": arguments,
        # No transaction: each statement sees the newest commit, and none is kept from the log.
        "isolation_level": "AUTOCOMMIT",
        "pool_size": readers,
        "max_overflow": 0,
    }


def _join(writer: Engine, reader: Engine, options: dict[str, Any]) -> None:
    """Have a writer know its readers, and take them along when it is disposed of."""
    dialect, reading = writer.dialect, reader.dialect
    assert isinstance(dialect, SQLiteDialect_oxlite)
    assert isinstance(reading, SQLiteDialect_oxlite)
    reading.transactions.only_reads = True
    dialect.reader = reader
    dialect.learn_level(options.get("connect_args", {}))

    @event.listens_for(reader, "connect")
    def have_only_read(connection: Any, _: object) -> None:
        if isinstance(connection, AdaptedConnection):
            connection.run_async(lambda driver: driver.run_sync(only_read))
        else:
            only_read(connection)

    @event.listens_for(writer, "engine_disposed")
    def dispose(engine: Engine) -> None:
        reader.dispose()


class RoutingSession(Session):
    """A ``Session`` that reads from readers until it writes.

    ``sessionmaker(engines.writer, class_=RoutingSession)``, or ``binds={Model: engines.writer, …}``
    for several databases: an engine without readers is used as it is. Beside another ``Session``
    class put it first: ``class Session(RoutingSession, TheirSession)``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Of the writers that this transaction has come to.
        self._written: set[Dialect] = set()

    def get_bind(
        self,
        mapper: Any = None,
        *,
        clause: ClauseElement | None = None,
        bind: Engine | Connection | None = None,
        **kw: Any,
    ) -> Engine | Connection:
        """The engine for a statement: the readers of the one that it belongs to, or that one."""
        found = super().get_bind(mapper, clause=clause, bind=bind, **kw)
        if bind is not None or not isinstance(found, Engine):
            return found
        dialect = found.dialect
        if not isinstance(dialect, SQLiteDialect_oxlite) or dialect.reader is None:
            return found
        if dialect not in self._written:
            options = found.get_execution_options()
            level = options.get("isolation_level", dialect.engine_level)
            is_snapshot = options.get("sqlite_read_only", False)
            may_read = not self._flushing and not self.in_nested_transaction() and not is_snapshot
            if may_read and level == DEFAULT and _only_reads(clause):
                return dialect.reader
            self._written.add(dialect)
        return found


@event.listens_for(RoutingSession, "after_transaction_end")
def _forget_writers(session: RoutingSession, transaction: SessionTransaction) -> None:
    if transaction.parent is None:
        session._written.clear()


def _only_reads(clause: ClauseElement | None) -> bool:
    """Whether a statement cannot write and asks for no lock."""
    if isinstance(clause, FromStatement | TextualSelect):
        return _only_reads(clause.element)
    if isinstance(clause, TextClause):
        return reads_only(clause.text)
    if isinstance(clause, GenerativeSelect):
        return clause._for_update_arg is None
    return isinstance(clause, SelectBase)
