"""The ``driver`` workload: what each thing a driver does costs, in one thread.

One worker process per driver lives through the whole run and has its own copy
of the database; they take turns, so that one alone is at work at any time and
every round compares drivers in the same moments. The file is in WAL mode with
the ``tuned`` pragmas, as in an application.

The axis ``interpreter`` is there if the run names interpreters: each is the
executable of workers, which need Oxlite installed there.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import ClassVar

from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.processes import Worker, WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch, copy_synced
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.driver.catalogue import OPERATIONS
from oxlite.bench.workloads.driver.database import create_database
from oxlite.bench.workloads.driver.parameters import DriverParameters
from oxlite.bench.workloads.driver.table import OperationTable

TASK = "oxlite.bench.workloads.driver.worker:DriverTask"
HUNG_BASE_SECONDS = 60.0
HUNG_SECONDS_PER_BATCH = 60.0

METRICS = tuple(Metric(operation.metric, operation.name, "lower") for operation in OPERATIONS)

SETTINGS = {"journal": "wal", "pragmas": "tuned"}
PEERS = ("stdlib", "apsw")


class DriverSession:
    """A worker per scenario, started when first needed and then kept."""

    def __init__(self, parameters: DriverParameters, scratch: Scratch, stack: ExitStack) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._stack = stack
        self._workers: dict[Scenario, tuple[WorkerGroup, Worker]] = {}
        self._digests: dict[str, tuple[str, str]] = {}

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        group, one = self._workers.get(scenario) or self._start(scenario)
        batches = self._parameters.batches * max(1.0, self._parameters.scale)
        group.release(HUNG_BASE_SECONDS + HUNG_SECONDS_PER_BATCH * batches)
        [(facts, _)] = group.collect()
        sample = self.sample(scenario, facts)
        sample.detail = {"versions": one.facts["versions"]}
        if with_environment:
            first = scenario == next(iter(self._workers))
            sample.environment = group.environment(one, scenario.driver, fsync=first)
        return sample

    def sample(self, scenario: Scenario, facts: Message) -> Sample:
        """What was measured, without what differs from what the others did."""
        figures, failed = dict(facts["figures"]), dict(facts["failed"])
        for metric, digest in facts["digests"].items():
            label, agreed = self._digests.setdefault(metric, (scenario.label, digest))
            if digest != agreed:
                figures.pop(metric, None)
                failed[metric] = f"its result is not that of {label}"
        return Sample(figures, absent=facts["absent"], failed=failed)

    def _start(self, scenario: Scenario) -> tuple[WorkerGroup, Worker]:
        # A label may hold the path of an interpreter.
        directory = self._scratch.fresh(f"{len(self._workers)} {scenario.driver}")
        template = directory / "template.db"
        create_database(template, scenario.journal or "rollback")
        database = directory / "driver.db"
        copy_synced(template, database)
        template.unlink()
        group = self._stack.enter_context(WorkerGroup(directory))
        one = group.start(
            TASK,
            {
                "parameters": asdict(self._parameters),
                "scenario": scenario.used(),
                "path": str(database),
            },
            scenario.build or "own",
            scenario.interpreter,
        )
        group.wait_ready()
        self._workers[scenario] = group, one
        return group, one


class DriverWorkload(Workload[DriverParameters]):
    """See the module."""

    name = "driver"
    title = "what each thing a driver does costs, in one thread"
    parameters_type = DriverParameters
    quick: ClassVar = {"batches": 1, "scale": 0.3}
    axes: ClassVar = {
        "driver": (*PEERS, "oxlite"),
        "journal": ("wal",),
        "pragmas": ("tuned",),
    }
    baselines: ClassVar[Sequence[Filter]] = tuple(SETTINGS | {"driver": peer} for peer in PEERS)
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = ({},)
    metrics: ClassVar = METRICS
    tables: ClassVar = (OperationTable(METRICS, PEERS),)

    def axes_of(self, parameters: DriverParameters) -> Mapping[str, Sequence[str]]:
        """See the base class."""
        if not parameters.interpreter:
            return self.axes
        return {**self.axes, "interpreter": parameters.interpreter}

    def work_digest(self, parameters: DriverParameters) -> str:
        """See the base class."""
        work = [
            (operation.name, operation.scaled(parameters.scale))
            for operation in parameters.operations()
        ]
        return hashlib.sha256(repr((parameters.seed, work)).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: DriverParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        with ExitStack() as stack:
            yield DriverSession(parameters, scratch, stack)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        counts = {"absent": len(sample.absent), "failed": len(sample.failed)}
        rest = "".join(f", {count} {what}" for what, count in counts.items() if count)
        return f"{len(sample.figures)} operations{rest}"
