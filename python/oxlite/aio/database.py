"""A database for an asyncio application: readers and one writer, shared by all its tasks.

It is ``oxlite.Database`` with its calls awaited. Queries and writes are done by native threads
without the GIL, and what tasks write at the same time is committed together.

Invariants:
- A connection is lent to one task at a time, and comes back without a transaction and without a
  snapshot, also if the task was cancelled or its loop is no more.
- Who waits for a connection waits no longer than the timeout, also where that is still being
  opened, unless it is for its opening that he waits; what he is told was so when his time was up.
- What is done for one who waits, or waits no more, does not depend on how many others do.
- A write that has begun is neither interrupted nor repeated, whatever becomes of its task.
- In a forked child the connections of the parent are left alone, and new ones opened.
"""

import asyncio
import atexit
import time
from asyncio import AbstractEventLoop, CancelledError, Future
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Any, Literal, Self
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, ref

from oxlite import sqlite3
from oxlite._native import (
    Announcement,
    Connections,
    LockedError,
    Mailbox,
    WriterInUse,
    prepare_notifications,
    wait_at_most,
)
from oxlite.aio.connection import Connection
from oxlite.aio.listener import Listener, notify_with
from oxlite.aio.loan import Loan
from oxlite.aio.loops import SerialExecutor, current, forget_closed, reply, silence
from oxlite.database.base import CHUNK_SIZE, DatabaseBase, check_chunk_size
from oxlite.database.errors import (
    described,
    explain_refusal,
    is_being_opened,
    locked,
    reader_for_itself,
    readers_in_use,
    still_in_use,
    writer_for_itself,
    writer_in_use,
)
from oxlite.database.planner_statistics import PlannerStatistics
from oxlite.database.result import Checkpoint, Result
from oxlite.database.transaction import (
    Parameters,
    commit_begun,
    execute_alone,
    executemany_alone,
    make_idle,
    refuse_transaction,
)
from oxlite.notifications import INSERT, Payload, encoded, is_missing

__all__ = ["Database"]


# How long a connection that is free may take to come from a native thread, in seconds.
_HAND_OVER_WITHIN = 0.05

# How long the process's end waits for writes that have begun, in seconds.
_LAST_WRITES_WITHIN = 5.0

# Whose writes the process's end waits for.
_databases: "WeakSet[Database]" = WeakSet()


def _finish() -> None:
    silence()
    for database in list(_databases):
        database._end()


atexit.register(_finish)


class Database(DatabaseBase):
    """A database file, read by several connections and written by one; for all tasks.

    >>> async with oxlite.aio.Database("app.db") as db:
    ...     await db.execute("INSERT INTO note (text) VALUES (?)", ("hello",))
    ...     await db.query_one("SELECT text FROM note WHERE id = ?", (1,))
    ...     async with db.write() as connection:
    ...         await connection.execute("UPDATE note SET text = 'bye'")
    ...         await connection.execute("DELETE FROM note WHERE text = ''")

    It may be made anywhere, and used in any number of event loops. It opens its connections when
    they are first needed; entering it (or ``await``) opens the writer, so that what is wrong is
    known at once. After a fork it opens connections of its own.
    """

    def _start(self) -> None:
        factory = self._factory
        self._readers = Connections(
            factory.reader, self._reader_count, 1, self._timeout, factory.profile
        )
        self._writer = Connections(
            self._new_writer, 1, factory.batch_limit, self._timeout, factory.profile
        )
        self._writing: sqlite3.Connection | None = None
        self._planner_statistics = PlannerStatistics()
        # Which tasks have which connections, since when.
        self._lent: dict[sqlite3.Connection, tuple[str, float]] = {}
        # Which task is in a block that has the writer.
        self._writes: ReferenceType[asyncio.Task[Any]] | None = None
        # How many readers the tasks have that are in blocks of ``read``.
        self._reads: dict[ReferenceType[asyncio.Task[Any]], int] = {}
        self._loans: WeakKeyDictionary[AbstractEventLoop, WeakSet[Loan]] = WeakKeyDictionary()
        # In which loops somebody may wait too long.
        self._watched: dict[Mailbox, ReferenceType[AbstractEventLoop]] = {}

    def _begin(self) -> None:
        _databases.add(self)

    def _new_writer(self) -> sqlite3.Connection:
        self._writing = connection = self._factory.writer()
        self._planner_statistics = PlannerStatistics()
        return connection

    async def open(self) -> Self:
        """Open the writer, unless it is open. That takes as long as it takes, whatever the timeout.

        Raises:
            oxlite.sqlite3.Error: As ``oxlite.connect``.
        """
        while True:
            try:
                async with self._borrowed(self._writer):
                    return self
            except LockedError as error:
                if not is_being_opened(error):
                    raise

    def __await__(self) -> Generator[Any, None, Self]:
        """Open it."""
        return self.open().__await__()

    async def query(self, sql: str, parameters: Parameters = ()) -> list[Any]:
        """Run a query on a reader.

        Cancelling interrupts it. The event loop goes on while a long result becomes objects.

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
        rows: list[Any] = await self._read(sql, parameters, False)
        if not rows:
            refuse_transaction(sql)
        return rows

    async def query_one(self, sql: str, parameters: Parameters = ()) -> Any:  # noqa: ANN401 - a row is what the factory makes
        """Run a query on a reader; its first row, ``None`` if it has none. Raises as ``query``."""
        row = await self._read(sql, parameters, True)
        if row is None:
            refuse_transaction(sql)
        return row

    async def _read(self, sql: str, parameters: Parameters, is_one: bool) -> Any:  # noqa: ANN401
        if self._reads:
            self._refuse_to_wait_for_own_reader()
        loop, mailbox = current()
        future: Future[Any] = loop.create_future()
        job = self._readers.read(mailbox, future, sql, parameters, is_one)
        if job is None:
            return await self._read_alone(sql, parameters, is_one)
        if mailbox not in self._watched:
            self._watch(loop, mailbox)
        try:
            return await reply(job, future)
        except sqlite3.OperationalError as error:
            explain_refusal(error)
            raise
        finally:
            del future

    async def _read_alone(self, sql: str, parameters: Parameters, is_one: bool) -> Any:  # noqa: ANN401
        """Run a query whose parameters only the driver can tell."""

        def read(connection: sqlite3.Connection) -> object:
            cursor = connection.execute(sql, parameters)
            rows = cursor.fetchone() if is_one else cursor.fetchall()
            cursor.close()
            return rows

        async with self._borrowed(self._readers) as connection:
            return await connection.run_sync(read)

    async def stream(
        self, sql: str, parameters: Parameters = (), *, chunk_size: int = CHUNK_SIZE
    ) -> AsyncIterator[Any]:
        """Run a query on a reader, row by row: for results that are too large to hold.

        No more rows are fetched than are asked for, but for those of one chunk. The reader is in
        use, and keeps its snapshot, until the iteration ends: leave it early with
        ``contextlib.aclosing``.

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
        has_rows = False
        async with self._borrowed(self._readers) as connection:
            try:
                cursor = await connection.execute(sql, parameters)
            except sqlite3.OperationalError as error:
                explain_refusal(error)
                raise
            while rows := await cursor.fetchmany(chunk_size):
                has_rows = True
                for row in rows:
                    yield row
        if not has_rows:
            refuse_transaction(sql)

    async def execute(self, sql: str, parameters: Parameters = ()) -> Result:
        """Run one statement on the writer, in a transaction of its own.

        An INSERT, UPDATE, DELETE or REPLACE may share its COMMIT with those of other tasks, as
        ``durable_commit`` says. It succeeds or fails as if it were alone. Cancelling withdraws it
        as long as it waits, for the writer or for the lock; once it has begun it goes on to its
        end, and whether it succeeds is not told.

        Args:
            sql: One statement. BEGIN, COMMIT and their like are refused.
            parameters: Its parameters.

        Returns:
            Row count, row id and rows. When it returns, the transaction is committed.

        Raises:
            oxlite.LockedError: The writer, or the lock, could not be had in time.
            oxlite.CommitOutcomeUnknown: COMMIT has failed so that nobody can tell whether it will
                be there after a crash. The writer is opened anew.
            oxlite.SyncFailedError: With ``durable_commit="shared"``: a sync has failed.
            oxlite.sqlite3.Error: What the statement raises. It has changed nothing then, unless
                it says OR FAIL (https://sqlite.org/lang_conflict.html).
        """
        answer = await self._write(sql, parameters, False)
        if answer is None:
            answer = await self._execute_alone(sql, parameters)
        if self._planner_statistics.is_due():
            await self._optimize()
        return answer

    async def executemany(self, sql: str, parameters: Iterable[Parameters]) -> Result:
        """Run one statement on the writer with each set of parameters, all in one transaction.

        A list or tuple of up to 1000 sets may share its COMMIT as with ``execute``. Raises as that
        does; an error undoes all of them.
        """
        answer = await self._write(sql, parameters, True)
        if answer is not None:
            return answer
        async with self.write() as connection:
            return await connection.run_sync(executemany_alone, sql, parameters)

    async def notify(
        self, channel: str, payload: Payload = None, *, connection: object = None
    ) -> None:
        """Notify whoever listens to a channel, in any process, once this is committed.

        As ``oxlite.Database.notify``; it is part of the transaction of ``connection`` if that is
        given: what ``write`` has given, or a session or connection of SQLAlchemy's asyncio.
        """
        self._check()
        announcement = self._announcement(channel)
        stored = encoded(payload)
        if connection is not None:
            await notify_with(connection, announcement, channel, stored)
            return
        try:
            if self._can_notify:
                await self._write(INSERT, (channel, stored), False, announcement)
                return
        except sqlite3.OperationalError as error:
            if not is_missing(error):
                raise
        await self._prepare_notifications()
        self._can_notify = True
        await self._write(INSERT, (channel, stored), False, announcement)

    async def _prepare_notifications(self) -> None:
        async with self._borrowed(self._writer) as connection:
            await connection.run_sync(prepare_notifications)

    async def _prepare_listening(self) -> None:
        """Make the table, so that other programs can insert; if it can be made."""
        if not self._has_notifications():
            with suppress(sqlite3.Error):
                await self._prepare_notifications()

    def listen(
        self, *channels: str, since: str | None = None, timeout: float | None = None
    ) -> Listener:
        """Listen to channels, from this call on.

        >>> async for note in db.listen("orders", "chat.*"):
        ...     print(note.channel, note.payload)

        The first call opens a reader for all who listen. Arguments and errors are those of
        ``oxlite.Database.listen``; but where another program has the file for itself (which is
        not so in WAL mode, as a rule), ``LockedError`` comes at once.
        """
        subscription = self._subscribe(channels, since)
        return Listener(subscription, timeout, self._prepare_listening, self)

    async def _write(
        self,
        sql: str,
        parameters: object,
        is_many: bool,
        announcement: Announcement | None = None,
    ) -> Result | None:
        """Have a data modification done; ``None`` if it can only be done with the connection."""
        self._refuse_to_wait_for_own_writer()
        loop, mailbox = current()
        future: Future[tuple[int, int | None, list[Any]]] = loop.create_future()
        job = self._writer.write(mailbox, future, sql, parameters, is_many, announcement)
        if job is None:
            return None
        if mailbox not in self._watched:
            self._watch(loop, mailbox)
        try:
            return Result(*await reply(job, future))
        except WriterInUse as error:
            raise locked(str(error)) from None
        finally:
            del future

    async def _execute_alone(self, sql: str, parameters: Parameters) -> Result:
        """Run a statement that cannot share its transaction, or whose parameters need it."""
        async with self._borrowed(self._writer) as connection:
            return await connection.run_sync(execute_alone, sql, parameters)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Connection]:
        """Borrow a reader for one snapshot: all its queries see the database as the first one does.

        Yields:
            The connection, in a deferred transaction. It cannot write.

        Raises:
            oxlite.PoolTimeout: No reader came back in time.
        """
        try:
            async with self._borrowed(self._readers) as connection:
                await connection.execute("BEGIN")
                wait_at_most(connection._connection, None)
                with self._reading():
                    yield connection
        except sqlite3.OperationalError as error:
            explain_refusal(error)
            raise

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Note that this task is in a block that has a reader."""
        task = asyncio.current_task()
        mine = None if task is None else ref(task)
        if mine is not None:
            self._reads[mine] = self._reads.get(mine, 0) + 1
        try:
            yield
        finally:
            if mine is not None and (left := self._reads.pop(mine, 1) - 1):
                self._reads[mine] = left

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Connection]:
        """Borrow the writer for one transaction: committed, or rolled back on an exception.

        A task that is cancelled inside the block has its transaction rolled back; one that is
        cancelled while it commits is not told whether it has. The task that enters the block is
        the one that leaves it: it is refused the writer meanwhile.

        Yields:
            The connection, which has the write lock: BEGIN IMMEDIATE has been executed.

        Raises:
            oxlite.LockedError: The writer, or the lock, could not be had in time.
            oxlite.sqlite3.ProgrammingError: This task has the writer already; or the transaction
                was ended inside the block.
        """
        async with self._borrowed(self._writer) as connection:
            await connection.execute("BEGIN IMMEDIATE")
            # What the block does are calls of their own.
            wait_at_most(connection._connection, None)
            yield connection
            await connection.run_sync(commit_begun)

    @asynccontextmanager
    async def _borrowed(
        self, connections: Connections, within: float | None = None
    ) -> AsyncIterator[Connection]:
        """Borrow a connection. It is given back with its transaction rolled back if one is open.

        Args:
            connections: The readers, or the writer.
            within: When the wait is broken off, in seconds; else it ends with the timeout.

        Raises:
            TimeoutError: It was broken off.
        """
        is_writer = connections is self._writer
        if is_writer:
            self._refuse_to_wait_for_own_writer()
        elif self._reads:
            self._refuse_to_wait_for_own_reader()
        async with asyncio.timeout(within) if within is not None else nullcontext():
            loan, connection = await self._take(connections)
        mine = None
        if is_writer and (task := asyncio.current_task()) is not None:
            self._writes = mine = ref(task)
        try:
            yield connection
        except (CancelledError, GeneratorExit):
            loan.leave()  # who is cancelled goes on at once; and perhaps no loop runs
            raise
        finally:
            # The writer may come back a little later.
            if self._writes is mine:
                self._writes = None
            await loan.end()

    def _refuse_to_wait_for_own_writer(self) -> None:
        """Refuse a task that has the writer, and would wait for it."""
        if self._writes is not None and self._writes() is asyncio.current_task():
            raise writer_for_itself("task")

    def _refuse_to_wait_for_own_reader(self) -> None:
        """Refuse a task that has all readers, and would wait for one."""
        task = asyncio.current_task()
        if task is not None and self._reads.get(ref(task), 0) >= self._reader_count:
            raise reader_for_itself("task", self._reader_count)

    async def _take(self, connections: Connections) -> tuple[Loan, Connection]:
        loop, mailbox = current()
        future: Future[sqlite3.Connection] = loop.create_future()
        job = connections.take(mailbox, future)
        if mailbox not in self._watched:
            self._watch(loop, mailbox)
        loan = Loan(connections, job, future, self._keeps, self._take_back)
        loans = self._loans.get(loop)
        if loans is None:
            self._loans[loop] = loans = WeakSet()
        loans.add(loan)
        try:
            driver = await future
        except BaseException as error:
            loan.leave()  # it may have come at the very moment
            if isinstance(error, WriterInUse):
                raise locked(str(error)) from None
            raise
        finally:
            del future
        task = asyncio.current_task()
        name = "somebody" if task is None else f"task {task.get_name()!r}"
        self._lent[driver] = (name, time.monotonic())
        return loan, loan.begin(driver)

    def _keeps(self, connections: Connections) -> bool:
        """Whether these are its readers or its writer, and not what a fork has left with them."""
        return connections is self._readers or connections is self._writer

    def _take_back(self, connections: Connections, connection: sqlite3.Connection) -> None:
        """In the connection's own turn, the last one."""
        self._lent.pop(connection, None)
        is_writer = self._is_closed and connection is self._writing
        restore = self._planner_statistics.optimize if is_writer else self._factory.restore
        is_usable = make_idle(connection, restore)
        if not is_usable:
            with suppress(sqlite3.Error):
                connection.close()
        # In the place of one that is closed a new one is opened.
        if not connections.give(connection if is_usable else None) and is_usable:
            with suppress(sqlite3.Error):
                connection.close()

    def _holders(self, connections: Connections | None = None) -> list[tuple[str, float]]:
        """Who has a connection, and for how many seconds."""
        now = time.monotonic()
        is_writer = connections is self._writer
        return [
            (name, now - since)
            for connection, (name, since) in tuple(self._lent.items())
            if (connection is self._writing) == is_writer
        ]

    def _readers_in_use(self) -> str:
        idle, working, _, opening, *_ = self._readers.statistics()
        holders = self._holders()
        return readers_in_use(
            self._reader_count, self._timeout, holders, working - opening, opening, idle
        )

    def _writer_in_use(self) -> str:
        idle, working, _, opening, *_ = self._writer.statistics()
        holders = self._holders(self._writer)
        return writer_in_use(self._timeout, holders, working - opening, opening, idle)

    def _watch(self, loop: AbstractEventLoop, mailbox: Mailbox) -> None:
        """See to it that nobody in this loop waits for longer than the timeout."""
        self._reclaim()
        for other, watched in list(self._watched.items()):
            its_loop = watched()
            if its_loop is None or its_loop.is_closed():
                self._watched.pop(other, None)
        self._watched[mailbox] = ref(loop)
        timeout = max(self._timeout, _HAND_OVER_WITHIN)

        itself = ref(self)

        def look() -> None:
            this = itself()
            if this is None:
                return
            this._watched.pop(mailbox, None)
            this._reclaim()
            rest = [
                this._readers.expire(timeout, this._readers_in_use, False),
                this._writer.expire(timeout, this._writer_in_use, True),
            ]
            waits = [seconds for seconds in rest if seconds is not None]
            if waits:
                this._watched[mailbox] = ref(loop)
                loop.call_later(min(waits), look)

        loop.call_later(timeout, look)

    def _reclaim(self) -> None:
        """Take back what was lent in loops that were closed: nobody there gives it back."""
        forget_closed()
        for reference in self._loans.keyrefs():
            loop = reference()
            if loop is not None and loop.is_closed():
                for loan in list(self._loans.pop(loop, ())):
                    loan.leave()

    async def checkpoint(
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

        def checkpoint(connection: sqlite3.Connection) -> tuple[bool, int, int]:
            return connection.checkpoint(mode, timeout=timeout)

        async with self._borrowed(self._writer) as connection:
            return Checkpoint(*await connection.run_sync(checkpoint))

    async def _optimize(self) -> None:
        """Have the planner's statistics looked at, unless the writer is in use."""
        with suppress(sqlite3.Error, TimeoutError):
            async with self._borrowed(self._writer, _HAND_OVER_WITHIN) as connection:
                await connection.run_sync(self._planner_statistics.optimize)

    def _counts(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        idle, working, lent, _, waiting, _, _ = self._readers.statistics()
        *_, writer_waiting, batches, batched_writes = self._writer.statistics()
        return (idle, working + lent, waiting), (writer_waiting, batches, batched_writes)

    def _open_writer(self) -> sqlite3.Connection | None:
        return self._writing

    async def close(self, timeout: float = 5.0) -> None:
        """Close all connections. Closing twice is allowed.

        Args:
            timeout: How long one waits for those that are in use, in seconds; then their statements
                are interrupted.

        Raises:
            oxlite.sqlite3.OperationalError: A task keeps its connection all the same; it is closed
                when that gives it back.
        """
        if self._is_closed:
            return
        self._reclaim()
        kept = await asyncio.shield(SerialExecutor().call_anyway(self._close_now, timeout))
        if kept:
            raise still_in_use(timeout, kept)

    def _close_now(self, timeout: float) -> list[str]:
        """Close all, waiting for what is under way; who keeps a connection all the same."""
        if self._is_closed:
            return []
        self._is_closed = True
        self._end_listening()
        ends = time.monotonic() + timeout
        kept = []
        for connections in (self._readers, self._writer):
            # All who wait are sent away before anybody is waited for.
            self._close_idle(connections.close(0.0)[0])
        for connections, name in ((self._readers, "readers"), (self._writer, "the writer")):
            if not self._close_these(connections, max(0.0, ends - time.monotonic())):
                holders = self._holders(connections)
                kept.append(f"{name} {described(holders)}" if holders else f"{name} by a statement")
        return kept

    def _close_these(self, connections: Connections, timeout: float, grace: float = 1.0) -> bool:
        """Close these, interrupting what reads when time is up; tell whether all have come back."""
        idle, have_come = connections.close(timeout)
        if not have_come:
            connections.interrupt_reads()
            users = [lent for lent in tuple(self._lent) if lent is not self._writing]
            if connections is self._writer:
                users = [] if self._writing is None else [self._writing]
            for connection in users:
                with suppress(sqlite3.Error):
                    connection.interrupt()
            # An interrupted statement ends at once; a task that only holds its connection does not.
            self._close_idle(idle)
            idle, have_come = connections.close(grace)
        self._close_idle(idle)
        return have_come

    def _close_idle(self, idle: list[sqlite3.Connection]) -> None:
        for connection in idle:
            if connection is self._writing:
                self._planner_statistics.optimize(connection)
            with suppress(sqlite3.Error):
                connection.close()

    def _end(self) -> None:
        """The process ends: nobody waits for reads, nor comes back who has borrowed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._readers.end()
        self._writer.end()
        is_lent = self._writer.statistics()[2]
        self._close_these(self._writer, 0.0 if is_lent else _LAST_WRITES_WITHIN, 0.1)
        self._close_these(self._readers, 0.0, 0.1)

    async def __aenter__(self) -> Self:
        """Open it; it is closed at the end of the block."""
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()
