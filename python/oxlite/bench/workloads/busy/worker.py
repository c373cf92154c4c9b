"""The processes of ``busy``: a parent with long transactions, and children with short ones.

All are write transactions (BEGIN IMMEDIATE) and write nothing: what is measured is
the wait for the lock and nothing else. The parent holds it for about a second, one
transaction a millisecond after the other. The children start when it has the lock; each
has threads, each with a connection of its own, opened beforehand and closed with its last
transaction.

The time of the parent, and that of a child, is from its start to the end of its last
transaction; where threads are many it is that of the slowest.

Invariant: when a task is closed, no thread of it exists.
"""

import time
from array import array
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

from oxlite.bench.drivers.base import Connection
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import kind, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.harness.worker import wait_until
from oxlite.bench.workloads.busy.parameters import BusyParameters

LATE_NS = 200_000_000
"""How much later than the parent the children start."""

GAP_SECONDS = 0.001
"""Between two long transactions of the parent."""

BEGIN, READ, COMMIT = "BEGIN IMMEDIATE", "SELECT 1", "COMMIT"


class Done(NamedTuple):
    """What a thread did.

    Attributes:
        waits_ns: how long each transaction took that was done.
        errors: of the others.
        elapsed_ns: from the start to the end of the last one.
    """

    waits_ns: "array[int]"
    errors: list[str]
    elapsed_ns: int


class _BusyTask(ScenarioTask[BusyParameters]):
    """A process that runs transactions."""

    parameters_type = BusyParameters

    def transact(
        self, connection: Connection, start_ns: int, count: int, hold_seconds: float, gap: float
    ) -> Done:
        """Run transactions from that instant on."""
        execute, clock, failures = connection.execute, time.perf_counter_ns, self.failures
        waits_ns, errors, ended_ns = array("Q"), list[str](), start_ns
        for number in range(count):
            if number and gap:
                time.sleep(gap)
            begun_ns = clock()
            try:
                execute(BEGIN, ())
            except failures as error:
                errors.append(kind(error))
                ended_ns = clock()
                continue
            found = execute(READ, ()).fetchall()
            if hold_seconds:
                time.sleep(hold_seconds)
            execute(COMMIT, ())
            ended_ns = clock()
            waits_ns.append(ended_ns - begun_ns)
            if [tuple(row) for row in found] != [(1,)]:
                raise VerificationError(f"{READ} gave {found!r}")
        return Done(waits_ns, errors, ended_ns - start_ns)

    def handed_over(self, found: list[Done]) -> tuple[Message, bytes]:
        """What all threads did; the slowest counts, and the payload is each transaction."""
        return {
            "elapsed_ns": max(done.elapsed_ns for done in found),
            "done": sum(len(done.waits_ns) for done in found),
            "errors": Counter(error for done in found for error in done.errors),
        }, packed(done.waits_ns for done in found)


class ParentTask(_BusyTask):
    """The process with the long transactions."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._connection: Connection = self.measured
        self._found: list[Done] = []

    def run(self, turn: Message, start_ns: int) -> None:
        """The long transactions, one after the other."""
        long, hold_seconds = int(self.scenario.get("long", 0)), self.parameters.hold_seconds
        done = self.transact(self._connection, start_ns, long, hold_seconds, GAP_SECONDS)
        self._found = [done]

    def collect(self) -> tuple[Message, bytes]:
        """How long it took."""
        return self.handed_over(self._found)


class ChildTask(_BusyTask):
    """A process with short transactions, in threads that each open and use a connection."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        count = int(self.scenario.get("threads", 0))
        self._threads = [self.exits.enter_context(ThreadPoolExecutor(1)) for _ in range(count)]
        self._connections = [one.submit(self.place.opened).result() for one in self._threads]
        self._found: list[Done] = []

    def run(self, turn: Message, start_ns: int) -> None:
        """Let all threads run, and end."""
        pairs = zip(self._threads, self._connections, strict=True)
        begin_ns = start_ns + LATE_NS
        running = [thread.submit(self._work, connection, begin_ns) for thread, connection in pairs]
        self._found = [one.result() for one in running]

    def _work(self, connection: Connection, begin_ns: int) -> Done:
        with closing(connection):
            wait_until(begin_ns)
            return self.transact(connection, begin_ns, self.parameters.transactions, 0.0, 0.0)

    def collect(self) -> tuple[Message, bytes]:
        """How long the slowest thread took."""
        return self.handed_over(self._found)

    def close(self) -> None:
        """Close also what was never released, each connection in its own thread."""
        for thread, connection in zip(self._threads, self._connections, strict=True):
            thread.submit(connection.close)
        super().close()
