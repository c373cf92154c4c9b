"""The ``driver`` workload: what each thing a driver does costs, in one thread.

One worker process per driver lives through the whole run and has its own copy
of the database; they take turns, so that one alone is at work at any time and
every round compares drivers in the same moments. The file is in WAL mode with
the ``tuned`` pragmas, as in an application.

The axis ``interpreter`` is there if the run names interpreters: each is the
executable of workers, which need Oxlite installed there.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.driver_table import AXES, BASELINES, PEERS
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import KeptSession
from oxlite.bench.scenarios.axes import Axis
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.driver import database
from oxlite.bench.workloads.driver.catalogue import OPERATIONS, DriverParameters
from oxlite.bench.workloads.driver.table import OperationTable

HUNG_BASE_SECONDS = 60.0
HUNG_SECONDS_PER_BATCH = 60.0

METRICS = tuple(Metric(operation.metric, operation.name, "lower") for operation in OPERATIONS)


class DriverSession(KeptSession[DriverParameters]):
    """A worker per driver."""

    name = "driver"
    task = "oxlite.bench.workloads.driver.worker:DriverTask"

    def __init__(self, parameters: DriverParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._digests: dict[str, tuple[str, str]] = {}

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        database.fill(connection)

    def limit_seconds(self) -> float:
        """See the base class."""
        batches = self.parameters.batches * max(1.0, self.parameters.scale)
        return HUNG_BASE_SECONDS + HUNG_SECONDS_PER_BATCH * batches

    def sample(self, scenario: Scenario, facts: Message, payload: bytes) -> Sample:
        """What was measured, without what differs from what the others did."""
        figures, failed = dict(facts["figures"]), dict(facts["failed"])
        for metric, digest in facts["digests"].items():
            label, agreed = self._digests.setdefault(metric, (scenario.label, digest))
            if digest != agreed:
                figures.pop(metric, None)
                failed[metric] = f"its result is not that of {label}"
        return Sample(figures, absent=facts["absent"], failed=failed)


class DriverWorkload(Workload[DriverParameters]):
    """See the module."""

    name = "driver"
    title = "what each thing a driver does costs, in one thread"
    about = """\
What each thing a driver does costs, in one thread: the standard library, apsw, Oxlite.

If something fails that should work, the exit code is 1. Another Python needs Oxlite with its
extra `cli`, and apsw if that is to be measured; each has a table of its own.
"""
    examples = (
        "",
        "--operation blob --operation Row --repeats 21",
        "--interpreter .venvs/3.12/bin/python --interpreter .venvs/3.13/bin/python",
    )
    parameters_type = DriverParameters
    axes: ClassVar[Sequence[Axis]] = AXES
    baselines: ClassVar[Sequence[Filter]] = BASELINES
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = ({},)
    metrics: ClassVar = METRICS
    session_type = DriverSession
    contest: ClassVar = Contest(
        METRICS, "operations", {"driver": "oxlite"}, [{"driver": PEERS[0]}], counted=True
    )
    tables: ClassVar = (OperationTable(METRICS, PEERS),)

    def work(self, parameters: DriverParameters) -> object:
        """See the base class."""
        operations = parameters.operations()
        return parameters.seed, [(one.name, one.scaled(parameters.scale)) for one in operations]

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        counts = {"absent": len(sample.absent), "failed": len(sample.failed)}
        rest = "".join(f", {count} {what}" for what, count in counts.items() if count)
        return f"{len(sample.figures)} operations{rest}"


WORKLOAD = DriverWorkload()
