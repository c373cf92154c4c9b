"""What becomes of a task, for who has enqueued it.

The words are those of ``django.tasks``.
"""

import asyncio
import json
import select
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

from oxlite.own_tables import text_of
from oxlite.tasks import store
from oxlite.tasks.arguments import decoded, moment
from oxlite.tasks.errors import TaskNotFound, TaskUnsuccessful

if TYPE_CHECKING:
    from oxlite.tasks.queue import Queue

__all__ = ["Row", "TaskError", "TaskResult"]

_T = TypeVar("_T")

_SIGNALS_SECONDS: Final = 3600.0


class Row(NamedTuple):
    """A row, as ``store.GET`` has it."""

    id: int
    queue: str
    name: str
    arguments: str
    status: str
    priority: int
    enqueued_at: float
    run_after: float | None
    started_at: float | None
    attempted_at: float | None
    finished_at: float | None
    attempt: int
    worker: str | None
    result: str | None
    errors: str | None
    is_cancel_requested: int

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> "Row":
        """That of ``store.GET``."""
        return cls._make(text_of(one) if isinstance(one, bytes) else one for one in row)

    def call(self) -> tuple[list[Any], dict[str, Any]]:
        """Its arguments.

        Raises:
            ValueError: They are none.
        """
        return decoded(self.name, self.arguments)

    def value(self) -> Any:  # noqa: ANN401
        """What it has returned."""
        return None if self.result is None else json.loads(self.result)

    def all_errors(self) -> "list[TaskError]":
        """What its attempts have ended with."""
        try:
            found = json.loads(self.errors or "[]")
        except ValueError:  # another program has written it
            return []
        found = found if isinstance(found, list) else []
        return [_error(each) for each in found if isinstance(each, dict)]


class TaskError(NamedTuple):
    """An error that an attempt has ended with.

    Attributes:
        exception_class_path: Module and name of its class.
        message: What it says.
        traceback: As Python prints it; empty where the process has ended.
        worker: Whose attempt it was.
        attempt: Which one.
        at: When.
    """

    exception_class_path: str
    message: str
    traceback: str
    worker: str
    attempt: int
    at: datetime | None


class TaskResult(Generic[_T]):
    """What is known of a task.

    It is as it was when it was last read: by ``refresh``, ``wait``, or who has made it.

    Attributes:
        id: Its number.
        is_new: Whether it was made by this call of ``enqueue``: not if it is unique, and was there.
    """

    def __init__(
        self, queue: "Queue", id: int, row: Row | None = None, is_new: bool = False
    ) -> None:
        self._queue = queue
        self.id = id
        self.is_new = is_new
        self._row = row

    def __repr__(self) -> str:
        """Its number, and what was read of it last."""
        row = self._row
        return f"<TaskResult {self.id}{'' if row is None else f' {row.name} {row.status}'}>"

    @property
    def row(self) -> Row:
        """All that is written of it."""
        if self._row is None:
            self.refresh()
        return cast(Row, self._row)

    @property
    def status(self) -> str:
        """One of ``scheduled``, ``blocked``, ``ready`` and ``running``, or how it has ended.

        That is ``successful``, ``failed``, ``cancelled`` or ``expired``.
        """
        return self.row.status

    @property
    def is_finished(self) -> bool:
        """Whether it will not run any more."""
        return self.row.status in store.FINISHED_STATUSES

    @property
    def name(self) -> str:
        """The task's name."""
        return self.row.name

    @property
    def queue_name(self) -> str:
        """Of its queue."""
        return self.row.queue

    @property
    def priority(self) -> int:
        """What is greater goes first."""
        return self.row.priority

    @property
    def args(self) -> list[Any]:
        """Its positional arguments, as JSON has them."""
        return self.row.call()[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        """Its keyword arguments."""
        return self.row.call()[1]

    @property
    def enqueued_at(self) -> datetime | None:
        """When it was enqueued."""
        return moment(self.row.enqueued_at)

    @property
    def run_after(self) -> datetime | None:
        """When it is to be begun, if that was said, or after an error."""
        return moment(self.row.run_after)

    @property
    def started_at(self) -> datetime | None:
        """When its first attempt began."""
        return moment(self.row.started_at)

    @property
    def last_attempted_at(self) -> datetime | None:
        """When its latest attempt began."""
        return moment(self.row.attempted_at)

    @property
    def finished_at(self) -> datetime | None:
        """When it ended."""
        return moment(self.row.finished_at)

    @property
    def attempts(self) -> int:
        """How often it was begun."""
        return self.row.attempt

    @property
    def worker(self) -> str | None:
        """Who runs it, or ran it last."""
        return self.row.worker

    @property
    def errors(self) -> list[TaskError]:
        """What its attempts have ended with, the latest last; of many the latest twenty."""
        return self.row.all_errors()

    @property
    def return_value(self) -> _T:
        """What it has returned, as JSON has it.

        Raises:
            TaskUnsuccessful: It has returned nothing: it has failed, or has not ended yet.
        """
        row = self.row
        if row.status == store.SUCCESSFUL:
            return cast(_T, row.value())
        if row.status not in store.FINISHED_STATUSES:
            raise TaskUnsuccessful(
                f"task {self.id} ({row.name}) is {row.status}: wait(), or refresh() later"
            )
        why = self.errors[-1:]
        said = f": {why[0].exception_class_path}: {why[0].message}" if why else ""
        raise TaskUnsuccessful(f"task {self.id} ({row.name}) is {row.status}{said}")

    def refresh(self) -> None:
        """Read it again.

        Raises:
            TaskNotFound: It is not there any more: kept for no longer, or discarded.
        """
        self._row = self._found(self._queue._query(f"{store.GET} WHERE id = ?1", (self.id,)))

    async def arefresh(self) -> None:
        """The same, for event loops."""
        self._row = self._found(await self._queue._aquery(f"{store.GET} WHERE id = ?1", (self.id,)))

    def _found(self, rows: list[Any]) -> Row:
        if not rows:
            raise TaskNotFound(
                f"there is no task {self.id}: it was never there, or it was discarded, or it is"
                " kept no longer after its end (keep=)"
            )
        return Row.of(rows[0])

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end. Nothing is polled.

        Args:
            timeout: For how many seconds at the most.

        Returns:
            Whether it has ended.

        Raises:
            TaskNotFound: See ``refresh``.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        with self._queue._hear_result(self.id) as hearing:
            poll = select.poll()
            poll.register(hearing.fileno(), select.POLLIN)
            while True:
                # Before it is read: what is committed from here on is signalled.
                seen = hearing.seen()
                self.refresh()
                if self.is_finished:
                    return True
                if hearing.has_newer(seen):
                    continue
                left = _SIGNALS_SECONDS if ends is None else ends - time.monotonic()
                if left <= 0:
                    return False
                poll.poll(min(left, _SIGNALS_SECONDS) * 1000)

    async def wait_async(self, timeout: float | None = None) -> bool:
        """The same, for event loops."""
        await self.arefresh()
        if self.is_finished:
            return True
        loop = asyncio.get_running_loop()
        with self._queue._hear_result(self.id) as hearing:
            news = asyncio.Event()
            loop.add_reader(hearing.fileno(), news.set)
            try:
                async with asyncio.timeout(timeout):
                    while True:
                        seen = hearing.seen()
                        await self.arefresh()
                        if self.is_finished:
                            return True
                        if not hearing.has_newer(seen):
                            news.clear()
                            await news.wait()
            except TimeoutError:
                return False
            finally:
                loop.remove_reader(hearing.fileno())


def _error(found: dict[str, Any]) -> TaskError:
    return TaskError(
        exception_class_path=str(found.get("class", "")),
        message=str(found.get("message", "")),
        traceback=str(found.get("traceback", "")),
        worker=str(found.get("worker", "")),
        attempt=attempt if isinstance(attempt := found.get("attempt"), int) else 0,
        at=moment(at) if isinstance(at := found.get("at"), int | float) else None,
    )
