"""A task: a function that is called later, by a worker, with arguments that are written down.

Invariant: a ``Task`` does not change; ``using`` makes another one.
"""

import inspect
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Self, TypedDict, TypeVar, Unpack

from oxlite.tasks.arguments import encoded_call, instant
from oxlite.tasks.context import TaskContext
from oxlite.tasks.errors import UnfitArguments
from oxlite.tasks.result import TaskResult

if sys.version_info >= (3, 14):
    import annotationlib

if TYPE_CHECKING:
    from oxlite.tasks.queue import Queue

__all__ = ["PRIORITIES", "Task", "TaskOptions", "called", "check_seconds"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

PRIORITIES: Final = range(-1_000_000, 1_000_001)
_KEY_CHARACTERS_AT_MOST: Final = 1_000
_SECONDS_AT_MOST: Final = 100_000_000


class TaskOptions(TypedDict, total=False):
    """What can be said of a task: see ``Task``."""

    queue_name: str
    priority: int
    run_after: datetime | timedelta | float | None
    expires: datetime | timedelta | float | None
    retries: int
    retry_delay: float
    retry_delay_at_most: float
    time_limit: float | None
    unique: bool
    unique_key: str | Callable[..., str] | None
    limit: int | None
    limit_key: str | Callable[..., str] | None
    keep: float | None
    connection: object


@dataclass(frozen=True, kw_only=True, slots=True)
class Task(Generic[_P, _R]):
    """A function that a worker calls.

    Called itself, it calls the function, here and now.

    Attributes:
        function: The function, or coroutine function.
        queue: Of whose file it is.
        name: By which workers find it.
        queue_name: In which queue of the file it waits.
        priority: What is greater goes first.
        run_after: It is not begun before: an aware ``datetime``, or a ``timedelta`` or seconds from
            the call of ``enqueue`` on.
        expires: It is not begun after, likewise.
        retries: How often it is tried again after an error.
        retry_delay: After how many seconds the first time; each time it is twice as long, and up to
            a quarter longer or shorter by chance.
        retry_delay_at_most: After how many seconds at the most.
        time_limit: For how many seconds it may run.
        unique: Whether it is enqueued only if none with the same arguments waits or runs.
        unique_key: The same by a key; a function is called with the arguments.
        limit: How many with the same ``limit_key`` may run at the same time, in all processes.
        limit_key: By default the name; a function is called with the arguments.
        keep: For how many seconds it is kept after its end, with its result; ``None`` for ever, 0
            not at all. One that has failed is kept until it is discarded.
        connection: Whose transaction ``enqueue`` is part of.
        takes_context: Whether the first argument is a ``TaskContext``, which a worker adds.
    """

    function: Callable[..., Any]
    queue: "Queue"
    name: str
    queue_name: str = "default"
    priority: int = 0
    run_after: datetime | timedelta | float | None = None
    expires: datetime | timedelta | float | None = None
    retries: int = 0
    retry_delay: float = 5.0
    retry_delay_at_most: float = 3600.0
    time_limit: float | None = None
    unique: bool = False
    unique_key: str | Callable[..., str] | None = None
    limit: int | None = None
    limit_key: str | Callable[..., str] | None = None
    keep: float | None = 86_400.0
    connection: object = field(default=None, repr=False)
    takes_context: bool = False

    def __post_init__(self) -> None:
        """Refuse what no task can have.

        Raises:
            TypeError, ValueError: An option of another type, or out of range.
        """
        _check_name("queue_name", self.queue_name)
        _check_name("name", self.name)
        if type(self.priority) is not int or self.priority not in PRIORITIES:
            raise ValueError(
                f"priority is a whole number from {PRIORITIES.start:,} to {PRIORITIES[-1]:,}, not"
                f" {self.priority!r}"
            )
        _check_count("retries", self.retries, 0)
        if self.limit is not None:
            _check_count("limit", self.limit, 1)
        for name in ("retry_delay", "retry_delay_at_most", "time_limit", "keep"):
            value = getattr(self, name)
            if value is not None or name not in ("time_limit", "keep"):
                check_seconds(name, value, is_zero_allowed=name != "time_limit")
        for name in ("run_after", "expires"):
            instant(name, getattr(self, name), 0.0)
        if self.limit_key is not None and self.limit is None:
            raise ValueError("limit_key goes with limit=, how many may run at the same time")

    def using(self, **options: Unpack[TaskOptions]) -> Self:
        """The same task with other options.

        >>> send_mail.using(priority=10, run_after=60).enqueue(7)

        Raises:
            TypeError: There is no such option.
            TypeError, ValueError: See there.
        """
        unknown = options.keys() - TaskOptions.__annotations__.keys()
        if unknown:
            raise TypeError(
                f"a task has no option {min(unknown)!r}; it has"
                f" {', '.join(TaskOptions.__annotations__)}"
            )
        return replace(self, **options)

    def enqueue(self, *args: _P.args, **kwargs: _P.kwargs) -> "TaskResult[_R]":
        """Have it called by a worker.

        With ``using(connection=…)`` it is part of the transaction that is open there: it is there
        for workers when that commits, and never if that is rolled back.

        Returns:
            By which one asks for the result. Where the task is unique and waits or runs already, it
            is that one's.

        Raises:
            TypeError, ValueError: The arguments are not those of the function, or cannot be JSON.
            oxlite.sqlite3.Error: The file cannot be written.
        """
        return self.queue._enqueue(self, args, kwargs)

    async def aenqueue(self, *args: _P.args, **kwargs: _P.kwargs) -> "TaskResult[_R]":
        """The same, for event loops."""
        return await self.queue._aenqueue(self, args, kwargs)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the function here and now."""
        result: _R = self.function(*args, **kwargs)
        return result

    # For queues and workers.

    def call(self, context: TaskContext, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """Call it for a worker."""
        if self.takes_context:
            args = [context, *args]
        return called(self.function, args, kwargs)

    @property
    def is_coroutine_function(self) -> bool:
        """Whether what ``call`` returns is to be awaited."""
        return _is_coroutine_function(self.function)

    def delay_after(self, failures: int, error: BaseException) -> float:
        """After how many seconds it is tried again that has failed so many times."""
        # More doublings than that are too many for any delay, and for a float.
        doubled = self.retry_delay * 2.0 ** min(failures - 1, 64)
        return min(doubled, self.retry_delay_at_most) * random.uniform(0.75, 1.25)

    def _bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> inspect.BoundArguments | None:
        """The arguments as the function takes them, if it says which those are."""
        signature = _signature(self.function)
        if signature is None:
            return None
        try:
            return signature.bind(*((None,) if self.takes_context else ()), *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name} is not called like this: {error}") from None

    def parameters(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], now: float
    ) -> tuple[Any, ...]:
        """Those of ``store.ENQUEUE``."""
        bound = self._bound(args, kwargs)
        arguments = encoded_call(self.name, args, kwargs)
        unique_key = _key("unique_key", self.unique_key, args, kwargs)
        if unique_key is None and self.unique:
            # Whether an argument is given by its name does not matter, nor their order.
            called_with = (args, kwargs) if bound is None else (bound.args, bound.kwargs)
            named = dict(sorted(called_with[1].items()))
            unique_key = f"{self.name}:{encoded_call(self.name, called_with[0], named)}"
        limit_key = _key("limit_key", self.limit_key, args, kwargs)
        if limit_key is None and self.limit is not None:
            limit_key = self.name
        return (
            self.queue_name,
            self.name,
            arguments,
            self.priority,
            now,
            instant("run_after", self.run_after, now),
            instant("expires", self.expires, now),
            unique_key,
            limit_key,
            self.limit,
            self.time_limit,
            self.retries,
            self.keep,
            None,
        )


def called(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Call a function with arguments that were written down, perhaps for another version of it.

    Raises:
        UnfitArguments: It does not take them: nothing of it has run.
        Exception: What it raises.
    """
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        trace = error.__traceback__
        # Of a function in C nobody can tell.
        if trace is not None and trace.tb_next is None and inspect.isfunction(function):
            raise UnfitArguments(str(error)) from None
        raise


@cache
def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        if sys.version_info >= (3, 14):
            # From there on annotations are evaluated when they are asked for. They may name what is
            # there for type checkers alone, and here nobody asks what they are.
            return inspect.signature(function, annotation_format=annotationlib.Format.STRING)
        return inspect.signature(function)
    except ValueError:  # one of C's that does not say
        return None


def _key(
    name: str,
    key: str | Callable[..., str] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> str | None:
    found = key(*args, **kwargs) if callable(key) else key
    if found is not None and not isinstance(found, str):
        raise TypeError(f"{name} is text, or a function that returns some, not {found!r}")
    return found


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what} is text, not {type(name).__name__}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is Unicode text without surrogates") from None
    if not 0 < len(name) <= _KEY_CHARACTERS_AT_MOST or "\0" in name:
        raise ValueError(f"{what} has 1 to {_KEY_CHARACTERS_AT_MOST} characters, none of them NUL")


def _check_count(name: str, value: object, least: int) -> None:
    if type(value) is not int or not least <= value < 1 << 31:
        raise ValueError(f"{name} is a whole number of {least} or more, not {value!r}")


def check_seconds(name: str, value: object, is_zero_allowed: bool) -> None:
    """Refuse what is no number of seconds.

    Raises:
        TypeError, ValueError: It is of another type, or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a number of seconds, not {type(value).__name__}")
    if not 0 <= value <= _SECONDS_AT_MOST or (value == 0 and not is_zero_allowed):
        raise ValueError(f"{name} is a number of seconds up to {_SECONDS_AT_MOST:,}, not {value!r}")
