"""The process whose event loop runs the tasks of ``async``.

It measures one scenario once. Everything is open and warm before the start; beside the
tasks another one sleeps for a millisecond again and again, and notes how much later
than that it wakes up: so long is the loop kept from whatever else it has to do.

The payload handed over has, for each task, the durations of what it did (unsigned 64-bit
ns), then the delays of the loop (likewise).
"""

import asyncio
import time
from array import array
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task
from oxlite.bench.scenarios.opening import open_connection
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.tasks import work
from oxlite.bench.workloads.tasks.calls import CALLS, Calls, Place
from oxlite.bench.workloads.tasks.parameters import TasksParameters

SLEEP_SECONDS = 0.001
WARM_CALLS = 50


class TasksTask(Task):
    """One scenario."""

    def __init__(self, arguments: Message) -> None:
        self._parameters = TasksParameters(**arguments["parameters"])
        self._scenario = scenario = Scenario(**arguments["scenario"])
        driver = DRIVERS.get(scenario.driver)
        path = Path(arguments["path"])
        self._place = Place(driver, path, scenario, self._parameters.timeout_seconds)
        self._durations: list[array[int]] = []
        self._delays: array[int] = array("Q")
        self._seconds = 0.0
        self._reported = ExitStack()

    def ready(self) -> Message:
        """The digest of the work, and who will do it."""
        versions = self._place.driver.versions()
        return {"digest": work.digest(self._parameters), "versions": versions}

    def run(self, turn: Message, start_ns: int) -> None:
        """Let all tasks work until the time is over."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with CALLS[self._scenario.call or ""](self._place) as calls:
            for number in range(WARM_CALLS):
                await calls.read(number % self._parameters.rows + 1)
            await calls.insert(-1, 0)
            begun_ns = time.perf_counter_ns()
            until_ns = begun_ns + round(self._parameters.duration_seconds * 1e9)
            part = self._reads if self._scenario.operation == "read" else self._inserts
            watch = asyncio.create_task(self._watch())
            count = int(self._scenario.tasks or 1)
            self._durations = await asyncio.gather(
                *(part(calls, task, until_ns) for task in range(count))
            )
            self._seconds = (time.perf_counter_ns() - begun_ns) / 1e9
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _reads(self, calls: Calls, task: int, until_ns: int) -> "array[int]":
        """Read, and see that it is the row that was asked for."""
        read, durations = calls.read, array("Q")
        while True:
            for key in work.keys(self._parameters, task):
                begun_ns = time.perf_counter_ns()
                if begun_ns >= until_ns:
                    return durations
                found = await read(key)
                durations.append(time.perf_counter_ns() - begun_ns)
                if found != work.text(key):
                    raise VerificationError(f"row {key} is {found!r}")

    async def _inserts(self, calls: Calls, task: int, until_ns: int) -> "array[int]":
        """Insert, one row after the other."""
        insert, durations = calls.insert, array("Q")
        while True:
            begun_ns = time.perf_counter_ns()
            if begun_ns >= until_ns:
                return durations
            await insert(task, len(durations))
            durations.append(time.perf_counter_ns() - begun_ns)

    async def _watch(self) -> None:
        while True:
            begun_ns = time.perf_counter_ns()
            await asyncio.sleep(SLEEP_SECONDS)
            late_ns = time.perf_counter_ns() - begun_ns - round(SLEEP_SECONDS * 1e9)
            self._delays.append(max(0, late_ns))

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        counts = [len(durations) for durations in self._durations]
        facts = {"counts": counts, "delays": len(self._delays), "seconds": self._seconds}
        return facts, b"".join(each.tobytes() for each in (*self._durations, self._delays))

    def connection(self) -> tuple[Any, str]:
        """One of the driver's own with the settings of those that were measured."""
        place, directory = self._place, str(self._place.path.parent)
        if self._scenario.driver == "oxlite":
            from oxlite import connect
            from oxlite.bench.drivers.oxlite import PROFILES

            opened = connect(place.path, profile=PROFILES[self._scenario.pragmas or ""])
            return self._reported.enter_context(closing(opened)), directory
        opened_by_driver = open_connection(
            place.driver, place.path, place.scenario, place.timeout_seconds
        )
        return self._reported.enter_context(closing(opened_by_driver)), directory

    def close(self) -> None:
        """See the base class."""
        self._reported.close()
