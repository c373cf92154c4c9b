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
from contextlib import closing
from functools import cached_property
from typing import Any

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import NS_PER_SECOND, digest, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.async_ import work
from oxlite.bench.workloads.async_.calls import CALLS, Calls
from oxlite.bench.workloads.async_.work import AsyncParameters

SLEEP_SECONDS = 0.001
WARM_CALLS = 50


class TasksTask(ScenarioTask[AsyncParameters]):
    """One scenario."""

    parameters_type = AsyncParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self.digests = [digest(work.shape(self.parameters))]
        self._durations: list[array[int]] = []
        self._delays: array[int] = array("Q")
        self._seconds = 0.0

    def run(self, turn: Message, start_ns: int) -> None:
        """Let all tasks work until the time is over."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with CALLS[self.scenario["call"]](self.place) as calls:
            for number in range(WARM_CALLS):
                await calls.read(number % self.parameters.rows + 1)
            await calls.insert(-1, 0)
            begun_ns = time.perf_counter_ns()
            until_ns = begun_ns + round(self.parameters.duration_seconds * NS_PER_SECOND)
            part = self._reads if self.scenario.get("operation") == "read" else self._inserts
            watch = asyncio.create_task(self._watch())
            count = int(self.scenario.get("tasks", 1))
            self._durations = await asyncio.gather(
                *(part(calls, task, until_ns) for task in range(count))
            )
            self._seconds = (time.perf_counter_ns() - begun_ns) / NS_PER_SECOND
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _reads(self, calls: Calls, task: int, until_ns: int) -> "array[int]":
        """Read, and see that it is the row that was asked for."""
        read, durations = calls.read, array("Q")
        while True:
            for key in work.keys(self.parameters, task):
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
            late_ns = time.perf_counter_ns() - begun_ns - round(SLEEP_SECONDS * NS_PER_SECOND)
            self._delays.append(max(0, late_ns))

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        counts = [len(durations) for durations in self._durations]
        facts = {"counts": counts, "delays": len(self._delays), "seconds": self._seconds}
        return facts, packed((*self._durations, self._delays))

    @cached_property
    def measured(self) -> Any:  # noqa: ANN401
        """One of the driver's own with the settings of those that were measured."""
        place = self.place
        if self.scenario.driver == "oxlite":
            from oxlite import connect
            from oxlite.bench.drivers.oxlite import PROFILES

            opened: Any = connect(place.path, profile=PROFILES[self.scenario["pragmas"]])
        else:
            opened = place.opened()
        return self.exits.enter_context(closing(opened))
