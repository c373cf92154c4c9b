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

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType
from typing import Any, Literal, Self, cast

from oxlite import sqlite3
from oxlite._native import (
    Announcement,
    Loan,
    LockedError,
    PoolTimeout,
    Writer,
    WriterInUse,
    prepare_notifications,
    wait_at_most,
)
from oxlite.database.base import CHUNK_SIZE, DatabaseBase, check_chunk_size
from oxlite.database.errors import (
    described,
    explain_refusal,
    locked,
    reader_for_itself,
    readers_in_use,
    still_in_use,
    writer_in_use,
)
from oxlite.database.planner_statistics import PlannerStatistics
from oxlite.database.readers import Readers
from oxlite.database.result import Checkpoint, Result
from oxlite.database.transaction import (
    Parameters,
    commit_begun,
    execute_alone,
    executemany_alone,
    make_idle,
    refuse_transaction,
)
from oxlite.notifications import (
    INSERT,
    Listener,
    Payload,
    channels_of,
    encoded,
    insert,
    is_missing,
    joined,
)
from oxlite.sqlite3 import Connection

__all__ = ["Database"]

_Rows = list[Any]


class Database(DatabaseBase):
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

    Its writer is opened at once, so that what is wrong is known then. After a fork it opens
    connections of its own.
    """

    def _begin(self) -> None:
        with self._lent_writer():
            pass

    def _start(self) -> None:
        self._readers = Readers(self._reader_count, self._factory.reader)
        self._writer = Writer(
            self._new_writer, self._timeout, self._factory.batch_limit, self._factory.profile
        )

    def _new_writer(self) -> Connection:
        connection = self._factory.writer()
        self._planner_statistics = PlannerStatistics()
        return connection

    def _take_reader(self, loan: Loan) -> Connection:
        self._check()
        if self._readers.lends_all_to_this_thread():
            raise reader_for_itself("thread", self._reader_count)
        connection = self._readers.take(loan, self._timeout)
        if connection is None:
            holders = _named(self._readers.holders())
            raise PoolTimeout(readers_in_use(self._reader_count, self._timeout, holders))
        return connection

    @contextmanager
    def _lent_writer(self) -> Iterator[Connection]:
        """Borrow the writer. It is given back with its transaction rolled back if one is open."""
        loan = Loan()
        try:
            yield self._take_writer(loan)
        finally:
            _give_back(loan, self._restore_writer)

    def _take_writer(self, loan: Loan) -> Connection:
        self._check()
        try:
            self._writer.take(loan)
        except WriterInUse:
            raise self._writer_in_use() from None
        return cast(Connection, loan.connection)

    def _restore_writer(self, connection: Connection) -> None:
        """For the next borrower, or for its end."""
        if self._is_closed:
            self._planner_statistics.optimize(connection)
        else:
            self._factory.restore(connection)

    def _writer_in_use(self) -> LockedError:
        holder = self._writer.holder()
        holders = _named([holder] if holder else [])
        return locked(writer_in_use(self._timeout, holders, idle=not holders))

    def query(self, sql: str, parameters: Parameters = ()) -> _Rows:
        """Run a query on a reader.

        Args:
            sql: One statement that reads.
            parameters: Its parameters, as for ``execute`` of a connection.

        Returns:
            All rows: tuples, or what the row factory makes.

        Raises:
            oxlite.sqlite3.OperationalError: Among others ``SQLITE_READONLY``, for a statement that
                writes.
            oxlite.sqlite3.ProgrammingError: BEGIN and SAVEPOINT.
            oxlite.PoolTimeout: No reader came back in time.
        """
        loan = Loan()
        try:
            rows = self._take_reader(loan).execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            explain_refusal(error)
            raise
        finally:
            _give_back(loan)
        if not rows:
            refuse_transaction(sql)
        return rows

    def query_one(self, sql: str, parameters: Parameters = ()) -> Any:  # noqa: ANN401 - a row is what the factory makes
        """Run a query on a reader; its first row, ``None`` if it has none. Raises as ``query``."""
        loan = Loan()
        try:
            cursor = self._take_reader(loan).execute(sql, parameters)
            row = cursor.fetchone()
            cursor.close()
        except sqlite3.OperationalError as error:
            explain_refusal(error)
            raise
        finally:
            _give_back(loan)
        if row is None:
            refuse_transaction(sql)
        return row

    def stream(
        self, sql: str, parameters: Parameters = (), *, chunk_size: int = CHUNK_SIZE
    ) -> Iterator[Any]:
        """Run a query on a reader, row by row: for results that are too large to hold.

        No more rows are fetched than are asked for, but for those of one chunk. The reader is in
        use, and keeps its snapshot, until the iteration ends: leave it early with
        ``contextlib.closing``.

        Args:
            sql: One statement that reads.
            parameters: Its parameters.
            chunk_size: How many rows are fetched at once.

        Yields:
            Its rows.

        Raises:
            ValueError: ``chunk_size`` is not positive.
            oxlite.sqlite3.Error: As ``query``.
        """
        check_chunk_size(chunk_size)
        loan = Loan()
        has_rows = False
        try:
            cursor = self._take_reader(loan).execute(sql, parameters)
            while rows := cursor.fetchmany(chunk_size):
                has_rows = True
                yield from rows
        except sqlite3.OperationalError as error:
            explain_refusal(error)
            raise
        finally:
            _give_back(loan)
        if not has_rows:
            refuse_transaction(sql)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Borrow a reader for one snapshot: all its queries see the database as the first one does.

        Yields:
            The connection, in a deferred transaction. It cannot write.

        Raises:
            oxlite.PoolTimeout: No reader came back in time.
        """
        loan = Loan()
        try:
            connection = self._take_reader(loan)
            connection.execute("BEGIN")
            wait_at_most(connection, None)  # what the block does are calls of their own
            yield connection
        except sqlite3.OperationalError as error:
            explain_refusal(error)
            raise
        finally:
            _give_back(loan, self._factory.restore)

    def write(self) -> AbstractContextManager[Connection]:
        """Borrow the writer for one transaction: committed, or rolled back on an exception.

        Returns:
            A context manager of one use. It gives the connection, which has the write lock: BEGIN
            IMMEDIATE has been executed.

        Raises:
            oxlite.LockedError: The writer, or the lock, could not be had in time.
            oxlite.sqlite3.ProgrammingError: This thread has the writer already; or the transaction
                was ended inside the block.
        """
        return _Transaction(self)

    def execute(self, sql: str, parameters: Parameters = ()) -> Result:
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
        result = self._write(sql, parameters)
        if result is None:
            result = self._execute_alone(sql, parameters)
        if self._planner_statistics.is_due():
            self._optimize()
        return result

    def _execute_alone(self, sql: str, parameters: Parameters) -> Result:
        """Run a statement that cannot share its transaction, or whose parameters need it."""
        with self._lent_writer() as connection:
            return execute_alone(connection, sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters]) -> Result:
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
            return executemany_alone(connection, sql, parameters)

    def notify(self, channel: str, payload: Payload = None, *, connection: object = None) -> None:
        """Notify whoever listens to a channel, in any process, once this is committed.

        Args:
            channel: Its name: up to 255 bytes of UTF-8.
            payload: Text or bytes as they are, ``None``, or anything that can be JSON; up to a
                mebibyte.
            connection: Whose transaction it is part of: what ``write`` or ``oxlite.connect`` has
                given, a ``Session`` or ``Connection`` of SQLAlchemy's, or a Django alias. It is
                delivered when that commits, and never if it is rolled back. Without it, it is a
                transaction of its own, as with ``execute``.

        Raises:
            ValueError: A name or payload that is too long.
            TypeError: A payload that cannot be JSON, or what is no connection.
            oxlite.sqlite3.ProgrammingError: This thread has the writer: say ``connection=``.
            oxlite.sqlite3.Error: As ``execute``.
        """
        self._check()
        announcement = self._announcement(channel)
        stored = encoded(payload)
        if connection is not None:
            insert(joined(connection), announcement, channel, stored)
            return
        try:
            if self._can_notify:
                self._write(INSERT, (channel, stored), announcement)
                return
        except sqlite3.OperationalError as error:
            if not is_missing(error):
                raise
        with self._lent_writer() as writer:
            prepare_notifications(writer)
        self._can_notify = True
        self._write(INSERT, (channel, stored), announcement)

    def _write(
        self, sql: str, parameters: Parameters, announcement: Announcement | None = None
    ) -> Result | None:
        """Have a data modification done; ``None`` if it can only be done with the connection."""
        try:
            answer = self._writer.execute(sql, parameters, False, announcement)
        except WriterInUse:
            raise self._writer_in_use() from None
        return None if answer is None else Result(*answer)

    def listen(
        self, *channels: str, since: str | None = None, timeout: float | None = None
    ) -> Listener:
        """Listen to channels, from this call on.

        Nothing is polled: whoever listens is woken by the commit, in whatever process it is; what
        other programs insert into ``oxlite_notification`` is heard within some milliseconds.

        Args:
            channels: Their names; ``chat.*`` is all that begin with ``chat.``, ``*`` is all.
            since: The position of the last notification that was seen, to go on after it.
            timeout: How long one waits for the next one, in seconds, before the iteration ends;
                for ever with ``None``.

        Returns:
            An iterator of notifications. Close it, or let it go, to listen no longer.

        Raises:
            oxlite.NotificationsLost: What follows ``since`` is not kept any more.
            ValueError: ``since`` is no position, or a channel no name.
            oxlite.sqlite3.Error: The database cannot be read.
        """
        self._check()
        channels_of(channels)
        if not self._has_notifications():
            # So that other programs can insert. Where it cannot be made, whoever notifies makes it.
            with suppress(sqlite3.Error), self._lent_writer() as writer:
                prepare_notifications(writer)
        ends = time.monotonic() + self._timeout
        while True:
            try:
                return Listener(self._subscribe(channels, since), timeout, self)
            except LockedError:
                # Signals are heard in between, and others can use the connection.
                if time.monotonic() >= ends:
                    raise

    def checkpoint(
        self,
        mode: Literal["passive", "full", "restart", "truncate"] = "passive",
        timeout: float = 1.0,
    ) -> Checkpoint:
        """Bring the write-ahead log into the database, which also happens by itself.

        Args:
            mode: ``"passive"`` comes as far as it can without waiting, ``"full"`` waits for the
                writer and for readers of older snapshots, ``"restart"`` for all readers, so that
                the WAL is begun anew, and ``"truncate"`` cuts its file to nothing as well.
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

    def _counts(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        return self._readers.statistics(), self._writer.statistics()

    def _open_writer(self) -> Connection | None:
        return self._writer.connection

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
        self._end_listening()
        if self._writer.connection is not None:
            self._optimize()
        # All who wait are sent away before anybody is waited for.
        self._readers.refuse()
        self._writer.close(0.0)
        kept = []
        if not self._readers.wait_for_all(timeout):
            kept.append(f"readers {described(_named(self._readers.holders()))}")
        if not self._close_writer(max(0.0, ends - time.monotonic())):
            holder = self._writer.holder()
            kept.append(f"the writer {described(_named([holder] if holder else []))}")
        if kept:
            raise still_in_use(timeout, kept)

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
        loan = Loan()
        with suppress(sqlite3.Error):
            try:
                self._writer.take(loan, 0.0)
                self._planner_statistics.optimize(cast(Connection, loan.connection))
            finally:
                loan.give_back(True)

    def __enter__(self) -> Self:
        """The database, which is closed at the end of the block; one that is closed is refused."""
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()


class _Transaction:
    """``Database.write``. Not a generator, which would take 5 microseconds more."""

    __slots__ = ("_connection", "_database", "_loan")

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loan = Loan()

    def __enter__(self) -> Connection:
        try:
            # In a forked child the loan has none any more.
            self._connection = connection = self._database._take_writer(self._loan)
            connection.execute("BEGIN IMMEDIATE")
            wait_at_most(connection, None)  # what the block does are calls of their own
        except BaseException:
            _give_back(self._loan, self._database._restore_writer)
            raise
        return connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                commit_begun(self._connection)
        finally:
            _give_back(self._loan, self._database._restore_writer)


def _give_back(loan: Loan, restore: Callable[[Connection], object] | None = None) -> None:
    """Give back what is lent, with its transaction rolled back if one is open; see ``make_idle``.

    Where a signal handler raises in here, it is given back when nobody knows of the loan any more.
    """
    connection = loan.connection
    loan.give_back(connection is not None and make_idle(connection, restore))


def _named(holders: Iterable[tuple[int, float]]) -> list[tuple[str, float]]:
    """Which threads have connections, and for how many seconds."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [(f"thread {names.get(thread, 'ended')!r}", seconds) for thread, seconds in holders]
