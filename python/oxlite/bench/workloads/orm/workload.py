"""The ``orm`` workload: objects and their relations through an object-relational mapper.

One worker process per scenario lives through the whole run and has its own database; they take
turns, so that one alone is at work at any time and every round compares them in the same
moments. The mapper is SQLAlchemy's, the file in WAL mode or not as the scenario says.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from importlib import util
from typing import ClassVar

from oxlite.bench.errors import UsageError
from oxlite.bench.harness.model import Plan, Sample
from oxlite.bench.harness.processes import Worker, WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import number
from oxlite.bench.scenarios.pragmas import JOURNAL_MODES
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.orm.parameters import OrmParameters
from oxlite.bench.workloads.orm.table import METRICS, PEERS, SUM, TABLES

TASK = "oxlite.bench.workloads.orm.worker:OrmTask"
HUNG_SECONDS = 1800.0


class OrmSession:
    """A worker per scenario, started when first needed and then kept."""

    def __init__(self, parameters: OrmParameters, scratch: Scratch, stack: ExitStack) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._stack = stack
        self._workers: dict[Scenario, tuple[WorkerGroup, Worker]] = {}

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        group, one = self._workers.get(scenario) or self._start(scenario)
        group.release(HUNG_SECONDS)
        [(facts, _)] = group.collect()
        figures, failed = dict(facts["figures"]), dict(facts["failed"])
        if not failed:
            figures[SUM.name] = sum(figures.values())
        sample = Sample(figures, failed=failed)
        sample.detail = {"versions": one.facts["versions"]}
        if with_environment:
            first = scenario == next(iter(self._workers))
            sample.environment = group.environment(one, scenario.driver, fsync=first)
        return sample

    def _start(self, scenario: Scenario) -> tuple[WorkerGroup, Worker]:
        directory = self._scratch.fresh(scenario.label)
        database = directory / "orm.db"
        with closing(sqlite3.connect(database)) as connection:
            mode = JOURNAL_MODES[scenario.journal or "rollback"]
            connection.execute(f"PRAGMA journal_mode = {mode}")
        group = self._stack.enter_context(WorkerGroup(directory))
        arguments = {
            "parameters": asdict(self._parameters),
            "scenario": scenario.used(),
            "path": str(database),
        }
        one = group.start(TASK, arguments, scenario.build or "own")
        group.wait_ready()
        self._workers[scenario] = group, one
        return group, one


class OrmWorkload(Workload[OrmParameters]):
    """See the module."""

    name = "orm"
    title = "objects and their relations through SQLAlchemy"
    parameters_type = OrmParameters
    quick: ClassVar = {"level": 2}
    axes: ClassVar = {
        "driver": (*PEERS, "oxlite"),
        "journal": ("wal",),
        "pragmas": ("tuned", "durable"),
    }
    baselines: ClassVar[Sequence[Filter]] = ({"driver": "stdlib"},)
    selection: ClassVar[Sequence[Filter]] = ({"driver": "oxlite", "pragmas": "tuned"},)
    quick_selection: ClassVar[Sequence[Filter]] = selection
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=1200.0, warm_ups=0)
    quick_plan: ClassVar[Plan] = Plan(repeats=3, time_budget_seconds=60.0, warm_ups=0)
    metrics: ClassVar = (SUM, *METRICS[:-1])
    tables: ClassVar = TABLES

    def work_digest(self, parameters: OrmParameters) -> str:
        """See the base class."""
        work = [
            (timed.title, timed.operation.count(parameters.scale))
            for timed in parameters.operations()
        ]
        return hashlib.sha256(repr(work).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: OrmParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class.

        Raises:
            UsageError: SQLAlchemy is not installed.
        """
        if util.find_spec("sqlalchemy") is None:
            raise UsageError("orm needs SQLAlchemy; run `pip install sqlalchemy`")
        with ExitStack() as stack:
            yield OrmSession(parameters, scratch, stack)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        if sample.failed:
            return f"{len(sample.figures)} operations, {len(sample.failed)} failed"
        return f"{number(sample.figures[SUM.name])} ms"
