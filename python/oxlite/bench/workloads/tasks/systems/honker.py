"""honker's queue, with its own settings: WAL, ``synchronous=NORMAL``. No results are kept.

Its workers are those of its ``run_workers``, in an event loop. They run functions in the threads of
the loop, of which there are as many as tasks at once, so that few processors do not limit them.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from oxlite.bench.drivers.messages import HonkerConnection
from oxlite.bench.workloads.tasks import functions
from oxlite.bench.workloads.tasks.systems.base import QUEUE, System, told

database: Any = import_module("honker").open(told().path)
queue: Any = database.queue(QUEUE)
run: Any = queue.task(name="run", store_result=False)(functions.run)
hold: Any = queue.task(name="hold", store_result=False)(functions.hold)

WAITING = "SELECT count(*) AS n FROM _honker_live WHERE state = 'pending'"


class HonkerTasks(System):
    """See the module."""

    def enqueue(self, number: int, milliseconds: int) -> object:
        """See the base class."""
        return run(number, milliseconds)

    def hold(self, number: int, place: int) -> object:
        """See the base class."""
        return hold(number)

    def waiting(self) -> int:
        """See the base class."""
        found: int = database.query(WAITING)[0]["n"]
        return found

    def connection(self) -> Any:  # noqa: ANN401
        """See the base class."""
        return HonkerConnection(database)

    def close(self) -> None:
        """See the base class."""
        database.close()


def system() -> System:
    """The system of this process."""
    return HonkerTasks()


def work(threads: int) -> None:
    """Be a worker, until the process ends."""

    async def run_tasks() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads))
        await database.run_workers(queue=QUEUE, concurrency=threads)

    asyncio.run(run_tasks())
