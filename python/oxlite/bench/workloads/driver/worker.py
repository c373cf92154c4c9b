"""The operations of ``driver``, timed in batches in one worker process.

Everything is prepared once and lives as long as the process. A turn goes
through all operations several times; of an operation's batches in a turn the
fastest counts, since whatever else the machine does can only add to one.

Invariants: the same work on every driver; what a batch did is checked each time
and its digest handed over, to be compared with the other drivers'; an operation
that fails fails alone, and is not tried again.
"""

import gc
import hashlib
import time

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness import outcomes
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.driver.catalogue import DriverParameters
from oxlite.bench.workloads.driver.operation import Batch, Operation
from oxlite.bench.workloads.driver.peers import UnavailableError, peer

NANOSECONDS_PER_MICROSECOND = 1e3
SHOWN_CHARACTERS = 60


def timed(batch: Batch) -> tuple[int, object]:
    """Run one batch: the nanoseconds of its body, and its result.

    Raises:
        VerificationError: the result is not the expected one.
    """
    batch.before()
    gc.collect()
    begun_ns = time.perf_counter_ns()
    value = batch.run()
    elapsed_ns = time.perf_counter_ns() - begun_ns
    result = batch.result(value)
    if result != batch.expected:
        raise VerificationError(f"{_shown(result)} instead of {_shown(batch.expected)}")
    return elapsed_ns, result


def _shown(result: object) -> str:
    text = repr(result)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


class DriverTask(ScenarioTask[DriverParameters]):
    """One driver's connections and their batches."""

    parameters_type = DriverParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._peer = peer(
            self.scenario.driver, self.place.path, self.measured, self.parameters.seed
        )
        self.exits.callback(self._peer.close)
        self._figures: dict[str, float] = {}
        self._results: dict[str, str] = {}
        self._absent: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._batches: dict[Operation, Batch] = {}
        for operation in self.parameters.operations():
            self._prepare(operation)
        # What lives as long as the process is not to be gone through at each collection.
        gc.collect()
        gc.freeze()

    def _prepare(self, operation: Operation) -> None:
        try:
            count = operation.scaled(self.parameters.scale)
            self._batches[operation] = operation.prepare(self._peer, count)
        except UnavailableError as error:
            self._absent[operation.metric] = str(error)
        except Exception as error:
            self._failed[operation.metric] = outcomes.line(error)

    def run(self, turn: Message, start_ns: int) -> None:
        """Every operation's batches, in rounds."""
        fastest_ns: dict[Operation, int] = {}
        for _ in range(self.parameters.batches):
            for operation, batch in list(self._batches.items()):
                try:
                    elapsed_ns, result = timed(batch)
                except Exception as error:
                    self._failed[operation.metric] = outcomes.line(error)
                    del self._batches[operation]
                    continue
                if operation.metric not in self._results:
                    digest = hashlib.sha256(repr(result).encode()).hexdigest()
                    self._results[operation.metric] = digest
                fastest_ns[operation] = min(fastest_ns.get(operation, elapsed_ns), elapsed_ns)
        self._figures = {
            operation.metric: fastest_ns[operation]
            / operation.scaled(self.parameters.scale)
            / NANOSECONDS_PER_MICROSECOND
            for operation in self._batches
        }

    def collect(self) -> tuple[Message, bytes]:
        """Microseconds per operation, and what has none, with reasons."""
        return {
            "figures": self._figures,
            "digests": self._results,
            "absent": self._absent,
            "failed": self._failed,
        }, b""
