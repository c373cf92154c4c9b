"""How the tests of the asyncio face run their coroutines: on every kind of event loop.

What a loop would complain of in the background (exceptions never retrieved, tasks destroyed) fails
the test.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tests.wait import LIMIT_SECONDS

T = TypeVar("T")

Run = Callable[[Callable[[], Coroutine[Any, Any, T]]], T]
Child = Callable[..., str]

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def run_on_asyncio(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(_watched(main))


def run_on_uvloop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_watched(main))


def run_on_anyio(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    import anyio

    return anyio.run(_watched, main)


LOOPS = {"asyncio": run_on_asyncio, "uvloop": run_on_uvloop, "anyio": run_on_anyio}


async def _watched(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    async with asyncio.timeout(LIMIT_SECONDS):
        result = await main()
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []
    return result


@asynccontextmanager
async def background(*works: Awaitable[T]) -> AsyncIterator[list["asyncio.Future[T]"]]:
    """Runs these beside the block, and cancels what is left of them after it."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
