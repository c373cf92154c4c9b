"""What can go wrong with a task, and what a task raises to say how it goes on."""

from datetime import timedelta

__all__ = [
    "Retry",
    "TaskCancelled",
    "TaskLost",
    "TaskNotFound",
    "TaskUnsuccessful",
    "TimeLimitExceeded",
    "UnfitArguments",
    "UnknownTask",
    "WorkerLost",
]


class Retry(Exception):  # noqa: N818 - a task raises it, and nothing is wrong
    """Raised by a task that is to run again, although it may have no retries left.

    Args:
        delay: After so many seconds, or a ``timedelta``; ``None`` for as many as the task's retries
            take.

    Raises:
        TypeError, ValueError: It is no number of seconds.
    """

    def __init__(self, delay: float | timedelta | None = None) -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if seconds is not None and (
            isinstance(seconds, bool) or not isinstance(seconds, int | float)
        ):
            raise TypeError(
                f"Retry takes a number of seconds or a timedelta, not {type(delay).__name__}"
            )
        if seconds is not None and not 0 <= seconds <= 1e10:
            raise ValueError(f"Retry takes a number of seconds, not {delay!r}")
        super().__init__(delay)
        self.delay = seconds


class TaskCancelled(Exception):  # noqa: N818 - as ``asyncio.CancelledError`` is no mistake
    """Raised in a task whose cancellation was asked for, by ``TaskContext.raise_if_cancelled``."""


class TaskLost(Exception):  # noqa: N818 - named as its kin
    """This attempt counts no more: the task was taken over by another one, or discarded.

    Nothing of what ``TaskContext.finish`` was to commit has been.
    """


class TaskNotFound(LookupError):  # noqa: N818
    """There is no such task: it was never there, or was discarded, or is kept no longer."""


class TaskUnsuccessful(Exception):  # noqa: N818
    """The task has no result: it has failed, was cancelled, has expired, or has not ended yet."""


class TimeLimitExceeded(Exception):  # noqa: N818
    """Raised in a task that has run for as long as it may."""


class UnfitArguments(Exception):  # noqa: N818
    """The task's function does not take the arguments that were written down for it."""


class UnknownTask(Exception):  # noqa: N818
    """Nothing of that name is known to the worker: another version of the application has it."""


class WorkerLost(Exception):  # noqa: N818
    """The process that ran the task has ended in the midst of it: named in its errors."""
