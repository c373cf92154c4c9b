"""The ``inserts`` workload: what settings and group commit are worth to one-row transactions.

Two parts with axes of their own. The ladder adds one setting after the other, for one
thread with one connection. The other part is threads of one process, which come by a
connection in different ways, in WAL mode at synchronous=NORMAL and FULL. Either inserts
rows from a seed for a fixed time; see the modules beside this one for the rows, the checks
and the figures.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Plan, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import FreshSession, HandedOver
from oxlite.bench.scenarios.axes import BUSY, DRIVER, PRAGMAS, THREADS, Axis, Grid
from oxlite.bench.scenarios.scenario import ANY, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.inserts import figures, steps, verify, work
from oxlite.bench.workloads.inserts.claims import PEER_BUSY, PUBLISHED
from oxlite.bench.workloads.inserts.steps import LADDER
from oxlite.bench.workloads.inserts.tables import TABLES
from oxlite.bench.workloads.inserts.work import InsertsParameters

DRIVERS = ("stdlib", "apsw", "oxlite")
STYLE = Axis(
    "style",
    "how threads come by a connection for one write",
    {
        "own": "each has one",
        "reconnect": "opened for it",
        "mutex": "one connection behind one lock",
        "pool": "a few, lent",
        "explicit": "its own, in an explicit transaction",
        "group": "Oxlite's Database, many writes in a commit",
        "each": "Oxlite's Database, one write in a commit",
    },
)
STEP = Axis(
    "step",
    "how far up the ladder of settings, each on top of those before it",
    {step.name: step.added for step in LADDER.values()},
)
DATABASE_STYLES = ("group", "each")
CONNECTION_STYLES = tuple(style for style in STYLE.values if style not in DATABASE_STYLES)
SERVER_STYLES = tuple(style for style in CONNECTION_STYLES if style != "explicit")
"""Explicit transactions begin IMMEDIATE, which is SQLite's."""

MUTEX = {"style": "mutex", "busy": PEER_BUSY}
OWN = {"style": "own", "busy": PEER_BUSY}
OURS = {"driver": "oxlite", "busy": "gate"}


class InsertsSession(FreshSession[InsertsParameters, HandedOver]):
    """A process whose threads insert."""

    name = "inserts"
    task = "oxlite.bench.workloads.inserts.worker:InsertsTask"

    def __init__(self, parameters: InsertsParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._rows = work.rows(parameters)
        self._digest = work.digest(self._rows)

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        work.fill(connection, driver, self.parameters.mode)

    def journal(self, scenario: Scenario) -> str:
        """See the base class."""
        return LADDER[scenario["step"]].journal if "step" in scenario else "wal"

    def work(self, group: WorkerGroup, database: Database) -> HandedOver:
        """See the base class."""
        parameters = self.parameters
        self.start(group, database.scenario, database.path)
        seconds = parameters.duration_seconds + parameters.timeout_seconds
        _, [handed_over] = self.first_turn(group, [self._digest], seconds)
        return handed_over

    def sample(self, database: Database, found: HandedOver) -> Sample:
        """See the base class."""
        facts, payload = found
        threads = int(database.scenario.get("threads", 1))
        outcomes = figures.unpack(facts, payload, threads)
        shares = [work.share(self._rows, thread, threads) for thread in range(threads)]
        table = database.rows(work.TABLE)
        digest = verify.check_table(table, *verify.acknowledged(shares, outcomes))
        sample = figures.sample(outcomes, facts["from_ns"])
        sample.detail |= {"rows": len(table), "digest": digest}
        return sample


class InsertsWorkload(Workload[InsertsParameters]):
    """See the module."""

    name = "inserts"
    title = "one row per transaction"
    about = """\
One row per transaction: what settings, threads and group commit are worth.

All of it takes about six minutes, with `--quick` less than one. `--scenario step=any` is the
ladder: one thread, in which each step keeps the settings of the ones before it. `--scenario
style=any` is threads of one process, with `pragmas=tuned` or `durable`.
"""
    examples = (
        "--quick",
        "--scenario step=any --mode faithful",
        "--scenario driver=oxlite,style=group --threads 32 --directory /var/lib/app",
    )
    parameters_type = InsertsParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of(*DRIVERS, "postgresql"),
        PRAGMAS.of("tuned", "durable"),
        BUSY.of("none", "backoff", "gate"),
        STYLE,
        STEP,
        THREADS,
    )
    baselines: ClassVar[Sequence[Filter]] = (
        {"step": "defaults"},
        MUTEX,
        OWN,
        MUTEX | {"driver": "stdlib"},
    )
    # What the bars are about, the standard library beside it, one row of each other style, and
    # the published failure. All drivers in all styles would take four times as long.
    selection: ClassVar[Sequence[Filter]] = (
        *({"driver": driver, "step": ANY} for driver in ("stdlib", "oxlite")),
        *({"driver": driver, **style} for driver in ("stdlib", "oxlite") for style in (MUTEX, OWN)),
        *({**OURS, "style": style} for style in ("each", "group")),
        {**OURS, "style": "own", "threads": "16"},
        *(
            {"driver": "oxlite", "busy": PEER_BUSY, "style": style, "threads": "16"}
            for style in ("reconnect", "pool", "explicit")
        ),
        {"driver": "stdlib", "busy": "none", "threads": "4", "pragmas": "tuned"},
        *({"driver": "postgresql", "style": style} for style in ("own", "pool")),
    )
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"driver": "oxlite", "step": ANY},
        *({**OURS, "style": style} for style in ("each", "group")),
    )
    # Every measurement has a process and a file of its own, which is warmed before the start.
    plan: ClassVar[Plan] = Plan(repeats=5, warm_ups=0)
    metrics: ClassVar = figures.METRICS
    contest: ClassVar = Contest(
        (figures.RATE,),
        "inserts/s",
        {**OURS, "style": "group", "pragmas": "tuned"},
        [{"driver": "stdlib", **style} for style in (MUTEX, OWN)],
        tail=figures.KIND,
    )
    published: ClassVar = PUBLISHED
    ladder = STEP.name
    elsewhere: ClassVar = steps.published()
    tables: ClassVar = TABLES

    def grids(self, parameters: InsertsParameters) -> Sequence[Grid]:
        """See the base class: a ladder, and four of threads, of what exists together."""
        every = {**self.grid(parameters), "driver": DRIVERS}
        ladder = {axis: every[axis] for axis in ("driver", "step")}
        threads = {axis: values for axis, values in every.items() if axis != "step"}
        return (
            ladder,
            {**threads, "busy": ("backoff",), "style": CONNECTION_STYLES},
            {**threads, "busy": ("none",), "style": ("own",)},
            {**threads, "driver": ("oxlite",), "busy": ("gate",)},
            {"driver": ("postgresql",), "style": SERVER_STYLES, "threads": threads["threads"]},
        )

    session_type = InsertsSession
    told: ClassVar = ((figures.RATE, "{} inserts/s"), (figures.LONGEST, "longest {} ms"))

    def work(self, parameters: InsertsParameters) -> object:
        """See the base class."""
        return work.digest(work.rows(parameters)), parameters.mode, parameters.duration_seconds


WORKLOAD = InsertsWorkload()
