"""The ``async`` workload: what an event loop's tasks get done, and how long it is kept from others.

Tasks of one loop, in one process, read rows by their keys or insert rows durably, each one
after the other; beside aiosqlite, by a cursor and by ``execute_fetchall``. The database is
in WAL mode at synchronous=FULL.
"""

from collections.abc import Sequence
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.outcomes import digest
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.session import FreshSession, HandedOver
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.axes import DRIVER, PRAGMAS, Axis, Grid, of_parameter
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.async_ import figures, verify, work
from oxlite.bench.workloads.async_.tables import TABLES
from oxlite.bench.workloads.async_.work import AsyncParameters
from oxlite.bench.workloads.base import Filter, Workload


class AsyncSession(FreshSession[AsyncParameters, HandedOver]):
    """A process with an event loop."""

    name = "notes"
    task = "oxlite.bench.workloads.async_.worker:TasksTask"

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        work.fill(connection, self.parameters)

    def journal(self, scenario: Scenario) -> str:
        """See the base class."""
        return "wal"

    def work(self, group: WorkerGroup, database: Database) -> HandedOver:
        """See the base class."""
        parameters = self.parameters
        self.start(group, database.scenario, database.path)
        seconds = parameters.duration_seconds + parameters.timeout_seconds
        _, [handed_over] = self.first_turn(group, [digest(work.shape(parameters))], seconds)
        return handed_over

    def sample(self, database: Database, found: HandedOver) -> Sample:
        """See the base class."""
        facts, payload = found
        outcome = figures.unpack(facts, payload)
        is_insert = database.scenario.get("operation") == "insert"
        verify.check_table(database.path, facts["counts"] if is_insert else [])
        return figures.sample(outcome)


class AsyncWorkload(Workload[AsyncParameters]):
    """See the module."""

    name = "async"
    title = "tasks of an event loop"
    about = """\
Tasks of an event loop that read rows or insert them durably, beside aiosqlite.

All of it takes about two minutes, with `--quick` a quarter of a minute.
"""
    examples = (
        "--quick",
        "--scenario driver=oxlite,call=database --tasks 256",
    )
    parameters_type = AsyncParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("aiosqlite", "oxlite"),
        PRAGMAS.of("durable"),
        Axis(
            "operation",
            "what each task does",
            {"read": "a row by its key", "insert": "a row, durably"},
        ),
        Axis(
            "call",
            "how a task calls for it",
            {
                "database": "Oxlite's aio.Database",
                "cursor": "one connection for all tasks, by a cursor",
                "fetchall": "the same by execute_fetchall",
            },
        ),
        of_parameter("tasks", "how many tasks of one event loop"),
    )
    baselines: ClassVar[Sequence[Filter]] = (
        {"driver": "aiosqlite", "call": "cursor"},
        {"driver": "aiosqlite", "call": "fetchall"},
    )
    selection: ClassVar[Sequence[Filter]] = (
        {"driver": "oxlite", "call": "database"},
        {"driver": "oxlite", "call": "cursor"},
        {"driver": "oxlite", "call": "fetchall", "operation": "read"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = ({"driver": "oxlite", "call": "database"},)
    plan: ClassVar[Plan] = Plan(repeats=5, warm_ups=0)
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    contest: ClassVar = Contest(
        (figures.RATE,),
        "calls/s",
        {"driver": "oxlite", "call": "database"},
        [{"driver": "aiosqlite", "call": call} for call in ("cursor", "fetchall")],
        tail=figures.CALL,
    )
    tables: ClassVar[Sequence[Drawable]] = TABLES

    def grids(self, parameters: AsyncParameters) -> Sequence[Grid]:
        """See the base class: an insert leaves nothing to fetch."""
        reads = {**self.grid(parameters), "operation": ("read",)}
        inserts = {**reads, "operation": ("insert",), "call": ("database", "cursor")}
        return (reads, inserts)

    session_type = AsyncSession
    told: ClassVar = (
        (figures.RATE, "{} calls/s"),
        (figures.DELAY_P95, "the loop up to {} ms late (p95)"),
    )

    def work(self, parameters: AsyncParameters) -> object:
        """See the base class."""
        return work.shape(parameters)


WORKLOAD = AsyncWorkload()
