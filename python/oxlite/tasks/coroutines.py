"""The event loop in which the coroutines of all tasks of a process run, in a thread of its own.

Who runs a task waits for its coroutine. So as many run at the same time as there are threads, and
they share what belongs to a loop, such as connections.

Invariant: a coroutine whose time is over, or that nobody waits for any more, is cancelled.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from oxlite.tasks.errors import TimeLimitExceeded

__all__ = ["run_coroutine"]

_T = TypeVar("_T")


class _Loop:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                # The first time, or after a fork.
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="oxlite tasks: coroutines", daemon=True
                )
                self._thread.start()
            loop = self._loop
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_loop: Final = _Loop()


def run_coroutine(coroutine: Coroutine[Any, Any, _T], time_limit: float | None) -> _T:
    """Run a coroutine, and wait for it.

    Args:
        coroutine: What is run.
        time_limit: For how many seconds it may run.

    Raises:
        TimeLimitExceeded: It ran for longer; it was cancelled.
    """
    return _loop.run(coroutine if time_limit is None else _within(coroutine, time_limit))


async def _within(coroutine: Coroutine[Any, Any, _T], seconds: float) -> _T:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await coroutine
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeLimitExceeded(f"the task has run for its time limit of {seconds:g} s") from error
