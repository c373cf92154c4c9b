"""Ends a function that runs for too long, by an exception inside of it.

In the main thread of a process that is there for tasks it is raised by a signal, which interrupts
whatever waits. In other threads it is raised when the function next runs code of Python's: nothing
can interrupt what another library waits for.

Invariant: nothing is raised after ``call_within`` has returned.
"""

import heapq
import itertools
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, TypeVar

from oxlite.tasks.errors import TimeLimitExceeded

__all__ = ["OVERTIME_SECONDS", "call_within"]

_T = TypeVar("_T")

_FORGETS_AT: Final = 512
"""Half of so many functions are watched at least before those are forgotten that have ended."""

_SLEEP_AT_MOST_SECONDS: Final = 86_400.0

OVERTIME_SECONDS: Final = 30.0
"""Unless another is said: so long after its time limit the process of a task is killed that has not
ended."""


def call_within(seconds: float, function: Callable[[], _T], by_signal: bool) -> _T:
    """Call a function.

    Args:
        seconds: After so many of them ``TimeLimitExceeded`` is raised in it.
        function: What is called.
        by_signal: Whether the alarm clock of the process may be used, in its main thread.

    Raises:
        TimeLimitExceeded: It took longer, and did not catch that.
    """
    if by_signal and threading.current_thread() is threading.main_thread():
        return _call_within_alarm(seconds, function)
    guard = _Guard(seconds)
    _watch.add(guard)
    try:
        return function()
    finally:
        guard.end()


def _call_within_alarm(seconds: float, function: Callable[[], _T]) -> _T:
    def raise_(_number: int, _frame: FrameType | None) -> None:
        raise _exceeded(seconds)

    before = signal.signal(signal.SIGALRM, raise_)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return function()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _exceeded(seconds: float) -> TimeLimitExceeded:
    return TimeLimitExceeded(f"the task has run for its time limit of {seconds:g} s")


class _Guard:
    """A function that is running in this thread, and when it is to end."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self.is_over = self._has_raised = False

    def end(self) -> None:
        """The function has ended: nothing is raised any more."""
        with self._lock:
            self.is_over = True
            if self._has_raised:
                # If it has not come up yet it is taken back.
                _raise_in(self._thread, None)

    def exceed(self) -> None:
        """Its time has come. Called by the watch."""
        with self._lock:
            if not self.is_over:
                self._has_raised = True
                _raise_in(self._thread, TimeLimitExceeded)


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    import ctypes  # here, since a Python may be built without it

    # https://docs.python.org/3/c-api/threads.html#c.PyThreadState_SetAsyncExc
    raised = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


class _Watch:
    """A thread that ends what has exceeded its limit; there is none before the first limit."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._guards: list[tuple[float, int, _Guard]] = []
        self._forgotten_at = _FORGETS_AT
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def add(self, guard: _Guard) -> None:
        """Watch a function, too."""
        with self._changed:
            if len(self._guards) > 2 * self._forgotten_at:
                self._guards = [each for each in self._guards if not each[2].is_over]
                heapq.heapify(self._guards)
                self._forgotten_at = max(_FORGETS_AT, len(self._guards))
            heapq.heappush(self._guards, (guard.ends, next(self._numbers), guard))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="oxlite tasks: time limits", daemon=True
                )
                self._thread.start()
            elif self._guards[0][2] is guard:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._guards:
                    self._changed.wait()
                left = self._guards[0][0] - time.monotonic()
                if left > 0:
                    self._changed.wait(min(left, _SLEEP_AT_MOST_SECONDS))
                    continue
                guard = heapq.heappop(self._guards)[2]
            guard.exceed()


_watch = _Watch()
