"""What one process of ``kv`` does.

Each statement is timed on its own: the instants before and after it, on the
clock shared by all processes. A failed one is counted by class and message and
never tried again. The connection, the schema and the statement cache are warm
before the start (one read), as in a process that has been serving for a while.

Two kinds of turn: the stream once, from its first to its last statement; and,
where the turn names ``seconds``, the stream over and over for that long, when
only the statements that succeeded in time are counted.

The payload handed over by the first is three arrays of one entry per statement: the instants
before and after (unsigned 64-bit ns), and the outcome (unsigned 16-bit: 0 done,
n the n-th of the reported errors).
"""

import itertools
import time
from array import array

from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import Errors, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.kv import work


class KvTask(ScenarioTask[work.KvParameters]):
    """One process' stream on one connection."""

    parameters_type = work.KvParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        operations = work.stream(self.parameters, arguments["process"])
        self.digests = [work.stream_digest(operations)]
        self._statements: list[tuple[str, tuple[str, ...]]] = [
            (work.READ, (key,)) if value is None else (work.WRITE, (key, value))
            for key, value in operations
        ]
        self._begun = array("Q", bytes(8 * len(operations)))
        self._ended = array("Q", bytes(8 * len(operations)))
        self._outcomes = array("H", bytes(2 * len(operations)))
        self._errors = Errors()
        self._missing = 0
        self._handed_over: tuple[Message, bytes] = {}, b""
        self.measured.execute(work.READ, (work.key(0),)).fetchall()

    def run(self, turn: Message, start_ns: int) -> None:
        """Do the stream once, or for the ``seconds`` of the turn."""
        if "seconds" in turn:
            self._run_for(start_ns + round(turn["seconds"] * 1e9))
        else:
            self._run_once()

    def _run_once(self) -> None:
        execute = self.measured.execute
        clock = time.perf_counter_ns
        begun, ended, outcomes = self._begun, self._ended, self._outcomes
        failures = self.failures
        for index, (statement, parameters) in enumerate(self._statements):
            begun[index] = clock()
            try:
                row = execute(statement, parameters).fetchone()
            except failures as error:
                ended[index] = clock()
                outcomes[index] = self._errors.number(error)
            else:
                ended[index] = clock()
                if row is None and statement is work.READ:
                    self._missing += 1
        facts = {"errors": self._errors.kinds(), "missing": self._missing}
        self._handed_over = facts, packed((begun, ended, outcomes))

    def _run_for(self, until_ns: int) -> None:
        execute = self.measured.execute
        clock = time.perf_counter_ns
        failures = self.failures
        done = failed = 0
        for statement, parameters in itertools.cycle(self._statements):
            try:
                execute(statement, parameters).fetchone()
            except failures:
                succeeded = False
            else:
                succeeded = True
            if clock() > until_ns:
                break
            done += succeeded
            failed += not succeeded
        self._handed_over = {"done": done, "failed": failed}, b""

    def collect(self) -> tuple[Message, bytes]:
        """What the last turn measured; see the module."""
        return self._handed_over
