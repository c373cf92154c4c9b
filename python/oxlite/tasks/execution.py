"""Runs one attempt of a task, and says what has come of it.

Invariants:
- Whatever a task raises becomes an outcome; only Ctrl-C in the main thread goes on, and the task is
  handed back then.
- A task that nobody knows here, or whose arguments it does not take, may be one of another version
  of the application: it is tried again for a while, elsewhere perhaps, before it is set aside.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from oxlite.tasks import claim as outcomes
from oxlite.tasks import store
from oxlite.tasks.arguments import decoded, encoded_result
from oxlite.tasks.claim import Claim, Outcome
from oxlite.tasks.context import TaskContext, running
from oxlite.tasks.coroutines import run_coroutine
from oxlite.tasks.errors import Retry, TaskCancelled, TaskLost, UnfitArguments, UnknownTask
from oxlite.tasks.time_limit import call_within

__all__ = ["Definition", "Execution", "Registry"]

_log = logging.getLogger("oxlite.tasks")

_MISFIT_DELAYS_SECONDS: Final = (1.0, 10.0, 60.0)


class Definition(Protocol):
    """What is called for a task."""

    @property
    def is_coroutine_function(self) -> bool:
        """Whether what ``call`` returns is to be awaited."""

    def call(self, context: TaskContext, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """Call it."""

    def delay_after(self, failures: int, error: BaseException) -> float:
        """After how many seconds it is tried again that has failed so many times."""


class Registry(Protocol):
    """By which names of tasks become something that can be called."""

    def definition(self, name: str) -> Definition:
        """That of a name.

        Raises:
            UnknownTask: There is none.
        """

    def context(self, claim: Claim) -> TaskContext:
        """What the task knows of itself. Called before anything else is."""

    def begins(self, context: TaskContext) -> None:
        """Called before a task."""

    def ends(
        self, context: TaskContext, outcome: Outcome | None, error: BaseException | None
    ) -> Callable[[], None] | None:
        """Called after it, with what it has raised.

        Returns:
            What is to be called when the outcome was written, if it counts.
        """

    def drain(self, seconds: float) -> None:
        """Called at the end of a worker: what ``ends`` has returned is done when it returns."""

    @property
    def tells_of_failures(self) -> bool:
        """Whether somebody else logs what tasks have failed of."""


class Execution:
    """Runs attempts. Several threads use it.

    Args:
        registry: Who knows the tasks.
        told: See ``Worker``.
        overtime: See there.
    """

    def __init__(
        self,
        registry: Registry,
        told: Callable[[int, float | None], None] | None,
        overtime: float,
    ) -> None:
        self._registry = registry
        self._told = told
        self._overtime = overtime

    def outcome(self, claim: Claim) -> Outcome | None:
        """Run it; what is to be written of it, ``None`` if that is done already."""
        try:
            context = self._registry.context(claim)
        except Exception as error:  # it is not the task's, which has not begun
            _log.exception("task %d (%s) cannot be begun", claim.id, claim.name)
            now = time.time()
            return outcomes.again(claim, outcomes.described(error, claim, now), now, 1.0)
        begun = time.monotonic()
        _log.debug("task %d (%s) begins, attempt %d", claim.id, claim.name, claim.attempt)
        with running(context):
            outcome = self._run(claim, context)
            status = store.SUCCESSFUL if outcome is None else outcome.status
            _log.info(
                "task %d (%s) %s after %.3f s",
                claim.id,
                claim.name,
                "is to run again" if status == store.SCHEDULED else f"is {status}",
                time.monotonic() - begun,
            )
        return outcome

    def _run(self, claim: Claim, context: TaskContext) -> Outcome | None:
        definition: Definition | None = None
        raised: BaseException | None = None
        outcome: Outcome | None = None
        try:
            self._registry.begins(context)
            definition = self._registry.definition(claim.name)
            args, kwargs = decoded(claim.name, claim.arguments)
            call = partial(definition.call, context, args, kwargs)
            result = self._called(claim, definition, call)
            if not context.is_finished:
                encoded = encoded_result(claim.name, result)
                outcome = outcomes.successful(claim, encoded, time.time())
        except BaseException as error:
            if self._told is None and _ends_the_program(error):
                _log.warning("task %d (%s) is left in the midst", claim.id, claim.name)
                raise
            raised = error
            outcome = self._after(error, claim, context, definition)
        try:
            then = self._registry.ends(context, outcome, raised)
        except Exception:  # it is not the task
            _log.exception("after task %d (%s)", claim.id, claim.name)
            return outcome
        if then is None:
            return outcome
        if outcome is None:
            then()  # it has written that itself
            return None
        return outcome._replace(then=then)

    def drain(self, seconds: float) -> None:
        """Wait until who is to hear of what was written has heard, for so long at the most."""
        self._registry.drain(seconds)

    def _called(self, claim: Claim, definition: Definition, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        """What a task returns, within its time."""
        limit, told = claim.time_limit, self._told
        if limit is None:
            result = call()
            return run_coroutine(result, None) if definition.is_coroutine_function else result
        if told is not None:
            told(claim.id, time.monotonic() + limit + self._overtime)
        try:
            if definition.is_coroutine_function:
                return run_coroutine(call(), limit)
            return call_within(limit, call, by_signal=told is not None)
        finally:
            if told is not None:
                told(claim.id, None)

    def _after(
        self,
        error: BaseException,
        claim: Claim,
        context: TaskContext,
        definition: Definition | None,
    ) -> Outcome | None:
        """What has come of a task that has raised something."""
        now = time.time()
        if context.is_finished:
            _log.error(
                "task %d (%s) was finished, and has raised an error since",
                claim.id,
                claim.name,
                exc_info=error,
            )
            return None
        if isinstance(error, TaskLost):
            _log.warning("%s", error)
            return None
        if isinstance(error, TaskCancelled):
            return outcomes.failed(claim, None, now, store.CANCELLED)
        described = outcomes.described(error, claim, now)
        if isinstance(error, Retry):
            delay = error.delay
            if delay is None:
                delay = _delay(definition, claim, error)
            return outcomes.again(claim, described, now, delay)
        if isinstance(error, UnknownTask | UnfitArguments):
            if claim.failures < len(_MISFIT_DELAYS_SECONDS):
                delay = _MISFIT_DELAYS_SECONDS[claim.failures]
                return outcomes.again(claim, described, now, delay)
        elif claim.failures < claim.retries:
            return outcomes.again(claim, described, now, _delay(definition, claim, error))
        traceback = None if self._registry.tells_of_failures else error
        _log.error("task %d (%s) has failed", claim.id, claim.name, exc_info=traceback)
        return outcomes.failed(claim, described, now)


def _delay(definition: Definition | None, claim: Claim, error: BaseException) -> float:
    return 0.0 if definition is None else definition.delay_after(claim.failures + 1, error)


def _ends_the_program(error: BaseException) -> bool:
    """Whether it is Ctrl-C, which comes to the main thread alone: it is not the task's.

    To a process that is there for tasks it does not come: its supervisor hears it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return isinstance(error, KeyboardInterrupt) and is_main
