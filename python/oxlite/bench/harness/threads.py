"""Threads that do their parts of a turn together, and end by themselves.

A part is a context manager around a function: entering prepares (opens the
thread's own connection, warms it), the function is what is measured. All
prepare first, then sleep until one instant. Even so one is the first to wake up,
and for a moment has the interpreter to itself, which with a driver that lets go
of the GIL at every call is worth more calls than all the rest of a short turn:
so what is done in the first moments does not count. One thread alone needs no such
moments.

Invariants: when :func:`together` returns or raises, none of its threads exists;
every part ends when its window has closed, for which nobody must wake it; what
goes wrong in a thread is raised here.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from oxlite.bench.harness.worker import wait_until

LEAD_BASE_NS = 5_000_000
LEAD_PER_THREAD_NS = 1_000_000
SETTLE_NS = 20_000_000


@dataclass
class Window:
    """The time in which parts work, in ns of ``perf_counter_ns``.

    Attributes:
        begin_ns: when all begin.
        from_ns: when what is done begins to count.
        until_ns: when it closes; a part may close it earlier, for all.
    """

    begin_ns: int
    from_ns: int
    until_ns: int


Body = Callable[[Window], Any]
Part = Callable[[], AbstractContextManager[Body]]


class _Turn:
    """The threads of one turn, what they found, and what went wrong."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.found: list[Any] = [None] * len(parts)
        self.errors: list[BaseException] = []
        self.window: Window | None = None
        self._prepared = threading.Semaphore(0)
        self._go = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(place, part))
            for place, part in enumerate(parts)
        ]

    def run(self, seconds: float, settle_ns: int) -> None:
        """Start all, let them begin together, wait until all have ended."""
        started: list[threading.Thread] = []
        try:
            for thread in self._threads:
                thread.start()
                started.append(thread)
            for _ in started:
                self._prepared.acquire()
            if not self.errors:
                lead_ns = LEAD_BASE_NS + LEAD_PER_THREAD_NS * len(started)
                begin_ns = time.perf_counter_ns() + lead_ns
                from_ns = begin_ns + settle_ns
                self.window = Window(begin_ns, from_ns, from_ns + round(seconds * 1e9))
        finally:
            # Without a window they go home.
            self._go.set()
            for thread in started:
                thread.join()

    def _work(self, place: int, part: Part) -> None:
        prepared = False
        try:
            with part() as body:
                prepared = True
                self._prepared.release()
                self._go.wait()
                if self.window is not None:
                    wait_until(self.window.begin_ns)
                    self.found[place] = body(self.window)
        except BaseException as error:
            self.errors.append(error)
        finally:
            if not prepared:
                self._prepared.release()


def together(parts: Sequence[Part], seconds: float, settle_ns: int = SETTLE_NS) -> list[Any]:
    """Do all ``parts`` at once, each in a thread of its own, for ``seconds`` at most.

    Args:
        parts: what the threads do.
        seconds: how long the time is that counts.
        settle_ns: the first moments, which do not count.

    Returns:
        what each part's function returned, in order.
    """
    turn = _Turn(parts)
    turn.run(seconds, settle_ns)
    if turn.errors:
        raise turn.errors[0]
    return turn.found
