"""The tasks of a file, as a program has them: what can be done, what waits, what has become of it.

Invariants:
- A task is there for workers when the transaction that has enqueued it commits.
- Nothing is opened before it is needed; whoever only enqueues in transactions of his own opens
  nothing at all.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack, overload
from weakref import WeakSet

from oxlite import Database, aio
from oxlite._native import Announcement, Hearing
from oxlite.connection import ProfileName
from oxlite.notifications import joined
from oxlite.own_tables import in_transaction, rows_of
from oxlite.sqlite3 import Connection
from oxlite.tasks import store
from oxlite.tasks.claim import Claim, Outcome
from oxlite.tasks.context import TaskContext
from oxlite.tasks.errors import UnknownTask
from oxlite.tasks.result import Row, TaskResult
from oxlite.tasks.schedule import Recurring, recurring
from oxlite.tasks.statistics import QueueStatistics, statistics
from oxlite.tasks.task import Task, TaskOptions
from oxlite.tasks.time_limit import OVERTIME_SECONDS
from oxlite.tasks.worker import Worker

__all__ = ["Queue"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Queue:
    """Tasks in a file.

    >>> queue = Queue("app.db")
    >>> @queue.task(retries=3)
    ... def send_mail(address: str) -> None: ...
    >>> send_mail.enqueue("ann@example.org")

    ``oxlite worker module:queue`` runs them.

    Args:
        database: The file, which is best the one of the application: then a task can be part of its
            transactions. Or a ``Database``, which is not closed with the queue.
        profile: That of its connections, if it opens some.
    """

    def __init__(
        self, database: str | PathLike[str] | Database, *, profile: ProfileName = "web"
    ) -> None:
        self._given = database if isinstance(database, Database) else None
        given = database.path if isinstance(database, Database) else os.fspath(database)
        self._path = os.path.abspath(given)  # noqa: PTH100 - Path.absolute() leaves .. in it
        self._profile: ProfileName = profile
        self._lock = threading.Lock()
        self._database: Database | None = self._given
        self._aio: aio.Database | None = None
        self._tasks: dict[str, Task[..., Any]] = {}
        self._recurring: dict[str, Recurring] = {}
        self._workers: WeakSet[Worker] = WeakSet()

    # Tasks.

    @overload
    def task(self, function: Callable[_P, _R], /) -> Task[_P, _R]: ...

    @overload
    def task(
        self,
        *,
        name: str | None = None,
        takes_context: bool = False,
        cron: str | None = None,
        time_zone: str | tzinfo = "UTC",
        **options: Unpack[TaskOptions],
    ) -> Callable[[Callable[..., Any]], Task[..., Any]]: ...

    def task(  # type: ignore[misc]  # Unpack is not matched with **Any
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        takes_context: bool = False,
        cron: str | None = None,
        time_zone: str | tzinfo = "UTC",
        **options: Any,
    ) -> Any:
        """Decorate a function, or coroutine function, so that workers can call it.

        Args:
            function: The function.
            name: By which workers find it; by default its module and name.
            takes_context: Whether its first argument is a ``TaskContext``.
            cron: When it is enqueued, without arguments, by workers: see ``recurring``.
            time_zone: In which the line is read.
            options: See ``Task``.

        Raises:
            ValueError: There is a task of that name already, or the line is none.
            TypeError, ValueError: See ``Task``.
        """
        if function is None:
            return partial(
                self.task,
                name=name,
                takes_context=takes_context,
                cron=cron,
                time_zone=time_zone,
                **options,
            )
        made = name or f"{function.__module__}.{function.__qualname__}"
        if made in self._tasks:
            raise ValueError(
                f"there is a task {made!r} already: give this one another name, name='…'"
            )
        task: Task[..., Any] = Task(
            function=function, queue=self, name=made, takes_context=takes_context, **options
        )
        if cron is not None:
            self._recurring[made] = recurring(
                made, cron, time_zone, partial(task.parameters, (), {})
            )
        self._tasks[made] = task
        return task

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """All tasks, by name."""
        return dict(self._tasks)

    @property
    def queue_names(self) -> list[str]:
        """The names of the queues that its tasks are in."""
        return sorted({"default", *(task.queue_name for task in self._tasks.values())})

    def enqueue_many(
        self, task: Task[..., Any], arguments: Iterable[Sequence[Any]]
    ) -> list[TaskResult[Any]]:
        """Enqueue a task with each of several lists of arguments, in one transaction.

        >>> queue.enqueue_many(send_mail, [("ann@example.org",), ("bob@example.org",)])

        Raises as ``Task.enqueue``; then none is enqueued.
        """
        now = time.time()
        calls = [task.parameters(tuple(args), {}, now) for args in arguments]
        if task.connection is None:
            with self.database.write() as connection:
                return self._enqueued_all(connection, calls)
        driver = joined(task.connection)
        self._announcement().check(driver)
        with in_transaction(driver):
            return self._enqueued_all(driver, calls)

    def _enqueued_all(
        self, connection: Connection, calls: list[tuple[Any, ...]]
    ) -> list[TaskResult[Any]]:
        store.TABLES.prepare(connection)
        found = [self._enqueued(connection, call) for call in calls]
        self._announcement().follow(connection, [store.TASKS_NAME])
        return found

    def _enqueued(self, connection: Connection, call: tuple[Any, ...]) -> TaskResult[Any]:
        rows = rows_of(connection, store.ENQUEUE, call)
        if rows:
            return TaskResult(self, rows[0][1], is_new=True)
        [(number,)] = rows_of(connection, store.FIND_UNIQUE, (call[store.UNIQUE_KEY],))
        return TaskResult(self, number)

    def _enqueue(
        self, task: Task[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TaskResult[Any]:
        parameters = task.parameters(args, kwargs, time.time())
        while True:
            rows = self._written(store.ENQUEUE, parameters, task.connection)
            if rows:
                return TaskResult(self, rows[0][1], is_new=True)
            found = self._query(store.FIND_UNIQUE, (parameters[store.UNIQUE_KEY],), task.connection)
            if found:
                return TaskResult(self, found[0][0])
            # It has ended in between.

    async def _aenqueue(
        self, task: Task[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TaskResult[Any]:
        if task.connection is not None:
            return self._enqueue(task, args, kwargs)  # it waits for nobody
        parameters = task.parameters(args, kwargs, time.time())
        database = await self._opened()
        announcement = database._row_announcement(store.TOPIC_PREFIX)
        while True:
            rows = await store.TABLES.awrite(database, store.ENQUEUE, parameters, announcement)
            if rows:
                return TaskResult(self, rows[0][1], is_new=True)
            found = await self._aquery(store.FIND_UNIQUE, (parameters[store.UNIQUE_KEY],))
            if found:
                return TaskResult(self, found[0][0])

    # What waits, and what has become of it.

    def get(self, id: int) -> TaskResult[Any]:
        """What is known of a task.

        Raises:
            TaskNotFound: There is none of that number.
        """
        found: TaskResult[Any] = TaskResult(self, id)
        found.refresh()
        return found

    async def aget(self, id: int) -> TaskResult[Any]:
        """The same, for event loops."""
        found: TaskResult[Any] = TaskResult(self, id)
        await found.arefresh()
        return found

    def find(
        self,
        *,
        status: str | None = None,
        name: str | None = None,
        queue_name: str | None = None,
        at_most: int = 100,
    ) -> list[TaskResult[Any]]:
        """Tasks, the latest first.

        Args:
            status: Only those: see ``TaskResult.status``.
            name: Only those of that task.
            queue_name: Only those of that queue.
            at_most: How many.
        """
        where, parameters = _filter(status, name, queue_name)
        sql = f"{store.GET} {where} ORDER BY id DESC LIMIT {int(at_most)}"
        rows = [Row.of(row) for row in self._query(sql, parameters)]
        return [TaskResult(self, row.id, row) for row in rows]

    def ids(
        self, *, status: str | None = None, name: str | None = None, queue_name: str | None = None
    ) -> list[int]:
        """The numbers of all tasks of a kind, the first first: see ``find``."""
        where, parameters = _filter(status, name, queue_name)
        return [row[0] for row in self._query(f"SELECT id FROM oxlite_task {where}", parameters)]

    def stats(self) -> QueueStatistics:
        """How many there are of each status, by queue; how long they wait, and take."""
        return statistics(self._query)

    def cancel(self, id: int) -> str | None:
        """Cancel a task that waits; ask one that runs to end.

        Returns:
            Its status: ``cancelled``, or ``running`` if it has been asked to; ``None`` if there is
            none, or it has ended before.
        """
        rows = self._changed(store.CANCEL, (id, time.time()))
        return str(rows[0][1]) if rows else None

    def retry(self, id: int) -> bool:
        """Have a task run again that has failed, was cancelled or has expired.

        Returns:
            Whether it is one of these.

        Raises:
            oxlite.sqlite3.IntegrityError: Another one with its unique key waits or runs.
        """
        return bool(self._changed(store.RETRY, (id,)))

    def discard(self, id: int) -> bool:
        """Delete a task that does not run, and say whether there was one."""
        return bool(self._changed(store.DISCARD, (id,)))

    def pause(self, queue_name: str = "default") -> None:
        """Begin no more tasks of a queue, in any process, until ``resume``."""
        self._written(store.PAUSE, (queue_name, time.time()))

    def resume(self, queue_name: str = "default") -> bool:
        """Begin tasks of it again, and say whether it was paused."""
        return bool(self._written(store.RESUME, (queue_name,)))

    def paused(self) -> list[str]:
        """The names of the queues that are paused."""
        return [name for (name,) in self._query("SELECT queue FROM oxlite_task_pause ORDER BY 1")]

    # Workers.

    def worker(
        self,
        queue_names: Sequence[str] | None = None,
        *,
        threads: int = 4,
        told: Callable[[int, float | None], None] | None = None,
        overtime: float = OVERTIME_SECONDS,
    ) -> Worker:
        """A worker in this process: begun by ``with``, or its ``start``.

        Args:
            queue_names: Whose tasks it runs; by default those of all queues of its tasks.
            threads: So many run at the same time.
            told: If the process is there for it alone: called with a task's number and when it is
                to have ended, as ``time.monotonic`` counts; and with ``None`` when it has.
            overtime: For how many seconds a task may go on after its time limit. Then its process
                is killed, if that is there for it alone, or the task is taken from it.

        Raises:
            TypeError, ValueError: A number that none can have.
        """
        worker = Worker(
            self.database,
            self,
            self.queue_names if queue_names is None else queue_names,
            threads=threads,
            recurring=self._recurring.values(),
            told=told,
            overtime=overtime,
        )
        self._workers.add(worker)
        return worker

    def definition(self, name: str) -> Task[..., Any]:
        """The task of that name.

        Raises:
            UnknownTask: There is none in this version of the application.
        """
        task = self._tasks.get(name)
        if task is None:
            raise UnknownTask(
                f"nothing of the name {name!r} is a task of this queue: its module was not imported"
                " by the worker, or another version of the application has it"
            )
        return task

    def context(self, claim: Claim) -> TaskContext:
        """What a task knows of itself."""
        return TaskContext(claim, self.database)

    def begins(self, context: TaskContext) -> None:
        """Called by workers before a task."""

    def ends(
        self, context: TaskContext, outcome: Outcome | None, error: BaseException | None
    ) -> None:
        """Called by workers after it."""

    def drain(self, seconds: float) -> None:
        """Called by workers at their end."""

    @property
    def tells_of_failures(self) -> bool:
        """Asked by workers: nobody but they does."""
        return False

    # The file.

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    @property
    def database(self) -> Database:
        """By which it reads and writes; opened when it is first needed."""
        if (database := self._database) is None:
            with self._lock:
                database = self._database
                if database is None:
                    database = self._database = Database(self._path, profile=self._profile)
        return database

    async def _opened(self) -> aio.Database:
        with self._lock:
            if self._aio is None:
                self._aio = aio.Database(self._path, profile=self._profile)
            database = self._aio
        # What is not known to be open yet announces nothing.
        await database.open()
        return database

    def _announcement(self) -> Announcement:
        return Announcement.of_rows(self._path, store.TOPIC_PREFIX)

    def _written(
        self, sql: str, parameters: tuple[Any, ...], connection: object = None
    ) -> list[Any]:
        if connection is None:
            database = self.database
            announcement = database._row_announcement(store.TOPIC_PREFIX)
            return store.TABLES.write(database, sql, parameters, announcement)
        driver = joined(connection)
        announcement = self._announcement()
        announcement.check(driver)
        return store.TABLES.execute(driver, sql, parameters, announcement)

    def _changed(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        """Change a task by hand; another one of its kind may be ready then."""
        with self.database.write() as connection:
            rows = store.TABLES.execute(connection, sql, parameters)
            if rows:
                names = [rows[0][0], store.TASKS_NAME]
                self._announcement().follow(connection, names)
        return rows

    def _query(
        self, sql: str, parameters: tuple[Any, ...] = (), connection: object = None
    ) -> list[Any]:
        if connection is None:
            return store.TABLES.look(lambda: self.database.query(sql, parameters))
        return store.TABLES.look(lambda: rows_of(joined(connection), sql, parameters))

    async def _aquery(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        database = await self._opened()
        return await store.TABLES.alook(database.query(sql, parameters))

    @contextmanager
    def _hear_result(self, id: int) -> Iterator[Hearing]:
        hearing = self.database._hear([f"{store.TOPIC_PREFIX}{store.RESULTS_NAME}{id}"])
        try:
            yield hearing
        finally:
            hearing.close()

    def close(self) -> None:
        """Stop its workers, which finish what runs, and close its connections.

        They are opened again when it is used again.
        """
        for worker in list(self._workers):
            worker.stop()
        with self._lock:
            database, self._database = self._database, self._given
        if database is not None and database is not self._given:
            database.close()

    async def aclose(self) -> None:
        """Close those of event loops."""
        with self._lock:
            database, self._aio = self._aio, None
        if database is not None:
            await database.close()

    def __enter__(self) -> Self:
        """The queue itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()


def _filter(
    status: str | None, name: str | None, queue_name: str | None
) -> tuple[str, tuple[Any, ...]]:
    given = {"status": status, "name": name, "queue": queue_name}
    wanted = {column: value for column, value in given.items() if value is not None}
    if status is not None and status not in store.STATUSES:
        raise ValueError(f"status is one of {', '.join(store.STATUSES)}, not {status!r}")
    where = " AND ".join(f"{column} = ?{number}" for number, column in enumerate(wanted, 1))
    return (f"WHERE {where}" if where else ""), tuple(wanted.values())
