"""A database for a whole application: readers and one writer, shared by all threads.

Each thread borrows a connection for as long as it needs one: a reader, which cannot write, or the
writer, of which there is one in the process, since SQLite has one write lock. Writers of other
processes are met in the queue for that lock. Single statements that write at the same time are
committed together (group commit).

Invariants:
- A connection is lent to one thread at a time, and comes back without a transaction.
- A thread never waits for itself: what would is refused.
- A connection whose COMMIT has an unknown outcome is not used again.
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
from weakref import WeakSet

from oxlite import sqlite3
from oxlite._native import (
    LockedError,
    Pool,
    PoolTimeout,
    Writer,
    WriterInUse,
)
from oxlite.opening import connect
from oxlite.sqlite3 import Connection
from oxlite.upkeep import Upkeep

__all__ = ["Checkpoint", "Database", "DatabaseStatistics", "Result"]

_Parameters = Sequence[Any] | Mapping[str, Any]
_Rows = list[Any]


class Result(NamedTuple):
    """What one write request came to.

    Attributes:
        rowcount: How many rows it has changed; -1 if it was no INSERT, UPDATE, DELETE or REPLACE.
        lastrowid: The row id of the last row that it has inserted; ``None`` if it inserted none.
        rows: The rows of a RETURNING clause, or of a query: tuples, or what the row factory makes.
    """

    rowcount: int
    lastrowid: int | None
    rows: _Rows


class Checkpoint(NamedTuple):
    """What a checkpoint came to, in the words of ``PRAGMA wal_checkpoint``.

    Attributes:
        busy: Whether somebody was in the way, so that the mode's promise is not kept.
        log: The frames in the log; -1 if there is none, or if another checkpoint is under way.
        checkpointed: How many of them are in the database; -1 likewise.
    """

    busy: bool
    log: int
    checkpointed: int


class DatabaseStatistics(NamedTuple):
    """What a ``Database`` is doing, and what its process has done in the queue for the write lock.

    Attributes:
        readers_idle: Readers that can be had at once, opened already or not.
        readers_lent: Readers in use.
        readers_waiting: Threads that wait for a reader.
        writer_waiting: Threads that wait for the writer.
        batches: How many transactions ``execute`` and ``executemany`` have committed.
        batched_writes: How many calls of them those were.
        passes: How often this process was let through to the write lock.
        lane_waits: How often a connection waited for another one of this process.
        gate_waits: How often this process waited for other processes.
        bypasses: How often it went ahead of a queue that did not move.
        no_gate: Why there is no queue between processes; ``None`` if there is one.
        wal_frames: The frames in the write-ahead log after this process's latest commit.
        checkpoints: Checkpoints that brought all of the log into the database.
        checkpoints_incomplete: Checkpoints that somebody was in the way of.
        checkpoint_errors: Checkpoints that failed.
        checkpoint_error: The text of the latest failure.
        shared_commits: With ``durable_commit="shared"``, the commits of this process; else 0.
        shared_syncs: The syncs that it has made for all processes.
        shared_answers: The commits that another one's sync has made durable.
        no_sharing: Why each commit is synced by itself; ``None`` if syncs are shared, or need not
            be.
        sync_failed: Why nothing is committed any more; ``None`` if all is well.
    """

    readers_idle: int
    readers_lent: int
    readers_waiting: int
    writer_waiting: int
    batches: int
    batched_writes: int
    passes: int
    lane_waits: int
    gate_waits: int
    bypasses: int
    no_gate: str | None
    wal_frames: int
    checkpoints: int
    checkpoints_incomplete: int
    checkpoint_errors: int
    checkpoint_error: str | None
    shared_commits: int
    shared_syncs: int
    shared_answers: int
    no_sharing: str | None
    sync_failed: str | None


_BATCH_LIMITS = {"group": 256, "each": 1, "shared": 256}


# After how many writes the clock is looked at.
_UPKEEP_LOOKS_EVERY = 256

# In a forked child they begin anew.
_databases: "WeakSet[Database]" = WeakSet()


def _begin_anew() -> None:
    for database in list(_databases):
        database._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class _Readers:
    """Connections to lend, opened when they are first needed."""

    def __init__(self, count: int, open_one: Callable[[], Connection]) -> None:
        self._open_one = open_one
        self._pool: Pool[Connection | None] = Pool([None] * count)
        # Which thread has which connection, since when.
        self._lent: dict[Connection, tuple[int, float]] = {}

    def take(self, lent: list[Connection], timeout: float) -> bool:
        """Borrow a connection, which is put into ``lent``; ``False`` if none came back in time."""
        taken: list[Connection | None] = []
        try:
            if not self._pool.take(taken, timeout):
                return False
            connection = taken[0]
            if connection is None:
                taken[0] = connection = self._open_one()
            self._lent[connection] = (threading.get_ident(), time.monotonic())
            lent.append(connection)
        except BaseException:
            # It could not be opened; or Ctrl-C came between any two of these steps.
            if taken and not lent:
                self._put_back(taken[0], taken[0])
            raise
        return True

    def give(self, connection: Connection) -> None:
        """Give it back, with its transaction rolled back if one is open."""
        if connection not in self._lent:
            return  # forked inside the block: it is the parent's
        try:
            if connection.in_transaction:
                connection.rollback()
            back: Connection | None = connection
        except sqlite3.Error:
            # Closed, or beyond repair: the next one is new.
            with suppress(sqlite3.Error):
                connection.close()
            back = None
        self._put_back(connection, back)

    def _put_back(self, lent: Connection | None, back: Connection | None) -> None:
        if lent is not None:
            self._lent.pop(lent, None)
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
        durable_commit: Literal["group", "each", "shared"] = "group",
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
            durable_commit: ``"group"``: what threads ``execute`` at the same time is committed
                together. ``"each"``: every call by itself. ``"shared"``: as ``"group"``, and the
                commits of all processes that say so are durable and share their syncs: see
                ``oxlite.connect``.
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
        if durable_commit not in _BATCH_LIMITS:
            *most, last = map(repr, _BATCH_LIMITS)
            known = f"{', '.join(most)} or {last}"
            raise ValueError(f"durable_commit must be {known}, not {durable_commit!r}")
        if readers < 1:
            raise ValueError(f"readers must be at least 1, not {readers}")
        # Wherever the process goes later; pathlib takes longer to import than all of oxlite.
        self._path = os.path.abspath(name)  # noqa: PTH100
        self._timeout = timeout
        self._reader_count = readers
        self._batch_limit = _BATCH_LIMITS[durable_commit]
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
            "durable_commit": "shared" if durable_commit == "shared" else "each",
            "isolation_level": None,
            "check_same_thread": False,
        }
        self._is_closed = False
        self._until_upkeep = _UPKEEP_LOOKS_EVERY
        self._start()
        _databases.add(self)
        with self._lent_writer():
            pass

    def _start(self) -> None:
        """Begin with no connection, in this process."""
        self._readers = _Readers(self._reader_count, self._open_reader)
        self._writer = Writer(self._open_writer, self._timeout, self._batch_limit)

    def _open_writer(self) -> Connection:
        connection = connect(self._path, **self._options)
        self._set_up(connection)
        self._upkeep = Upkeep()
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
        """Refuse a closed database."""
        if self._is_closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed Database.")

    def _take_reader(self, lent: list[Connection]) -> None:
        self._check()
        readers = self._readers
        if readers.lent_to_this_thread() and not readers.statistics()[0]:
            raise sqlite3.ProgrammingError(
                "This thread is inside db.read() and would wait for itself, since all readers are"
                " in use: use the connection that db.read() has given, or open the Database with"
                f" more than {self._reader_count} readers."
            )
        if not readers.take(lent, self._timeout):
            raise PoolTimeout(
                f"all {self._reader_count} readers have been in use for {self._timeout:g} s:"
                f" {_described(readers.holders())}"
            )

    def _give_reader(self, lent: list[Connection]) -> None:
        if lent:
            self._readers.give(lent[0])

    @contextmanager
    def _lent_writer(self) -> Iterator[Connection]:
        """Borrow the writer. It is given back with its transaction rolled back if one is open."""
        self._check()
        writer = self._writer
        lent: list[Connection] = []
        try:
            try:
                writer.take(lent)
            except WriterInUse:
                raise self._writer_in_use() from None
            yield lent[0]
        finally:
            if lent:
                self._give_back(writer, lent[0])

    def _give_back(self, writer: Writer, connection: Connection) -> None:
        if writer is not self._writer:
            return  # forked inside the block: the writer is the parent's
        is_usable = False
        try:
            if connection.in_transaction:
                connection.rollback()
            is_usable = True
        except sqlite3.Error:
            pass  # closed, or beyond repair: the next one is new
        finally:
            if not is_usable:
                writer.discard()
            writer.give()

    def _writer_in_use(self) -> LockedError:
        holder = self._writer.holder()
        error = LockedError(
            "database is locked: this process's writer has been in use for"
            f" {self._timeout:g} s: {_described([holder] if holder else [])}"
        )
        error.holder = None
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        error.sqlite_errorname = "SQLITE_BUSY"
        return error

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
        lent: list[Connection] = []
        try:
            self._take_reader(lent)
            return lent[0].execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            _explain(error)
            raise
        finally:
            self._give_reader(lent)

    def query_one(self, sql: str, parameters: _Parameters = ()) -> Any:  # noqa: ANN401 - a row is what the factory makes
        """Run a query on a reader; its first row, ``None`` if it has none. Raises as ``query``."""
        lent: list[Connection] = []
        try:
            self._take_reader(lent)
            cursor = lent[0].execute(sql, parameters)
            row = cursor.fetchone()
            cursor.close()
        except sqlite3.OperationalError as error:
            _explain(error)
            raise
        finally:
            self._give_reader(lent)
        return row

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Borrow a reader for one snapshot: all its queries see the database as the first one does.

        Yields:
            The connection, in a deferred transaction. It cannot write.

        Raises:
            oxlite.PoolTimeout: No reader came back in time.
        """
        lent: list[Connection] = []
        try:
            self._take_reader(lent)
            lent[0].execute("BEGIN")
            yield lent[0]
        except sqlite3.OperationalError as error:
            _explain(error)
            raise
        finally:
            self._give_reader(lent)

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
        with self._lent_writer() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            if not connection.in_transaction:
                raise sqlite3.ProgrammingError(
                    "The transaction was ended inside db.write(), by COMMIT, by ROLLBACK or by an"
                    " error that rolls back; what came after it was committed by itself."
                )
            connection.commit()

    def execute(self, sql: str, parameters: _Parameters = ()) -> Result:
        """Run one statement on the writer, in a transaction of its own.

        With ``durable_commit="group"`` an INSERT, UPDATE, DELETE or REPLACE may share its COMMIT
        with those of other threads. It succeeds or fails as if it were alone; but a signal does not
        interrupt it once it has begun together with others.

        Args:
            sql: One statement. BEGIN, COMMIT and their like are refused.
            parameters: Its parameters.

        Returns:
            Row count, row id and rows. When it returns, the transaction is committed.

        Raises:
            oxlite.LockedError: The writer, or the lock, could not be had in time.
            oxlite.CommitOutcomeUnknown: COMMIT has failed so that nobody can tell whether it will
                be there after a crash. The writer is opened anew.
            oxlite.SyncFailedError: With ``durable_commit="shared"``: a sync has failed, here or
                elsewhere. Nothing has been done, and nothing will be.
            oxlite.sqlite3.Error: What the statement raises. It has changed nothing then, unless
                it says OR FAIL (https://sqlite.org/lang_conflict.html).
        """
        try:
            answer = self._writer.execute(sql, parameters, False)
        except WriterInUse:
            raise self._writer_in_use() from None
        # The clock is looked at now and then only.
        self._until_upkeep -= 1
        if not self._until_upkeep:
            self._until_upkeep = _UPKEEP_LOOKS_EVERY
            if self._upkeep.is_due():
                self._optimize()
        return self._execute_alone(sql, parameters) if answer is None else Result(*answer)

    def _execute_alone(self, sql: str, parameters: _Parameters) -> Result:
        """Run a statement that cannot share its transaction, or whose parameters need it."""
        with self._lent_writer() as connection:
            self._writer.forget_rowid()
            cursor = connection.execute(sql, parameters)
            rows = cursor.fetchall()
            if connection.in_transaction:
                raise sqlite3.ProgrammingError(
                    "A transaction of several statements needs db.write(); this one was rolled"
                    " back."
                )
            return Result(cursor.rowcount, self._writer.latest_rowid(), rows)

    def executemany(self, sql: str, parameters: Iterable[_Parameters]) -> Result:
        """Run one statement on the writer with each set of parameters, all in one transaction.

        A list or tuple of up to 1000 sets may share its COMMIT as with ``execute``. Raises as that
        does; an error undoes all of them.
        """
        try:
            answer = self._writer.execute(sql, parameters, True)
        except WriterInUse:
            raise self._writer_in_use() from None
        if answer is not None:
            return Result(*answer)
        with self.write() as connection:
            self._writer.forget_rowid()
            cursor = connection.executemany(sql, parameters)
            return Result(cursor.rowcount, self._writer.latest_rowid(), [])

    def checkpoint(
        self,
        mode: Literal["passive", "full", "restart", "truncate"] = "passive",
        timeout: float = 1.0,
    ) -> Checkpoint:
        """Bring the write-ahead log into the database, which also happens by itself.

        Args:
            mode: ``"passive"`` comes as far as it can without waiting, ``"full"`` waits for the
                writer and for readers of older snapshots, ``"restart"`` for all readers, so that
                the log is begun anew, and ``"truncate"`` cuts its file to nothing as well.
            timeout: For how long it waits for them, in seconds, once it has come to the head of the
                queue. Nobody else can write meanwhile.

        Returns:
            How far it came.

        Raises:
            ValueError: An unknown mode.
            oxlite.LockedError: The writer could not be had in time.
            oxlite.sqlite3.Error: What SQLite met: a full disk, a file that cannot be written.
        """
        with self._lent_writer() as connection:
            return Checkpoint(*connection.checkpoint(mode, timeout=timeout))

    def stats(self) -> DatabaseStatistics:
        """What it is doing now, and what this process has done in the queue and with the log."""
        self._check()
        idle, lent, waiting = self._readers.statistics()
        writer_waiting, batches, batched_writes = self._writer.statistics()
        connection = self._writer.connection
        queue = None if connection is None else connection.queue_statistics()
        log = None if connection is None else connection.wal_statistics()
        shared = None if connection is None else connection.shared_commit_statistics()
        return DatabaseStatistics(
            readers_idle=idle,
            readers_lent=lent,
            readers_waiting=waiting,
            writer_waiting=writer_waiting,
            batches=batches,
            batched_writes=batched_writes,
            passes=queue["passes"] if queue else 0,
            lane_waits=queue["lane_waits"] if queue else 0,
            gate_waits=queue["gate_waits"] if queue else 0,
            bypasses=queue["bypasses"] if queue else 0,
            no_gate=queue["no_gate"] if queue else None,
            wal_frames=log["frames"] if log else 0,
            checkpoints=log["checkpoints"] if log else 0,
            checkpoints_incomplete=log["checkpoints_incomplete"] if log else 0,
            checkpoint_errors=log["checkpoint_errors"] if log else 0,
            checkpoint_error=log["last_error"] if log else None,
            shared_commits=shared["commits"] if shared else 0,
            shared_syncs=shared["syncs_led"] + shared["syncs_beside"] if shared else 0,
            shared_answers=shared["answered_by_others"] if shared else 0,
            no_sharing=shared["no_sharing"] if shared else None,
            sync_failed=shared["poisoned"] if shared else None,
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
        ends = time.monotonic() + timeout
        if self._writer.connection is not None:
            self._optimize()
        kept = []
        if not self._readers.close(timeout):
            kept.append(f"readers {_described(self._readers.holders())}")
        if not self._close_writer(max(0.0, ends - time.monotonic())):
            holder = self._writer.holder()
            kept.append(f"the writer {_described([holder] if holder else [])}")
        if kept:
            raise sqlite3.OperationalError(
                f"still in use after {timeout:g} s: {'; '.join(kept)}; closed when given back"
            )

    def _close_writer(self, timeout: float) -> bool:
        """Close it, interrupting it when time is up; tell whether it has come back."""
        if self._writer.close(timeout):
            return True
        if (connection := self._writer.connection) is not None:
            with suppress(sqlite3.Error):
                connection.interrupt()
        # An interrupted statement ends at once; a thread that only holds the writer does not.
        return self._writer.close(1.0)

    def _optimize(self) -> None:
        """Have the planner's statistics looked at, unless the writer is in use."""
        lent: list[Connection] = []
        with suppress(sqlite3.Error):
            try:
                self._writer.take(lent, 0.0)
                self._upkeep.optimize(lent[0])
            finally:
                if lent:
                    self._writer.give()

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
