"""Running a function again whose transaction was built on a snapshot that had become old.

A transaction that reads first and writes later (isolation level SNAPSHOT, ``BEGIN DEFERRED``) may
find that somebody else has committed in between. SQLite then refuses the write, because it would
rest on data that is not there any more; the remedy is to begin the whole transaction again.

Invariant: only ``StaleSnapshotError`` is a reason to run a function again, by itself, where another
error (SQLAlchemy's) was raised because of it, or where all members of an ``ExceptionGroup`` are
such. Of such a transaction nothing was committed.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, cast, overload

from oxlite._native import StaleSnapshotError

__all__ = ["is_stale", "retry"]

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
_Function = Callable[_Arguments, _Answer]


@overload
def retry(function: _Function[_Arguments, _Answer], /) -> _Function[_Arguments, _Answer]: ...
@overload
def retry(
    function: None = None,
    /,
    *,
    attempts: int = 5,
    first_delay: float = 0.005,
    longest_delay: float = 0.25,
) -> Callable[[_Function[_Arguments, _Answer]], _Function[_Arguments, _Answer]]: ...


def retry(
    function: Callable[..., Any] | None = None,
    /,
    *,
    attempts: int = 5,
    first_delay: float = 0.005,
    longest_delay: float = 0.25,
) -> Callable[..., Any]:
    """Have a function run again when its snapshot was stale: ``@oxlite.retry``.

    The function must contain the whole transaction, from its beginning to COMMIT, and take back
    what else it has done when it fails. Functions and coroutine functions alike, also objects whose
    ``__call__`` is one; also as ``oxlite.retry(transfer)(source, target)``.

    Args:
        function: What to run; left out where arguments are given: ``@oxlite.retry(attempts=3)``.
        attempts: How often it is run at most.
        first_delay: The longest wait before the second attempt, in seconds. The limit doubles with
            each attempt, and the wait is a random part of it, so that those who have met do not
            meet again.
        longest_delay: What the limit does not grow beyond, in seconds.

    Returns:
        The function, with the same arguments and answer; or, without one, a decorator.

    Raises:
        TypeError: It is no function, or a generator, which cannot be run again.
        ValueError: ``attempts`` is less than one, or a delay is negative.
        TypeError: By the function returned, when one that is no coroutine function answers
            something to be awaited: it would fail where nobody runs it again.
        oxlite.StaleSnapshotError: By the function returned, when the last attempt has failed so too
            (or what it has caused, such as SQLAlchemy's ``OperationalError``).

    Source: https://sqlite.org/rescode.html#busy_snapshot
    """
    if attempts < 1:
        raise ValueError(f"attempts must be at least 1, not {attempts}")
    if first_delay < 0 or longest_delay < 0:
        raise ValueError("a delay must not be negative")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _repeating(function, _Delays(attempts, first_delay, longest_delay))

    return decorate if function is None else decorate(function)


class _Delays:
    """How long to wait before each further attempt."""

    def __init__(self, attempts: int, first: float, longest: float) -> None:
        self.attempts = attempts
        self._first = first
        self._longest = longest

    def after(self, attempt: int, error: BaseException) -> float:
        """How long to wait after an attempt that has failed, in seconds; raises what is final."""
        if not is_stale(error):
            raise error
        if attempt == self.attempts:
            if attempt > 1:
                error.add_note(f"The snapshot was stale {attempt} times; oxlite.retry gave up.")
            raise error
        import random

        limit = min(self._longest, self._first * 2.0 ** (attempt - 1))
        return random.uniform(0.0, limit)


def _repeating(function: Callable[..., Any], delays: _Delays) -> Callable[..., Any]:
    import inspect

    if not callable(function):
        raise TypeError(f"retry wants a function, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"retry cannot run {function.__qualname__} again: it is a generator, whose rows have"
            " already been used; return a list"
        )
    call = getattr(function, "__call__", None)  # noqa: B004 - an object's own, which may be async
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        coroutine_function = cast(Callable[..., Coroutine[Any, Any, Any]], function)

        @functools.wraps(function)
        async def repeating_coroutine(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            import asyncio

            for attempt in range(1, delays.attempts + 1):
                try:
                    return await coroutine_function(*args, **kwargs)
                except Exception as error:
                    delay = delays.after(attempt, error)
                await asyncio.sleep(delay)
            return None  # not reached: the last attempt has returned or raised

        return repeating_coroutine

    @functools.wraps(function)
    def repeating(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        import time

        for attempt in range(1, delays.attempts + 1):
            try:
                answer = function(*args, **kwargs)
                if inspect.isawaitable(answer):
                    raise _refusal(function, answer)
                return answer
            except Exception as error:
                delay = delays.after(attempt, error)
            time.sleep(delay)
        return None  # not reached: the last attempt has returned or raised

    return repeating


def _refusal(function: Callable[..., Any], answer: object) -> TypeError:
    """The error for an answer that is to be awaited, which is closed if it is a coroutine."""
    import inspect

    if inspect.iscoroutine(answer):
        answer.close()
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return TypeError(
        f"retry cannot run {name} again: it has answered a {type(answer).__name__}, which is"
        " awaited outside of it; make it a coroutine function (async def)"
    )


def is_stale(error: BaseException | None, seen: frozenset[int] = frozenset()) -> bool:
    """Whether an error is a stale snapshot, was raised because of one, or a group of such."""
    while error is not None and id(error) not in seen:
        if isinstance(error, StaleSnapshotError):
            return True
        seen |= {id(error)}
        if isinstance(error, BaseExceptionGroup):
            return all(is_stale(member, seen) for member in error.exceptions)
        original = getattr(error, "orig", None)
        error = original if isinstance(original, BaseException) else error.__cause__
    return False
