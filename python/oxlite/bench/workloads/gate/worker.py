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
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task
from oxlite.bench.scenarios.opening import open_connection
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.gate import work
from oxlite.bench.workloads.gate.parameters import GateParameters


class GateTask(Task):
    """One process' writes on one connection."""

    def __init__(self, arguments: Message) -> None:
        parameters = GateParameters(**arguments["parameters"])
        scenario = Scenario(**arguments["scenario"])
        keys = work.keys(parameters, arguments["process"])
        self._path = Path(arguments["path"])
        self._driver = DRIVERS.get(scenario.driver)
        self._duration_ns = round(parameters.duration_seconds * 1e9)
        self._digest = work.keys_digest(keys)
        self._keys = [(key,) for key in keys]
        self._waits_ns = array("Q")
        self._outcomes = array("H")
        self._errors: dict[tuple[str, str], int] = {}
        self._connection = open_connection(
            self._driver, self._path, scenario, parameters.timeout_seconds
        )
        self._connection.execute(work.WARM, ()).fetchall()

    def ready(self) -> Message:
        """The digest of the work, and who will do it."""
        return {"digest": self._digest, "versions": self._driver.versions()}

    def run(self, turn: Message, start_ns: int) -> None:
        """Write until the time is over."""
        execute, write = self._connection.execute, work.WRITE
        clock = time.perf_counter_ns
        waited, came_to = self._waits_ns.append, self._outcomes.append
        failures = self._driver.errors()
        until_ns = start_ns + self._duration_ns
        begun_ns = clock()
        for parameters in itertools.cycle(self._keys):
            outcome = 0
            try:
                execute(write, parameters)
            except failures as error:
                outcome = self._note(error)
            ended_ns = clock()
            waited(ended_ns - begun_ns)
            came_to(outcome)
            if ended_ns >= until_ns:
                break
            begun_ns = ended_ns

    def _note(self, error: Exception) -> int:
        known = (type(error).__name__, str(error))
        return self._errors.setdefault(known, len(self._errors) + 1)

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        errors = [f"{name}: {message}" for name, message in self._errors]
        return {"errors": errors}, self._waits_ns.tobytes() + self._outcomes.tobytes()

    def connection(self) -> tuple[Any, str]:
        """See the base class."""
        return self._connection, str(self._path.parent)

    def close(self) -> None:
        """See the base class."""
        self._connection.close()
