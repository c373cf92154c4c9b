"""The life of a thread that serves others: it begins when it is wanted, and ends when it is closed.

Invariants:
- There is one at the most. Whoever leaves something for it and claims it, with the lock held in
  between, is served by it or by the next one.
- It is begun without the lock. The garbage collector may run in it before it has begun, while its
  beginner waits for that, and what the collector destroys may want the lock.
- One that is closed ends what was left for it, and lives again when somebody wants it.
"""

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

__all__ = ["ServiceThread", "call_all"]

_log = logging.getLogger("oxlite.cable")

_GOES_ON_AFTER_SECONDS: Final = 0.2


class ServiceThread:
    """See the module.

    Args:
        name: Of the thread.
        lock: With which things are left for it; re-entrant.
        serve: Serves until ``has_to_end``.
        finish: Does what is left to do then.
        has_more: Whether something was left for it since; called with the lock.
        fail: Tells all who wait that it cannot serve.

    Attributes:
        is_over: Nobody can want it any more. Set without the lock, also by the collector's leave.
        is_closed: It was closed, and nobody has wanted it since.
    """

    def __init__(
        self,
        name: str,
        lock: AbstractContextManager[object],
        *,
        serve: Callable[[], None],
        finish: Callable[[], None],
        has_more: Callable[[], bool],
        fail: Callable[[Exception], None],
    ) -> None:
        self._name = name
        self._lock = lock
        self._serve = serve
        self._finish = finish
        self._has_more = has_more
        self._fail = fail
        self._thread: threading.Thread | None = None
        self._when_ended: list[Callable[[], None]] = []
        self.is_over = self.is_closed = False

    @property
    def has_to_end(self) -> bool:
        """Whether it is not to serve any longer."""
        return self.is_over or self.is_closed or bool(self._when_ended)

    @property
    def is_serving(self) -> bool:
        """Whether it is there, or comes, and is not closed."""
        return self._thread is not None and not self.is_closed

    def claimed(self, is_wanted: bool = True) -> threading.Thread | None:
        """With the lock, after something was left: a thread, if one is to be launched then.

        Args:
            is_wanted: Whether one that is closed lives again; else it does what is left, and ends.
        """
        if is_wanted:
            self.is_closed = False
        if self._thread is not None or sys.is_finalizing():
            return None
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        return self._thread

    def launch(self, thread: threading.Thread | None) -> None:
        """Begin what was claimed, without the lock.

        Raises:
            RuntimeError: The system has no thread more.
        """
        if thread is None:
            return
        try:
            thread.start()
        except BaseException:
            with self._lock:
                # Where a signal handler has raised, it may have begun, or may do so yet.
                is_lost = thread.ident is None and self._thread is thread
                if is_lost:
                    self._thread = None
                ended = self._ended() if is_lost else []
            if is_lost:
                self._fail(RuntimeError(f"the thread {self._name!r} could not begin"))
            call_all(ended)
            raise

    def close(self, when_ended: Callable[[], None]) -> None:
        """Have it end.

        Args:
            when_ended: Called when it has: in it, or here if there is none.
        """
        with self._lock:
            self.is_closed = True
            is_there = self._thread is not None
            if is_there:
                self._when_ended.append(when_ended)
        if not is_there:
            when_ended()

    def wait_for_end(self, timeout: float) -> bool:
        """Wait until it has ended for so many seconds at most; whether it has."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        return self._thread is None

    def _ended(self) -> list[Callable[[], None]]:
        ended, self._when_ended = self._when_ended, []
        return ended

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        goes_on = self._thread is threading.current_thread()
        while goes_on:
            try:
                self._serve()
                self._finish()
            except Exception as error:
                _log.exception("the thread %r has failed", self._name)
                self._fail(error)
                time.sleep(_GOES_ON_AFTER_SECONDS)
            with self._lock:
                ended = self._ended()
                goes_on = not self.is_over and (not self.is_closed or self._has_more())
                if not goes_on:
                    self._thread = None
            call_all(ended)


def call_all(functions: list[Callable[[], None]]) -> None:
    """Call them."""
    for function in functions:
        function()
