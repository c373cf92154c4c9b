"""What a process does that writes: transactions, one after the other, until the flag is up.

The time of a transaction is from before its BEGIN to after its COMMIT, so with the wait for the
lock. The one that is under way when the flag is raised is finished.

The payload handed over is three arrays of one entry per transaction: the instants before and after
(unsigned 64-bit ns of the clock that all processes share), and the outcome (unsigned 16-bit: 0
done, n the n-th of the reported errors).
"""

import contextlib
import itertools
import time
from array import array
from contextlib import closing
from pathlib import Path

from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import Errors, digest, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.backup import work
from oxlite.bench.workloads.backup.flag import Flag
from oxlite.bench.workloads.backup.work import BackupParameters

BEGIN, COMMIT, ROLLBACK = "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"
CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)"


class WriterTask(ScenarioTask[BackupParameters]):
    """One process' transactions on one connection."""

    parameters_type = BackupParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        transactions = work.transactions(self.parameters, arguments["process"])
        self.digests = [digest(transactions)]
        self._is_first = not arguments["process"]
        self._work = [(one.first, one.second, one.moment) for one in transactions]
        self._flag = self.exits.enter_context(closing(Flag(Path(arguments["flag"]))))
        self._begun_ns, self._ended_ns, self._numbers = array("Q"), array("Q"), array("H")
        self._errors = Errors()
        self._moment = 0
        self.measured.execute(work.WARM, ()).fetchall()

    def run(self, turn: Message, start_ns: int) -> None:
        """Write until the flag is up."""
        execute, write, clock = self.measured.execute, work.WRITE, time.perf_counter_ns
        begun, ended, came_to = self._begun_ns.append, self._ended_ns.append, self._numbers.append
        failures, is_up = self.failures, self._flag.is_up
        for first, second, moment in itertools.cycle(self._work):
            if is_up():
                break
            number = 0
            begun(clock())
            try:
                execute(BEGIN, ())
                execute(write, first)
                execute(write, second)
                execute(COMMIT, ())
            except failures as error:
                number = self._errors.number(error)
            ended(clock())
            came_to(number)
            if number:
                with contextlib.suppress(*failures):  # there may be nothing to roll back
                    execute(ROLLBACK, ())
            else:
                self._moment += moment

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module.

        The first one empties the WAL, which may be large, lest it be done when all are to end.
        """
        if self._is_first:
            self.measured.execute(CHECKPOINT, ()).fetchall()
        facts = {
            "count": len(self._numbers),
            "errors": self._errors.kinds(),
            "moment": self._moment,
        }
        return facts, packed((self._begun_ns, self._ended_ns, self._numbers))
