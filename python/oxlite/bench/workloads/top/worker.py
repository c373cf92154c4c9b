"""What a process does that is watched, or not: one small transaction after the other, for a time.

It goes on for a moment longer than is counted, so that the last look sees it at work. It checks
what it reads no further than that there is a row; the last one is handed over.

The payload handed over is three arrays of one entry per round: the instant of its end (unsigned
64-bit ns of the clock that all processes share), the time of its last operation (the same, ns), and
the outcome (unsigned 16-bit: 0 done, n the n-th of the reported errors).
"""

import itertools
import os
import time
from array import array
from contextlib import closing
from functools import cached_property
from typing import Any

from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import NS_PER_SECOND, Errors, digest, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.top import ways, work
from oxlite.bench.workloads.top.work import TopParameters

TAIL_SECONDS = 0.1


class WorkerTask(ScenarioTask[TopParameters]):
    """One process' operations on one connection."""

    parameters_type = TopParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        keys = work.keys(self.parameters, arguments["process"])
        self.digests = [digest(keys)]
        self._keys = [(key,) for key in keys]
        self._operation = work.OPERATIONS[self.scenario["load"]]
        self._ended_ns, self._times_ns, self._numbers = array("Q"), array("Q"), array("H")
        self._errors = Errors()
        self._last: tuple[int, Any] | None = None
        self.measured.execute(self._operation.sql, (work.NO_ROW,)).fetchone()

    @cached_property
    def measured(self) -> Any:  # noqa: ANN401 - whatever the driver calls a connection
        """See the base class."""
        return self.exits.enter_context(closing(ways.opened(self.place)))

    def run(self, turn: Message, start_ns: int) -> None:
        """Work for as long as the parameters say."""
        parameters = self.parameters
        seconds = parameters.lead_seconds + parameters.limit_seconds + TAIL_SECONDS
        until_ns = start_ns + round(seconds * NS_PER_SECOND)
        execute, sql, clock = self.measured.execute, self._operation.sql, time.perf_counter_ns
        untimed, failures = range(self._operation.in_round - 1), self.failures
        ended, took, came_to = self._ended_ns.append, self._times_ns.append, self._numbers.append
        next_key = itertools.cycle(self._keys).__next__
        key, row, now_ns = (work.NO_ROW,), None, clock()
        while now_ns < until_ns:
            number, begun_ns = 0, now_ns
            try:
                for _ in untimed:
                    execute(sql, next_key()).fetchone()
                key = next_key()
                begun_ns = clock()
                row = execute(sql, key).fetchone()
            except failures as error:
                number = self._errors.number(error)
            now_ns = clock()
            ended(now_ns)
            took(now_ns - begun_ns)
            came_to(number)
        self._last = None if row is None else (key[0], row[0])

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        facts = {
            "process_id": os.getpid(),
            "count": len(self._numbers),
            "errors": self._errors.kinds(),
            "last": self._last,
        }
        return facts, packed((self._ended_ns, self._times_ns, self._numbers))
