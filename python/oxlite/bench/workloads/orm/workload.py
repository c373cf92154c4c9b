"""The ``orm`` workload: objects and their relations through an object-relational mapper.

See the modules beside this one for the operations, the mappers, how a run is made and what a
report shows.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import ClassVar

from oxlite.bench.harness.model import Plan, Sample
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import number
from oxlite.bench.scenarios.cells import Grid
from oxlite.bench.scenarios.scenario import ANY, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.orm.figures import METRICS, SUM
from oxlite.bench.workloads.orm.parameters import OrmParameters
from oxlite.bench.workloads.orm.session import OrmSession
from oxlite.bench.workloads.orm.table import PEER, TABLES

MAPPERS = ("sqlalchemy", "django")


class OrmWorkload(Workload[OrmParameters]):
    """See the module."""

    name = "orm"
    title = "objects and their relations through SQLAlchemy and Django"
    parameters_type = OrmParameters
    quick: ClassVar = {"level": 1, "at_least_seconds": 0.0}
    axes: ClassVar = {
        "driver": (PEER, "oxlite"),
        "journal": ("wal",),
        "pragmas": ("tuned", "durable"),
        "mapper": MAPPERS,
    }
    baselines: ClassVar[Sequence[Filter]] = ({"driver": "stdlib"},)
    every: ClassVar[Sequence[Filter]] = ({}, {"driver": "oxlite", "build": ANY})
    selection: ClassVar[Sequence[Filter]] = (
        {"driver": "oxlite", "pragmas": "tuned"},
        {"driver": "postgresql"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"driver": "oxlite", "pragmas": "tuned", "mapper": "sqlalchemy"},
        {"driver": "postgresql", "mapper": "sqlalchemy"},
    )
    plan: ClassVar[Plan] = Plan(repeats=7, time_budget_seconds=5400.0, warm_ups=0)
    quick_plan: ClassVar[Plan] = Plan(repeats=3, time_budget_seconds=60.0, warm_ups=0)
    metrics: ClassVar = (SUM, *METRICS[:-1])
    tables: ClassVar = TABLES

    def grids(self, parameters: OrmParameters) -> Sequence[Grid]:
        """See the base class: SQLite's settings are no axes of PostgreSQL's."""
        return (
            {**self.axes, "journal": ("rollback",), "pragmas": ("stock",)},
            self.axes,
            {"driver": ("postgresql",), "mapper": MAPPERS},
        )

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
        """See the base class."""
        with ExitStack() as stack:
            yield OrmSession(parameters, scratch, stack)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        if sample.failed:
            return f"{len(sample.figures)} operations, {len(sample.failed)} failed"
        return f"{number(sample.figures[SUM.name])} ms"
