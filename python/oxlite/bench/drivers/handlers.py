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
"""

import random
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


def handler(name: str, timeout_seconds: float) -> Callable[[int], bool]:
    """The handler called ``name``, for one connection; it gives up after the timeout."""
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
