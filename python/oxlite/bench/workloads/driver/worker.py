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
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task
from oxlite.bench.scenarios.opening import open_connection
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.driver.operation import Batch, Operation
from oxlite.bench.workloads.driver.parameters import DriverParameters
from oxlite.bench.workloads.driver.peers import UnavailableError, peer

TIMEOUT_SECONDS = 5.0
NANOSECONDS_PER_MICROSECOND = 1e3
SHOWN_CHARACTERS = 60


def timed(batch: Batch) -> tuple[int, object]:
    """Run one batch: the nanoseconds of its body, and its result.

    Raises:
        VerificationError: the result is not the expected one.
    """
    if batch.before is not None:
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


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


class DriverTask(Task):
    """One driver's connections and their batches."""

    def __init__(self, arguments: Message) -> None:
        self._parameters = DriverParameters(**arguments["parameters"])
        scenario = Scenario(**arguments["scenario"])
        self._path = Path(arguments["path"])
        self._driver = DRIVERS.get(scenario.driver)
        self._connection = open_connection(self._driver, self._path, scenario, TIMEOUT_SECONDS)
        self._peer = peer(scenario.driver, self._path, self._connection, self._parameters.seed)
        self._figures: dict[str, float] = {}
        self._digests: dict[str, str] = {}
        self._absent: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._batches: dict[Operation, Batch] = {}
        for operation in self._parameters.operations():
            self._prepare(operation)
        # What lives as long as the process is not to be gone through at each collection.
        gc.collect()
        gc.freeze()

    def _prepare(self, operation: Operation) -> None:
        count = operation.scaled(self._parameters.scale)
        try:
            self._batches[operation] = operation.prepare(self._peer, count)
        except UnavailableError as error:
            self._absent[operation.metric] = str(error)
        except Exception as error:
            self._failed[operation.metric] = _reason(error)

    def ready(self) -> Message:
        """Who is measured."""
        return {"versions": self._driver.versions()}

    def run(self, turn: Message, start_ns: int) -> None:
        """Every operation's batches, in rounds."""
        fastest_ns: dict[Operation, int] = {}
        for _ in range(self._parameters.batches):
            for operation, batch in list(self._batches.items()):
                try:
                    elapsed_ns, result = timed(batch)
                except Exception as error:
                    self._failed[operation.metric] = _reason(error)
                    del self._batches[operation]
                    continue
                if operation.metric not in self._digests:
                    digest = hashlib.sha256(repr(result).encode()).hexdigest()
                    self._digests[operation.metric] = digest
                fastest_ns[operation] = min(fastest_ns.get(operation, elapsed_ns), elapsed_ns)
        self._figures = {
            operation.metric: fastest_ns[operation]
            / operation.scaled(self._parameters.scale)
            / NANOSECONDS_PER_MICROSECOND
            for operation in self._batches
        }

    def collect(self) -> tuple[Message, bytes]:
        """Microseconds per operation, and what has none, with reasons."""
        return {
            "figures": self._figures,
            "digests": self._digests,
            "absent": self._absent,
            "failed": self._failed,
        }, b""

    def connection(self) -> tuple[Any, str]:
        """See the base class."""
        return self._connection, str(self._path.parent)

    def close(self) -> None:
        """See the base class."""
        self._peer.close()
        self._connection.close()
