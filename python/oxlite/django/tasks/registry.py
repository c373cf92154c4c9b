"""The tasks of a site as a worker has them: how they are found and called, and who is told of it.

Invariants:
- In a worker a task has connections as a request has them: those that are too old are closed before
  and after it. A coroutine has those of a thread of its own, which are closed after it.
- What a task has left open in ``atomic()`` is rolled back, and concerns no other one.
- What a receiver of a signal raises is logged, and changes nothing for the task.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from time import time
from typing import Any

from asgiref.sync import ThreadSensitiveContext, async_to_sync, sync_to_async
from django.db import close_old_connections, connections

from oxlite import Database
from oxlite.django.tasks.backend import OxliteBackend
from oxlite.django.tasks.left_open import close_left_open, refuse
from oxlite.django.tasks.sender import Sender
from oxlite.django.tasks.task import (
    AttemptContext,
    OxliteTaskContext,
    OxliteTaskResult,
    inner,
    result_of,
)
from oxlite.django.tasks.words import normalize_json, task_finished, task_started
from oxlite.tasks import TaskContext, UnfitArguments, UnknownTask, store
from oxlite.tasks.arguments import encoded_result
from oxlite.tasks.claim import Claim, Outcome, described
from oxlite.tasks.result import Row
from oxlite.tasks.task import called

__all__ = ["SiteRegistry"]


class SiteRegistry:
    """See the module; ``oxlite.tasks.execution.Registry`` says what of it is called when.

    Args:
        backend: Whose tasks they are.
        database: By which a worker reads and writes; ``None`` where the thread that asks runs them,
            by its own connection, and closes none.

    Attributes:
        latest: The context that was made last.
    """

    def __init__(self, backend: OxliteBackend, database: Database | None) -> None:
        self._backend = backend
        self._database = database
        self.latest: AttemptContext | None = None
        self._sender = None if database is None else Sender()

    def definition(self, name: str) -> "_Definition":
        """The task that can be imported by that name.

        Raises:
            UnknownTask: There is none.
        """
        try:
            task = self._backend.named(name)
            return _Definition(task, self._backend, is_here=self._database is None)
        except Exception as error:  # a module raises whatever it likes
            raise UnknownTask(
                f"{name} cannot be imported as a task ({type(error).__name__}: {error}): another"
                " version of the site may have it"
            ) from error

    def context(self, claim: Claim) -> AttemptContext:
        """What is known of an attempt."""
        self.latest = AttemptContext(claim, self._database, self._backend)
        return self.latest

    def begins(self, context: TaskContext) -> None:
        """Close what is too old, and send ``task_started``."""
        assert isinstance(context, AttemptContext)
        if self._database is not None:
            close_left_open()  # a time limit or a receiver may have come after a task
            close_old_connections()
        context.row = self._row(context.claim)
        try:
            task = self._backend.task_of(context.row)
            context.result = result_of(context.row, task, self._backend.alias)
        except (
            Exception
        ):  # it is none of this site's, or no arguments: it will fail with the reason
            return
        task_started.send_robust(type(self._backend), task_result=context.result)

    def ends(
        self, context: TaskContext, outcome: Outcome | None, error: BaseException | None
    ) -> Callable[[], None] | None:
        """Close what is too old. Returns what sends ``task_finished`` if it has ended for good."""
        assert isinstance(context, AttemptContext)
        try:
            if context.result is None or context.row is None:
                return None
            tell = self._told(context, context.row, outcome, error)
            if tell is None or self._sender is None:
                return tell
            return partial(self._sender.send, tell)
        finally:
            if self._database is not None:
                close_old_connections()

    def drain(self, seconds: float) -> None:
        """Wait until all signals are sent, for so long at the most."""
        if self._sender is not None:
            self._sender.drain(seconds)

    @property
    def tells_of_failures(self) -> bool:
        """Django's own receiver of ``task_finished`` logs them."""
        return True

    def _told(
        self,
        context: AttemptContext,
        row: Row,
        outcome: Outcome | None,
        error: BaseException | None,
    ) -> Callable[[], None] | None:
        if outcome is None and not context.is_finished:
            return None  # it is another's by now
        status = store.SUCCESSFUL if outcome is None else outcome.status
        if status not in store.FINISHED_STATUSES:
            return None
        row = row._replace(status=status, finished_at=time())
        if status == store.SUCCESSFUL:
            row = row._replace(result=encoded_result(row.name, context.returned))
        elif status == store.FAILED and error is not None:
            known = (row.errors or "[]").removesuffix("]")
            said = described(error, context.claim, time())
            row = row._replace(errors=f"{known}{',' if known != '[' else ''}{said}]")
        assert context.result is not None
        context.result = result_of(row, context.result.task, self._backend.alias)
        return partial(
            _send_finished,
            type(self._backend),
            context.result,
            None if status == store.SUCCESSFUL else error,
        )

    def _row(self, claim: Claim) -> Row:
        """Its row; of a first attempt the claim says all of it but ``run_after``, which is over."""
        if claim.attempt > 1:
            sql = f"{store.GET} WHERE id = ?1"
            place = self._backend.place
            query = place.query if self._database is None else self._database.query
            if rows := query(sql, (claim.id,)):
                return Row.of(rows[0])
        return Row(
            id=claim.id,
            queue=claim.queue,
            name=claim.name,
            arguments=claim.arguments,
            status=store.RUNNING,
            priority=claim.priority,
            enqueued_at=claim.enqueued_at,
            run_after=None,
            started_at=claim.attempted_at,
            attempted_at=claim.attempted_at,
            finished_at=None,
            attempt=claim.attempt,
            worker=claim.worker,
            result=None,
            errors=claim.errors,
            is_cancel_requested=0,
        )


def _send_finished(
    sender: type[OxliteBackend], result: OxliteTaskResult, error: BaseException | None
) -> None:
    if error is None:
        task_finished.send_robust(sender, task_result=result)
        return
    try:
        raise error  # so that receivers have it as sys.exc_info()
    except BaseException:
        task_finished.send_robust(sender, task_result=result)


class _Definition:
    """A task, as it is called."""

    def __init__(self, task: Any, backend: OxliteBackend, is_here: bool) -> None:
        self._task = task
        self._inner = inner(task, backend.defaults)
        self._is_coroutine = self._inner.is_coroutine_function
        self._is_here = is_here
        # In the thread that asks, a coroutine uses the connection of that.
        self.is_coroutine_function = self._is_coroutine and not is_here

    def call(self, context: TaskContext, args: list[Any], kwargs: dict[str, Any]) -> Any:
        assert isinstance(context, AttemptContext)
        if self._task.takes_context:
            if context.result is None:  # its row could not be read
                raise UnfitArguments(f"nothing is known of task {context.id} but its number")
            args = [OxliteTaskContext(task_result=context.result, of_attempt=context), *args]
        found = self._called(context, args, kwargs)
        if self.is_coroutine_function:
            return _awaited(context, found)
        if self._is_coroutine:
            found = async_to_sync(_itself)(found)
        if not context.is_finished:
            context.returned = normalize_json(found)
        return context.returned

    def _called(self, context: AttemptContext, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self._is_here:
            return called(self._task.func, args, kwargs)
        left_open: list[str] = []
        try:
            found = called(self._task.func, args, kwargs)
        finally:
            left_open = close_left_open()
            context.settle()
        refuse(left_open)
        return found

    def delay_after(self, failures: int, error: BaseException) -> float:
        return self._inner.delay_after(failures, error)


async def _awaited(context: AttemptContext, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Await it, with a thread of its own for what it calls by ``sync_to_async``."""
    left_open: list[str] = []
    async with ThreadSensitiveContext():
        try:
            found = await coroutine
        finally:
            left_open = await sync_to_async(_close_all)(context)
    refuse(left_open)
    if not context.is_finished:
        context.returned = normalize_json(found)
    return context.returned


def _close_all(context: AttemptContext) -> list[str]:
    left_open = close_left_open()
    connections.close_all()
    context.settle()
    return left_open


async def _itself(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return await coroutine
