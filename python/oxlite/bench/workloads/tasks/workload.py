"""The ``async`` workload: what an event loop's tasks get done, and how long it is kept from others.

Tasks of one loop, in one process, read rows by their keys or insert rows durably, each one
after the other; beside aiosqlite, by a cursor and by ``execute_fetchall``. The database is
in WAL mode at synchronous=FULL.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import ClassVar

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch, copy_synced
from oxlite.bench.layout import Drawable, number
from oxlite.bench.scenarios.cells import Grid
from oxlite.bench.scenarios.scenario import AXES, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.tasks import figures, verify, work
from oxlite.bench.workloads.tasks.parameters import TasksParameters
from oxlite.bench.workloads.tasks.tables import TABLES

TASK = "oxlite.bench.workloads.tasks.worker:TasksTask"
HUNG_BASE_SECONDS = 120.0


class TasksSession:
    """The file to start from, made once."""

    def __init__(self, parameters: TasksParameters, scratch: Scratch) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._digest = work.digest(parameters)
        self._template = scratch.fresh("template") / "notes.db"
        work.create_database(self._template, parameters)
        self._fsync_wanted = True

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        parameters = self._parameters
        directory = self._scratch.fresh(scenario.label)
        database = directory / "notes.db"
        copy_synced(self._template, database)
        environment = None
        with WorkerGroup(directory) as group:
            arguments = {
                "parameters": asdict(parameters),
                "scenario": scenario.used(),
                "path": str(database),
            }
            one = group.start(TASK, arguments, scenario.build or "own")
            group.wait_ready()
            if one.facts["digest"] != self._digest:
                raise VerificationError("the worker's list of work is not the one asked for")
            group.release(
                HUNG_BASE_SECONDS + parameters.duration_seconds + parameters.timeout_seconds
            )
            [(facts, payload)] = group.collect()
            if with_environment:
                environment = group.environment(one, scenario.driver, fsync=self._fsync_wanted)
                self._fsync_wanted = False
            group.stop()
        found = figures.unpack(facts, payload)
        is_insert = scenario.operation == "insert"
        verify.check_table(database, facts["counts"] if is_insert else [])
        sample = figures.sample(found)
        sample.detail |= {"versions": one.facts["versions"]}
        sample.environment = environment
        return sample


class TasksWorkload(Workload[TasksParameters]):
    """See the module."""

    name = "async"
    title = "tasks of an event loop"
    parameters_type = TasksParameters
    quick: ClassVar = {"tasks": (1, 16), "duration_seconds": 0.5}
    axes: ClassVar = {
        "driver": ("aiosqlite", "oxlite"),
        "pragmas": ("durable",),
        "operation": AXES["operation"],
        "call": AXES["call"],
        "tasks": (),
    }
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
    quick_plan: ClassVar[Plan] = Plan(repeats=2, time_budget_seconds=60.0, warm_ups=0)
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    tables: ClassVar[Sequence[Drawable]] = TABLES

    def grids(self, parameters: TasksParameters) -> Sequence[Grid]:
        """See the base class: an insert leaves nothing to fetch."""
        reads = {**self.axes, "operation": ("read",), "tasks": tuple(map(str, parameters.tasks))}
        inserts = {**reads, "operation": ("insert",), "call": ("database", "cursor")}
        return (reads, inserts)

    def work_digest(self, parameters: TasksParameters) -> str:
        """See the base class."""
        return work.digest(parameters)

    @contextmanager
    def session(
        self, parameters: TasksParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        yield TasksSession(parameters, scratch)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        rate, delay = (sample.figures.get(m.name) for m in (figures.RATE, figures.DELAY_P95))
        text = f"{number(rate or 0.0)} calls/s"
        return text if delay is None else f"{text}, the loop up to {number(delay)} ms late (p95)"
