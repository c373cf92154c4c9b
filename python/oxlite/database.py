"""A database for a whole application: readers and one writer, shared by all threads.

Each thread borrows a connection for as long as it needs one: a reader, which cannot write, or the
writer, of which there is one in the process, since SQLite has one write lock. Writers of other
processes are met in the queue for that lock.

Invariants:
- A connection is lent to one thread at a time, and comes back without a transaction.
- A thread never waits for itself: what would is refused.
- In a forked child the connections of the parent are left alone, and new ones opened.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from oxlite import sqlite3
from oxlite._native import LockedError, Pool, PoolTimeout
from oxlite.opening import connect
from oxlite.sqlite3 import Connection

__all__ = ["Database", "DatabaseStatistics", "Result"]

_Parameters = Sequence[Any] | Mapping[str, Any]
_Rows = list[Any]


class Result(NamedTuple):
    """What one write request came to.

    Attributes:
        rowcount: How many rows it has changed; -1 if it was no INSERT, UPDATE, DELETE or REPLACE.
        lastrowid: The row id of the latest insert on the writer.
        rows: The rows of a RETURNING clause, or of a query: tuples, or what the row factory makes.
    """

    rowcount: int
    lastrowid: int | None
    rows: _Rows


class DatabaseStatistics(NamedTuple):
    """What a ``Database`` is doing, and what its process has done in the queue for the write lock.

    Attributes:
        readers_idle: Readers that can be had at once, opened already or not.
        readers_lent: Readers in use.
        readers_waiting: Threads that wait for a reader.
        writer_waiting: Threads that wait for the writer.
        passes: How often this process was let through to the write lock.
        lane_waits: How often a connection waited for another one of this process.
        gate_waits: How often this process waited for other processes.
        bypasses: How often it went ahead of a queue that did not move.
        no_gate: Why there is no queue between processes; ``None`` if there is one.
    """

    readers_idle: int
    readers_lent: int
    readers_waiting: int
    writer_waiting: int
    passes: int
    lane_waits: int
    gate_waits: int
    bypasses: int
    no_gate: str | None


class _Lending:
    """Connections to lend, opened when they are first needed."""

    def __init__(self, count: int, open_one: Callable[[], Connection]) -> None:
        self._open_one = open_one
        self._pool: Pool[Connection | None] = Pool([None] * count)
        # Which thread has which connection, since when.
        self._lent: dict[Connection, tuple[int, float]] = {}

    def take(self, timeout: float) -> Connection | None:
        """Borrow a connection; ``None`` if none came back in time."""
        taken = self._pool.take(timeout)
        if taken is None:
            return None
        (connection,) = taken
        if connection is None:
            try:
                connection = self._open_one()
            except BaseException:
                self._pool.give(None)
                raise
        self._lent[connection] = (threading.get_ident(), time.monotonic())
        return connection

    def give(self, connection: Connection) -> None:
        """Give it back, with its transaction rolled back if one is open."""
        try:
            if connection.in_transaction:
                connection.rollback()
            back: Connection | None = connection
        except sqlite3.Error:
            # Closed, or beyond repair: the next one is new.
            with suppress(sqlite3.Error):
                connection.close()
            back = None
        del self._lent[connection]
        if not self._pool.give(back) and back is not None:
            back.close()

    def lent_to_this_thread(self) -> bool:
        """Whether this thread has borrowed one."""
        this = threading.get_ident()
        return any(thread == this for thread, _ in tuple(self._lent.values()))

    def holders(self) -> list[tuple[int, float]]:
        """The threads that have one, and for how many seconds."""
        now = time.monotonic()
        return [(thread, now - since) for thread, since in tuple(self._lent.values())]

    def close(self, timeout: float) -> bool:
        """Close all, interrupting those still lent when time is up; tell whether all came."""
        for connection in self._pool.close():
            if connection is not None:
                connection.close()
        if self._pool.wait_for_all(timeout):
            return True
        for connection in tuple(self._lent):
            with suppress(sqlite3.Error):
                connection.interrupt()
        # An interrupted statement ends at once; a thread that only holds its connection does not.
        return self._pool.wait_for_all(1.0)

    def statistics(self) -> tuple[int, int, int]:
        """How many are idle and lent, and how many threads wait."""
        return self._pool.statistics()


class Database:
    """A database file, read by several connections and written by one; for all threads.

    >>> db = oxlite.Database("app.db")
    >>> db.execute("CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, text TEXT)")
    >>> db.execute("INSERT INTO note (text) VALUES (?) RETURNING id", ("hello",)).rows
    [(1,)]
    >>> db.query_one("SELECT text FROM note WHERE id = ?", (1,))
    ('hello',)
    >>> with db.write() as connection:
    ...     connection.execute("UPDATE note SET text = 'bye'")
    ...     connection.execute("DELETE FROM note WHERE text = ''")

    After a fork it opens connections of its own.
    """

    def __init__(
        self,
        path: str | bytes | PathLike[str] | PathLike[bytes],
        profile: str = "web",
        readers: int = 4,
        timeout: float = 5.0,
        *,
        setup: Callable[[Connection], object] | None = None,
        pragmas: Mapping[str, bool | int | str] | None = None,
        journal: Literal["profile", "keep"] = "profile",
        detect_types: int = 0,
        cached_statements: int = 128,
        statement_timeout: float | None = None,
        extensions: Iterable[str | PathLike[str]] | None = None,
    ) -> None:
        """Open the writer, so that what is wrong is known at once. Readers are opened when needed.

        Args:
            path: The file. A database in memory belongs to one connection, so it is refused.
            profile: As for ``oxlite.connect``.
            readers: How many threads can read at the same time, at least 1; more of them wait.
            timeout: How long one waits for a reader, for the writer, and for the write lock, in
                seconds each.
            setup: Called with each new connection before it is used: for functions, collations, a
                row factory, ATTACH.
            pragmas: As for ``oxlite.connect``, like the rest.
            journal: See there.
            detect_types: See there.
            cached_statements: See there.
            statement_timeout: See there.
            extensions: See there.

        Raises:
            ValueError: A database that is not in a file, or a number out of range.
            oxlite.sqlite3.Error: As for ``oxlite.connect``.
        """
        name = os.fsdecode(path)
        if name in {"", ":memory:"}:
            raise ValueError(
                "a Database needs a file: a database in memory belongs to one connection"
                " (oxlite.connect(':memory:'))"
            )
        if readers < 1:
            raise ValueError(f"readers must be at least 1, not {readers}")
        # Wherever the process goes later; pathlib takes longer to import than all of oxlite.
        self._path = os.path.abspath(name)  # noqa: PTH100
        self._timeout = timeout
        self._reader_count = readers
        self._setup = setup
        self._options: dict[str, Any] = {
            "profile": profile,
            "busy": "gate",
            "timeout": timeout,
            "pragmas": pragmas,
            "journal": journal,
            "detect_types": detect_types,
            "cached_statements": cached_statements,
            "statement_timeout": statement_timeout,
            "extensions": extensions,
            "isolation_level": None,
            "check_same_thread": False,
        }
        self._is_closed = False
        self._start()
        self._writer.give(self._take_writer())

    def _start(self) -> None:
        """Begin with no connection, in this process."""
        self._process_id = os.getpid()
        self._readers = _Lending(self._reader_count, self._open_reader)
        self._writer = _Lending(1, self._open_writer)

    def _open_writer(self) -> Connection:
        connection = connect(self._path, **self._options)
        self._set_up(connection)
        self._latest_writer = connection
        return connection

    def _open_reader(self) -> Connection:
        connection = connect(self._path, **self._options)
        self._set_up(connection)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _set_up(self, connection: Connection) -> None:
        if self._setup is None:
            return
        try:
            self._setup(connection)
            if connection.in_transaction:
                connection.commit()
        except BaseException:
            connection.close()
            raise

    def _check(self) -> None:
        """Refuse a closed database; begin anew in a forked child."""
        if self._is_closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed Database.")
        if self._process_id != os.getpid():
            self._start()

    def _take_reader(self) -> Connection:
        self._check()
        readers = self._readers
        if readers.lent_to_this_thread() and not readers.statistics()[0]:
            raise sqlite3.ProgrammingError(
                "This thread is inside db.read() and would wait for itself, since all readers are"
                " in use: use the connection that db.read() has given, or open the Database with"
                f" more than {self._reader_count} readers."
            )
        connection = readers.take(self._timeout)
        if connection is None:
            raise PoolTimeout(
                f"all {self._reader_count} readers have been in use for {self._timeout:g} s:"
                f" {_described(readers.holders())}"
            )
        return connection

    def _take_writer(self) -> Connection:
        self._check()
        writer = self._writer
        if writer.lent_to_this_thread():
            raise sqlite3.ProgrammingError(
                "This thread is inside db.write() and would wait for itself: write through the"
                " connection that db.write() has given."
            )
        connection = writer.take(self._timeout)
        if connection is None:
            error = LockedError(
                "database is locked: this process's writer has been in use for"
                f" {self._timeout:g} s: {_described(writer.holders())}"
            )
            error.holder = None
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            error.sqlite_errorname = "SQLITE_BUSY"
            raise error
        return connection

    def query(self, sql: str, parameters: _Parameters = ()) -> _Rows:
        """Run a query on a reader.

        Args:
            sql: One statement that reads.
            parameters: Its parameters, as for ``execute`` of a connection.

        Returns:
            All rows: tuples, or what the row factory makes.

        Raises:
            oxlite.sqlite3.OperationalError: Among others ``SQLITE_READONLY``, for a statement that
                writes.
            oxlite.PoolTimeout: No reader came back in time.
        """
        connection = self._take_reader()
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            _explain(error)
            raise
        finally:
            self._readers.give(connection)

    def query_one(self, sql: str, parameters: _Parameters = ()) -> Any:  # noqa: ANN401 - a row is what the factory makes
        """Run a query on a reader; its first row, ``None`` if it has none. Raises as ``query``."""
        connection = self._take_reader()
        try:
            cursor = connection.execute(sql, parameters)
            row = cursor.fetchone()
            cursor.close()
        except sqlite3.OperationalError as error:
            _explain(error)
            raise
        finally:
            self._readers.give(connection)
        return row

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Borrow a reader for one snapshot: all its queries see the database as the first one does.

        Yields:
            The connection, in a deferred transaction. It cannot write.

        Raises:
            oxlite.PoolTimeout: No reader came back in time.
        """
        connection = self._take_reader()
        try:
            connection.execute("BEGIN")
            yield connection
        except sqlite3.OperationalError as error:
            _explain(error)
            raise
        finally:
            self._readers.give(connection)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Borrow the writer for one transaction: committed, or rolled back on an exception.

        Yields:
            The connection, which has the write lock: BEGIN IMMEDIATE has been executed.

        Raises:
            oxlite.LockedError: The writer, or the lock, could not be had in time.
            oxlite.sqlite3.ProgrammingError: This thread has the writer already; or the transaction
                was ended inside the block.
        """
        connection = self._take_writer()
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            if not connection.in_transaction:
                raise sqlite3.ProgrammingError(
                    "The transaction was ended inside db.write(), by COMMIT, by ROLLBACK or by an"
                    " error that rolls back; what came after it was committed by itself."
                )
            connection.commit()
        finally:
            self._writer.give(connection)

    def execute(self, sql: str, parameters: _Parameters = ()) -> Result:
        """Run one statement on the writer, in a transaction of its own.

        Args:
            sql: One statement. BEGIN, COMMIT and their like are refused.
            parameters: Its parameters.

        Returns:
            Row count, row id and rows. When it returns, the transaction is committed.

        Raises:
            oxlite.LockedError: The writer, or the lock, could not be had in time.
            oxlite.sqlite3.Error: What the statement raises; it has changed nothing then.
        """
        connection = self._take_writer()
        try:
            cursor = connection.execute(sql, parameters)
            rows = cursor.fetchall()
            if connection.in_transaction:
                raise sqlite3.ProgrammingError(
                    "A transaction of several statements needs db.write(); this one was rolled"
                    " back."
                )
            return Result(cursor.rowcount, cursor.lastrowid, rows)
        finally:
            self._writer.give(connection)

    def executemany(self, sql: str, parameters: Iterable[_Parameters]) -> Result:
        """Run one statement on the writer with each set of parameters, all in one transaction.

        Raises as ``execute``; an error rolls all of them back.
        """
        with self.write() as connection:
            cursor = connection.executemany(sql, parameters)
            return Result(cursor.rowcount, cursor.lastrowid, [])

    def stats(self) -> DatabaseStatistics:
        """What it is doing now, and what this process has done in the queue for the write lock."""
        self._check()
        idle, lent, waiting = self._readers.statistics()
        writer_waiting = self._writer.statistics()[2]
        queue = self._latest_writer.queue_statistics()
        assert queue is not None  # it is opened with busy="gate"
        return DatabaseStatistics(
            readers_idle=idle,
            readers_lent=lent,
            readers_waiting=waiting,
            writer_waiting=writer_waiting,
            passes=queue["passes"],
            lane_waits=queue["lane_waits"],
            gate_waits=queue["gate_waits"],
            bypasses=queue["bypasses"],
            no_gate=queue["no_gate"],
        )

    def close(self, timeout: float = 5.0) -> None:
        """Close all connections. Closing twice is allowed.

        Args:
            timeout: How long one waits for those that are in use, in seconds; then their statements
                are interrupted.

        Raises:
            oxlite.sqlite3.OperationalError: A thread keeps its connection all the same; it is
                closed when that gives it back.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._process_id != os.getpid():
            return  # they are the parent's
        ends = time.monotonic() + timeout
        kept = []
        for name, lending in (("readers", self._readers), ("the writer", self._writer)):
            if not lending.close(max(0.0, ends - time.monotonic())):
                kept.append(f"{name} {_described(lending.holders())}")
        if kept:
            raise sqlite3.OperationalError(
                f"still in use after {timeout:g} s: {'; '.join(kept)}; closed when given back"
            )

    def __enter__(self) -> Self:
        """The database, which is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()


def _described(holders: Iterable[tuple[int, float]]) -> str:
    """Which threads have connections, and for how long."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return ", ".join(
        f"by thread {names.get(thread, 'ended')!r} for {seconds:.1f} s"
        for thread, seconds in holders
    )


def _explain(error: sqlite3.OperationalError) -> None:
    """Say how one writes, to whoever has tried to through a reader."""
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
        error.add_note(
            "db.query() and db.read() have connections that only read: write with db.execute(),"
            " db.executemany() or inside db.write()."
        )
