"""What one process of ``gate`` does: writes, one after the other, until the time is over.

The wait of a write is the time from before its statement to after it; the
statement is a transaction, so this is the wait for the lock and the commit. The
write that is under way when the time is over is finished, and its wait counts,
so that the longest waits are not cut off; it does not count for the rate.

The payload handed over is two arrays of one entry per write: its wait (unsigned 64-bit
ns), and the outcome (unsigned 16-bit: 0 done, n the n-th of the reported errors).
"""

import itertools
import time
from array import array

from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import Errors, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.gate import work
from oxlite.bench.workloads.gate.work import GateParameters


class GateTask(ScenarioTask[GateParameters]):
    """One process' writes on one connection."""

    parameters_type = GateParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        keys = work.keys(self.parameters, arguments["process"])
        self.digests = [work.keys_digest(keys)]
        self._duration_ns = round(self.parameters.duration_seconds * 1e9)
        self._keys = [(key,) for key in keys]
        self._waits_ns = array("Q")
        self._numbers = array("H")
        self._errors = Errors()
        self.measured.execute(work.WARM, ()).fetchall()

    def run(self, turn: Message, start_ns: int) -> None:
        """Write until the time is over."""
        execute, write = self.measured.execute, work.WRITE
        clock = time.perf_counter_ns
        waited, came_to = self._waits_ns.append, self._numbers.append
        failures = self.failures
        until_ns = start_ns + self._duration_ns
        begun_ns = clock()
        for parameters in itertools.cycle(self._keys):
            number = 0
            try:
                execute(write, parameters)
            except failures as error:
                number = self._errors.number(error)
            ended_ns = clock()
            waited(ended_ns - begun_ns)
            came_to(number)
            if ended_ns >= until_ns:
                break
            begun_ns = ended_ns

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        return {"errors": self._errors.kinds()}, packed((self._waits_ns, self._numbers))
