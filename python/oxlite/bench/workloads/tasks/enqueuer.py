"""The processes of the lab that enqueue: one that makes the system ready, and others that use it.

In each turn one does what the session asks. What is handed over of tasks that are timed are
unsigned 64-bit numbers: the instants (``time.monotonic_ns``) at which their calls began; or, where
as many are enqueued as there is time for, how long each call took and the number of its error.
"""

import time
from array import array
from collections.abc import Iterator
from itertools import count

from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import NS_PER_SECOND, Errors, digest, line, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.tasks import work
from oxlite.bench.workloads.tasks.systems.base import Told
from oxlite.bench.workloads.tasks.systems.catalogue import opened
from oxlite.bench.workloads.tasks.work import TasksParameters


def work_digest(parameters: TasksParameters) -> str:
    """Of what is enqueued."""
    return digest((parameters, work.MILLISECONDS))


class EnqueuerTask(ScenarioTask[TasksParameters]):
    """A process that enqueues."""

    parameters_type = TasksParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self.digests = [work_digest(self.parameters)]
        scenario, path = self.scenario, str(self.place.path)
        self.told = Told(scenario["way"], path, arguments["ledger"], scenario["load"])
        self.system = opened(scenario, self.told)
        self.exits.callback(self.system.close)
        self._facts: Message = {}
        self._arrays: list[array[int]] = []

    def connection(self) -> tuple[object, str]:
        """One with the settings of those that are measured."""
        return self.system.connection(), str(self.place.path.parent)

    def run(self, turn: Message, start_ns: int) -> None:
        """Do what is asked."""
        self._facts, self._arrays = {}, []
        system = self.system
        match turn["do"]:
            case work.HOLD:
                for number, place in turn["holds"]:
                    system.hold(number, place)
            case work.FILL:
                system.enqueue_all(range(turn["count"]), turn["milliseconds"])
            case work.FLOOD:
                system.flood(turn["count"], turn["counted"])
            case work.PACE:
                self._pace(turn["count"], turn["hertz"])
            case work.RUSH:
                self._rush(start_ns, turn["seconds"])
            case work.COUNT:
                self._facts = {"waiting": system.waiting()}
            case other:
                raise ValueError(f"nobody knows how to do {other!r}")

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        return self._facts, packed(self._arrays)

    def _pace(self, wanted: int, hertz: int) -> None:
        clock, enqueue, called_ns = time.monotonic_ns, self.system.enqueue, array("Q")
        gap_ns = NS_PER_SECOND / hertz
        begun_ns = clock()
        for number in range(wanted):
            ahead_ns = begun_ns + number * gap_ns - clock()
            if ahead_ns > 0:
                time.sleep(ahead_ns / NS_PER_SECOND)
            called_ns.append(clock())
            enqueue(number, 0)
        self._arrays = [called_ns]

    def _rush(self, start_ns: int, seconds: float) -> None:
        clock, enqueue = time.perf_counter_ns, self.system.enqueue
        times_ns, numbers, errors = array("Q"), array("Q"), Errors(line)
        until_ns = start_ns + round(seconds * NS_PER_SECOND)
        numbered: Iterator[int] = count()
        begun_ns, has_time = clock(), True
        while has_time:
            try:
                enqueue(next(numbered), 0)
            except Exception as error:
                number = errors.number(error)
            else:
                number = 0
            ended_ns = clock()
            times_ns.append(ended_ns - begun_ns)
            numbers.append(number)
            begun_ns = ended_ns
            has_time = begun_ns < until_ns
        self._facts = {
            "calls": len(times_ns),
            "errors": errors.kinds(),
            "elapsed_ns": begun_ns - start_ns,
        }
        self._arrays = [times_ns, numbers]


class PreparingTask(EnqueuerTask):
    """A process that makes the system ready before anybody else uses it."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self.system.prepare()
