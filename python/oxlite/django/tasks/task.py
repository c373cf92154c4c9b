"""A task of a site, its result and its context: Django's, and what is said of them beside.

Invariant: what Django's words mean is as Django has it.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import lru_cache
from time import time
from typing import TYPE_CHECKING, Any, Final, Self

from django.conf import settings
from django.db import connections, transaction
from django.utils import timezone

from oxlite import Database, sqlite3, tasks
from oxlite.django.tasks.place import Place, SiteDatabase
from oxlite.django.tasks.words import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_backends,
)
from oxlite.tasks import store
from oxlite.tasks.arguments import moment
from oxlite.tasks.claim import Claim
from oxlite.tasks.result import Row

if TYPE_CHECKING:
    from oxlite.django.tasks.backend import OxliteBackend

__all__ = [
    "AttemptContext",
    "OxliteTask",
    "OxliteTaskContext",
    "OxliteTaskResult",
    "TaskExpired",
    "as_set",
    "inner",
    "result_of",
    "with_fields",
]

_STATUSES: Final = {
    store.SCHEDULED: TaskResultStatus.READY,
    store.BLOCKED: TaskResultStatus.READY,
    store.READY: TaskResultStatus.READY,
    store.RUNNING: TaskResultStatus.RUNNING,
    store.SUCCESSFUL: TaskResultStatus.SUCCESSFUL,
    store.FAILED: TaskResultStatus.FAILED,
    store.CANCELLED: TaskResultStatus.FAILED,
    store.EXPIRED: TaskResultStatus.FAILED,
}

_ENDS_WITHOUT_ERROR: Final = {
    store.CANCELLED: "oxlite.tasks.TaskCancelled",
    store.EXPIRED: "oxlite.django.tasks.TaskExpired",
}


class TaskExpired(Exception):  # noqa: N818 - as TaskCancelled
    """The task was not begun before ``expires``: named in its errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OxliteTask(Task):
    """A task, with what ``oxlite.tasks.Task`` has beside Django's: see there.

    ``None`` means what the backend's OPTIONS say. ``math.inf`` is no ``time_limit``, and ``keep``
    for ever.
    """

    retries: int | None = None
    retry_delay: float | None = None
    retry_delay_at_most: float | None = None
    time_limit: float | None = None
    expires: datetime | timedelta | float | None = None
    unique: bool = False
    unique_key: str | Callable[..., str] | None = None
    limit: int | None = None
    limit_key: str | Callable[..., str] | None = None
    keep: float | None = None

    def using(self, **options: Any) -> Self:
        """The same task with other options, Django's or these.

        Raises:
            TypeError: There is no such option.
            InvalidTask: It cannot have that value.
        """
        # ``None`` is no change, as for Django.
        return replace(self, **{name: one for name, one in options.items() if one is not None})


_BESIDE: Final = tuple(OxliteTask.__annotations__)


def inner(task: Any, defaults: dict[str, Any]) -> tasks.Task[..., Any]:
    """A task as ``oxlite.tasks`` has it.

    Args:
        task: One of Django's; perhaps of another backend, which has no options.
        defaults: What the backend says where the task does not.

    Raises:
        TypeError, ValueError: It has an option that no task can have.
    """
    return _inner(task, tuple(defaults.items()))


@lru_cache(maxsize=1024)
def _inner(task: Any, defaults: tuple[tuple[str, Any], ...]) -> tasks.Task[..., Any]:
    said = {name: one for name in _BESIDE if (one := getattr(task, name, None)) is not None}
    options = dict(defaults) | said
    for name in ("time_limit", "keep"):
        if options.get(name) == math.inf:
            options[name] = None
    run_after = task.run_after
    if run_after is not None and timezone.is_naive(run_after):
        run_after = timezone.make_aware(run_after)
    return tasks.Task(
        function=task.func,
        queue=None,  # type: ignore[arg-type]  # it is not enqueued by that
        name=task.module_path,
        queue_name=task.queue_name,
        priority=int(task.priority),
        run_after=run_after,
        takes_context=task.takes_context,
        **options,
    )


def with_fields(task: Any, **changed: Any) -> Any:
    """The same task with other fields, whatever they are: another program may have written them.

    Args:
        task: One of Django's.
        changed: The fields.
    """
    kind = type(task)
    made = object.__new__(kind)
    for each in fields(kind):
        # It is frozen, and to be made in no other way than by a call, which validates it.
        value = changed[each.name] if each.name in changed else getattr(task, each.name)
        object.__setattr__(made, each.name, value)
    return made


class OxliteTaskResult(TaskResult):
    """A result that can be waited for."""

    __slots__ = ()

    @property
    def _place(self) -> Place:
        place: Place = task_backends[self.backend].place
        return place

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the task, without polling, and read it again.

        Args:
            timeout: For how many seconds at the most.

        Returns:
            Whether it has ended.

        Raises:
            TaskResultDoesNotExist: It was not committed yet, or is kept no longer.
            django.db.transaction.TransactionManagementError: In ``atomic()``, for whose end the
                task's worker may have to wait.
        """
        place = self._place
        if isinstance(place, SiteDatabase) and place.wrapper.in_atomic_block:
            raise transaction.TransactionManagementError(
                f"wait() for task {self.id} inside atomic() would keep its worker from writing:"
                " wait after the end of it"
            )
        try:
            is_ended = tasks.TaskResult[Any](place.queue, int(self.id)).wait(timeout)
        except tasks.TaskNotFound as error:
            raise TaskResultDoesNotExist(str(error)) from None
        self.refresh()
        return is_ended

    async def wait_async(self, timeout: float | None = None) -> bool:
        """The same, for event loops."""
        result = tasks.TaskResult[Any](self._place.queue, int(self.id))
        try:
            is_ended = await result.wait_async(timeout)
        except tasks.TaskNotFound as error:
            raise TaskResultDoesNotExist(str(error)) from None
        await self.arefresh()
        return is_ended

    def cancel(self) -> bool:
        """Cancel it, or ask it to end if it runs; whether it had not ended before."""
        # Another one of its kind may be ready then.
        also = [store.TASKS_NAME]
        return bool(self._place.write(store.CANCEL, (int(self.id), time()), also))


def result_of(row: Row, task: Any, alias: str) -> OxliteTaskResult:
    """The result that a row says.

    Args:
        row: The row.
        task: Whose result it is.
        alias: Of the backend.
    """
    args, kwargs = row.call()
    known = row.all_errors()
    errors = [
        TaskError(exception_class_path=error.exception_class_path, traceback=error.traceback)
        for error in known
    ]
    if row.status in _ENDS_WITHOUT_ERROR:
        path = _ENDS_WITHOUT_ERROR[row.status]
        errors.append(TaskError(exception_class_path=path, traceback=""))
    made = OxliteTaskResult(
        task=task,
        id=str(row.id),
        status=_STATUSES[row.status],
        enqueued_at=as_set(row.enqueued_at),
        started_at=as_set(row.started_at),
        last_attempted_at=as_set(row.attempted_at),
        finished_at=as_set(row.finished_at),
        args=args,
        kwargs=kwargs,
        backend=alias,
        errors=errors,
        worker_ids=_workers(row, [error.worker for error in known]),
    )
    if row.status == store.SUCCESSFUL:
        object.__setattr__(made, "_return_value", row.value())
    return made


def _workers(row: Row, known: list[str]) -> list[str]:
    """Those of all attempts, whose number Django takes from this; empty where it is not known."""
    if row.worker is not None and row.attempt > len(known):
        known = [*known, row.worker]
    return [*([""] * (row.attempt - len(known))), *known]


def as_set(seconds: float | None) -> datetime | None:
    """An instant of a row, as USE_TZ has it; ``None`` where Python has none for it."""
    at = moment(seconds)
    try:
        return at if at is None or settings.USE_TZ else timezone.make_naive(at)
    except OverflowError:
        return None


class AttemptContext(tasks.TaskContext):
    """What is known of an attempt by who runs it.

    Args:
        claim: Of which attempt.
        database: By which a worker reads and writes; ``None`` where the thread that asks runs it,
            by its own connection.
        backend: Whose task it is.

    Attributes:
        result: What Django calls its result; ``None`` where nobody knows the task.
        returned: What the task has returned, or has finished with.
    """

    def __init__(self, claim: Claim, database: Database | None, backend: "OxliteBackend") -> None:
        super().__init__(claim, database)  # type: ignore[arg-type]
        self.claim = claim
        self.result: OxliteTaskResult | None = None
        self.row: Row | None = None
        self.returned: Any = None
        # What finish() has written, perhaps to be rolled back.
        self._is_completed, self._result = False, None
        self._is_here = database is None
        self._place = backend.place
        # A coroutine asks it in another thread.
        self._read = self._place.reader() if self._is_here else None

    def is_cancelled(self) -> bool:
        """See ``oxlite.tasks.TaskContext``."""
        if self._read is None:
            return super().is_cancelled()
        which = (self.id, self.attempt)
        rows = self._read(f"{store.GET} WHERE id = ?1 AND attempt = ?2", which)
        return not rows or bool(Row.of(rows[0]).is_cancel_requested)

    @contextmanager
    def finish(self, result: Any = None) -> Iterator[Any]:
        """See ``oxlite.tasks.TaskContext``; in the site's database it is ``atomic()``."""
        result = normalize_json(result)
        place = self._place
        if not isinstance(place, SiteDatabase):
            with super().finish(result) as connection:
                yield connection
            self.returned = result
            return

        with transaction.atomic(using=place.alias):
            self._complete(result, place.write)
            self._is_completed, self._result = True, result
            if not self._is_here:
                # It may be inside of another atomic(), which can still be rolled back.
                transaction.on_commit(self._note, using=place.alias)
            yield connections[place.alias]
        if self._is_here:  # a test's transaction is never committed
            self._note()

    def _note(self) -> None:
        self.is_finished, self.returned = True, self._result

    def settle(self) -> None:
        """Look whether it was finished, where a hook of the same commit has kept that from us.

        Called when the task has no transaction open any more.
        """
        if not self._is_completed or self.is_finished:
            return
        with suppress(sqlite3.Error):
            rows = self._database.query(
                "SELECT attempt, status FROM oxlite_task WHERE id = ?", (self.id,)
            )
            # What is kept for no time was deleted by its completion.
            if not rows or tuple(rows[0]) == (self.attempt, store.SUCCESSFUL):
                self._note()


@dataclass(frozen=True, slots=True, kw_only=True)
class OxliteTaskContext(TaskContext):
    """What a task that takes its context is given."""

    of_attempt: AttemptContext = field(repr=False, compare=False)

    def finish(self, result: Any = None) -> Any:
        """Commit the last writes of the task together with its completion: both, or neither.

        >>> with context.finish():
        ...     order.save()

        In the site's database the block is ``atomic()``. What takes long is done before.

        Raises:
            oxlite.tasks.TaskLost: The task is another's by now. Nothing is written.
        """
        return self.of_attempt.finish(result)

    def is_cancelled(self) -> bool:
        """Whether its end was asked for, or it is another's by now. It reads one row."""
        return self.of_attempt.is_cancelled()

    def raise_if_cancelled(self) -> None:
        """End here if that was asked for.

        Raises:
            oxlite.tasks.TaskCancelled: It was.
        """
        self.of_attempt.raise_if_cancelled()
