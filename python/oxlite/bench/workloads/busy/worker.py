"""The processes of ``busy``: a parent with long transactions, and children with short ones.

All are write transactions (BEGIN IMMEDIATE) and write nothing: what is measured is
the wait for the lock and nothing else. The parent holds it for about a second, one
transaction a millisecond after the other. The children start when it has the lock; each
has threads, each with a connection of its own, opened beforehand.

The time of the parent, and that of a child, is from its start to the end of its last
transaction; where threads are many it is that of the slowest.

Invariant: when a turn has ended, no thread of it exists.
"""

import threading
import time
from array import array
from collections import Counter
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.base import Connection
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task, wait_until
from oxlite.bench.scenarios.opening import open_connection
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.busy.parameters import BusyParameters

LATE_NS = 200_000_000
"""How much later than the parent the children start."""

GAP_SECONDS = 0.001
"""Between two long transactions of the parent."""

BEGIN, READ, COMMIT = "BEGIN IMMEDIATE", "SELECT 1", "COMMIT"


class _Member:
    """What a parent and a child have in common: how they open a connection, what failed."""

    def __init__(self, arguments: Message) -> None:
        self.parameters = BusyParameters(**arguments["parameters"])
        self.scenario = Scenario(**arguments["scenario"])
        self.path = Path(arguments["path"])
        self.driver = DRIVERS.get(self.scenario.driver)
        self.failures = self.driver.errors()
        self.errors: Counter[str] = Counter()

    def opened(self) -> Connection:
        """A new connection."""
        return open_connection(
            self.driver, self.path, self.scenario, self.parameters.timeout_seconds
        )

    def transact(self, connection: Connection, hold_seconds: float = 0.0) -> bool:
        """Run one transaction; whether it could."""
        execute = connection.execute
        try:
            execute(BEGIN, ())
        except self.failures as error:
            self.errors[f"{type(error).__name__}: {error}"] += 1
            return False
        found = execute(READ, ()).fetchall()
        if hold_seconds:
            time.sleep(hold_seconds)
        execute(COMMIT, ())
        if [tuple(row) for row in found] != [(1,)]:
            raise VerificationError(f"{READ} gave {found!r}")
        return True


class ParentTask(Task):
    """The process with the long transactions."""

    def __init__(self, arguments: Message) -> None:
        self._member = _Member(arguments)
        self._connection = self._member.opened()
        self._elapsed_ns = 0
        self._done = 0

    def ready(self) -> Message:
        """Who is measured."""
        return {"versions": self._member.driver.versions()}

    def run(self, turn: Message, start_ns: int) -> None:
        """The long transactions, one after the other."""
        for number in range(int(self._member.scenario.long or 0)):
            if number:
                time.sleep(GAP_SECONDS)
            self._done += self._member.transact(
                self._connection, self._member.parameters.hold_seconds
            )
            self._elapsed_ns = time.perf_counter_ns() - start_ns

    def collect(self) -> tuple[Message, bytes]:
        """How long it took."""
        return {
            "elapsed_ns": self._elapsed_ns,
            "done": self._done,
            "errors": dict(self._member.errors),
        }, b""

    def connection(self) -> tuple[Any, str]:
        """See the base class."""
        return self._connection, str(self._member.path.parent)

    def close(self) -> None:
        """See the base class."""
        self._connection.close()


class _Thread(threading.Thread):
    """One thread of a child: opens, waits for the start, runs its transactions, closes."""

    def __init__(self, member: _Member) -> None:
        super().__init__()
        self._member = member
        self._prepared = threading.Event()
        self._go = threading.Event()
        self._begin_ns: int | None = None
        self.error: BaseException | None = None
        self.waits_ns = array("Q")
        self.elapsed_ns = 0

    def prepare(self) -> None:
        """Start it, and wait until its connection is open."""
        self.start()
        self._prepared.wait()
        if self.error is not None:
            raise self.error

    def release(self, begin_ns: int | None) -> None:
        """Let it begin then; without an instant it goes home."""
        self._begin_ns = begin_ns
        self._go.set()

    def run(self) -> None:
        """See the class."""
        try:
            connection = self._member.opened()
            self._prepared.set()
            self._go.wait()
            if self._begin_ns is not None:
                self._work(connection, self._begin_ns)
            connection.close()
        except BaseException as error:
            self.error = error
        finally:
            self._prepared.set()

    def _work(self, connection: Connection, begin_ns: int) -> None:
        wait_until(begin_ns)
        for _ in range(self._member.parameters.transactions):
            begun_ns = time.perf_counter_ns()
            done = self._member.transact(connection)
            ended_ns = time.perf_counter_ns()
            if done:
                self.waits_ns.append(ended_ns - begun_ns)
            self.elapsed_ns = ended_ns - begin_ns


class ChildTask(Task):
    """A process with short transactions."""

    def __init__(self, arguments: Message) -> None:
        self._member = _Member(arguments)
        count = int(self._member.scenario.threads or 0)
        self._threads = [_Thread(self._member) for _ in range(count)]
        for thread in self._threads:
            thread.prepare()

    def run(self, turn: Message, start_ns: int) -> None:
        """Let all threads run, and end."""
        for thread in self._threads:
            thread.release(start_ns + LATE_NS)
        for thread in self._threads:
            thread.join()
        for thread in self._threads:
            if thread.error is not None:
                raise thread.error

    def collect(self) -> tuple[Message, bytes]:
        """How long the slowest thread took; the payload is each transaction that was done."""
        return {
            "elapsed_ns": max(thread.elapsed_ns for thread in self._threads),
            "done": sum(len(thread.waits_ns) for thread in self._threads),
            "errors": dict(self._member.errors),
        }, b"".join(thread.waits_ns.tobytes() for thread in self._threads)

    def connection(self) -> tuple[Any, str]:
        """Those of the threads are closed; the parent's is the one to ask.

        Raises:
            LookupError: always.
        """
        raise LookupError("a child has no connection when its threads have ended")

    def close(self) -> None:
        """Let threads that were never released end."""
        for thread in self._threads:
            thread.release(None)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
