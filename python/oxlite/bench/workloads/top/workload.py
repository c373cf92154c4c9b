"""The ``top`` workload: what it costs to be watched, and what the log of slow statements costs.

Processes make small transactions as fast as they can, while a process of its own watches them as
``oxlite top`` does, or with a log of slow statements, or with neither. What the watch has told is
set beside what they have counted themselves. The peers are what other drivers have: a function
that is called for each statement.
"""

from collections.abc import Sequence
from typing import ClassVar

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.outcomes import NS_PER_SECOND, digest
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.session import FreshSession, HandedOver
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.axes import DRIVER, JOURNAL, PRAGMAS, PROCESSES, Axis, Grid
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.top import figures, verify, ways, work
from oxlite.bench.workloads.top.tables import TABLES
from oxlite.bench.workloads.top.ways import UNWATCHED, WATCHED, WAYS
from oxlite.bench.workloads.top.work import TopParameters

WAY = Axis(
    "way",
    "who listens",
    {
        UNWATCHED: "nobody",
        WATCHED: "a process of its own looks again and again, as oxlite top does",
        ways.SLOW_LOG: "slow_statement=10: each statement is timed, and none is slow",
        ways.ALL_LOGGED: "slow_statement=0: each statement is logged, and its handler drops it",
        ways.TRACED: "set_trace_callback, with a function that does nothing",
        ways.PROFILED: "set_profile, with a function that does nothing",
    },
)

Found = tuple[int, list[HandedOver]]
"""The instant at which the work began, and what each process handed over."""


class TopSession(FreshSession[TopParameters, Found]):
    """Processes that work, and one that watches them."""

    name = "top"
    task = "oxlite.bench.workloads.top.worker:WorkerTask"
    watcher: ClassVar[str] = "oxlite.bench.workloads.top.watcher:WatcherTask"

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        work.fill(connection)

    def work(self, group: WorkerGroup, database: Database) -> Found:
        """See the base class."""
        parameters, scenario = self.parameters, database.scenario
        processes = int(scenario["processes"])
        for process in range(processes):
            self.start(group, scenario, database.path, process=process)
        if scenario["way"] == WATCHED:
            self.start(group, scenario, database.path, self.watcher)
        seconds = parameters.lead_seconds + parameters.limit_seconds + parameters.timeout_seconds
        return self.first_turn(group, digests(parameters, processes), seconds)

    def sample(self, database: Database, found: Found) -> Sample:
        """See the base class."""
        parameters, scenario = self.parameters, database.scenario
        start_ns, handed_over = found
        processes, load = int(scenario["processes"]), scenario["load"]
        done = [figures.unpack(*each, load) for each in handed_over[:processes]]
        verify.check_work(database.path, done, load)
        verify.check_left(database.path)
        begun_ns = start_ns + round(parameters.lead_seconds * NS_PER_SECOND)
        sample = figures.sample(done, begun_ns, parameters.limit_seconds)
        for watcher, _ in handed_over[processes:]:
            verify.check_seen(watcher["looks"], done)
            sample.figures |= figures.told(done, watcher, load)
        return sample


def digests(parameters: TopParameters, processes: int) -> list[str]:
    """Of the work of each process."""
    return [digest(work.keys(parameters, process)) for process in range(processes)]


class TopWorkload(Workload[TopParameters]):
    """See the module."""

    name = "top"
    title = "what it costs to be watched"
    about = """\
What it costs to be watched by `oxlite top`, or to have slow statements logged.

Processes change a row, or read one, as fast as they can; a read of one row is the cheapest
statement, so it is the hardest case. What top tells of commits, admissions to the write lock and
statements is set beside what the processes count themselves. Peers are the trace callback of
Python's own sqlite3 and the profile hook of APSW, each with a function that does nothing. All of
it takes about forty minutes, with `--quick` half a minute. APSW needs `pip install apsw`; without
it its rows say so, and the rest goes on.
"""
    examples = (
        "--quick",
        "--scenario driver=oxlite,load=read --processes 1 --limit 10 --repeats 15",
        "--scenario way=watched --every 0.2",
    )
    parameters_type = TopParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of(*WAYS),
        JOURNAL.of("wal"),
        PRAGMAS.of("tuned"),
        WAY,
        Axis(
            "load",
            "what the processes do, in transactions of one statement",
            {work.WRITE: "change a row, by its key", work.READ: "read a row, by its key"},
        ),
        PROCESSES,
    )
    baselines: ClassVar[Sequence[Filter]] = ({"way": UNWATCHED},)
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"driver": "oxlite", "way": WATCHED, "load": work.WRITE},
        {"driver": "oxlite", "way": ways.SLOW_LOG, "load": work.WRITE},
    )
    # Nothing has to be warmed: each measurement has a database of its own, and a time before it.
    plan: ClassVar[Plan] = Plan(repeats=15, time_budget_seconds=3600.0, warm_ups=0)
    quick_plan: ClassVar[Plan] = Plan(
        repeats=3, time_budget_seconds=20.0, warm_ups=0, least_repeats=3
    )
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    tables: ClassVar[Sequence[Drawable]] = TABLES
    session_type = TopSession
    told: ClassVar = (
        (figures.RATE, "{} transactions/s"),
        (figures.P99, "p99 {} ms"),
        (figures.DISAGREEMENT, "told wrongly by {}"),
    )

    def grids(self, parameters: TopParameters) -> Sequence[Grid]:
        """See the base class: each driver has ways of its own."""
        every = self.grid(parameters)
        return [{**every, "driver": (driver,), "way": found} for driver, found in WAYS.items()]

    def work(self, parameters: TopParameters) -> object:
        """See the base class."""
        return (
            digests(parameters, max(parameters.processes)),
            [(name, one.sql, one.in_round) for name, one in work.OPERATIONS.items()],
            (parameters.lead_seconds, parameters.limit_seconds, parameters.every_seconds),
        )


WORKLOAD = TopWorkload()
