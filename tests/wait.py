"""Waiting until something is so: what other threads, processes or tasks do beside a test.

Nothing is timed by it: the limit only ends what would never come to be.
"""

import asyncio
import time
from collections.abc import Callable

LIMIT_SECONDS = 60.0
PAUSE_SECONDS = 0.001


def until(condition: Callable[[], object]) -> None:
    """Return once something is so; the thread sleeps meanwhile."""
    ends = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < ends, "this never came to be"
        time.sleep(PAUSE_SECONDS)


async def loop_until(condition: Callable[[], object]) -> None:
    """Return once something is so; the loop goes on meanwhile."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not condition():
            await asyncio.sleep(PAUSE_SECONDS)
