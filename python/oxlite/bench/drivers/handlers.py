"""Busy handlers of the lab: ways to wait that no driver offers, for comparison.

They are callables in Python, as an application would write them, so each look at
the lock takes the GIL, which the policies of Oxlite do not.

``jitter``
    SQLite's own growing sleeps, each 0.5 to 1.5 times as long, at random, so that
    waiters do not stay in step. The random stream is not seeded: which process
    happens to wait shorter is no part of the work.
``reversed``
    the same sleeps from the last to the first, then the first for ever: who has
    waited longest looks most often.
``held``
    SQLite's own, slept with the GIL held: while one thread waits, none of the others
    runs. A control, for what a driver is worth that lets go of it.
"""

import random
import sys
import time
from collections.abc import Callable

SLEEPS_MS = (1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100)
"""SQLite's own, of which the last is repeated."""


def jitter_ms(asked: int) -> float:
    """How long to sleep, having slept ``asked`` times."""
    return SLEEPS_MS[min(asked, len(SLEEPS_MS) - 1)] * (0.5 + random.random())


def reversed_ms(asked: int) -> float:
    """The same, the other way round."""
    return SLEEPS_MS[max(len(SLEEPS_MS) - 1 - asked, 0)]


def held_ms(asked: int, timeout_ms: int) -> int:
    """How long SQLite's own handler sleeps that has been asked so often; 0 if it gives up.

    Source: ``sqliteDefaultBusyCallback`` of SQLite, which counts what it has asked to sleep.
    """
    growing = SLEEPS_MS[: min(asked, len(SLEEPS_MS))]
    slept = sum(growing) + SLEEPS_MS[-1] * max(asked - len(SLEEPS_MS), 0)
    return max(0, min(SLEEPS_MS[min(asked, len(SLEEPS_MS) - 1)], timeout_ms - slept))


def _sleep_held() -> Callable[[int], object]:
    """What sleeps for so many milliseconds and keeps the GIL."""
    import ctypes  # of no other worker's start

    # A library loaded as PyDLL is called without letting go of the GIL.
    if sys.platform == "win32":
        sleep: Callable[[int], object] = ctypes.PyDLL("kernel32").Sleep
        return sleep
    usleep = ctypes.PyDLL(None).usleep
    return lambda ms: usleep(1000 * ms)


def held(timeout_seconds: float) -> Callable[[int], bool]:
    """The handler called ``held``, for any number of connections."""
    sleep, timeout_ms = _sleep_held(), round(1000 * timeout_seconds)

    def wait(asked: int) -> bool:
        ms = held_ms(asked, timeout_ms)
        if ms:
            sleep(ms)
        return ms > 0

    return wait


def handler(name: str, timeout_seconds: float) -> Callable[[int], bool]:
    """The handler called ``name``, for one connection; it gives up after the timeout."""
    if name == "held":
        return held(timeout_seconds)
    sleep_ms = {"jitter": jitter_ms, "reversed": reversed_ms}[name]
    deadline = 0.0

    def wait(asked: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if asked == 0:
            deadline = now + timeout_seconds
        if now >= deadline:
            return False
        time.sleep(min(sleep_ms(asked) / 1000, deadline - now))
        return True

    return wait
