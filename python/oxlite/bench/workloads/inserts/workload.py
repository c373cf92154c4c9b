"""The ``inserts`` workload: what settings and group commit are worth to one-row transactions.

Two parts with axes of their own. The ladder adds one setting after the other, for one
thread with one connection. The other part is threads of one process, which come by a
connection in different ways, in WAL mode at synchronous=NORMAL and FULL. Either inserts
rows from a seed for a fixed time; see the modules beside this one for the rows, the checks
and the figures.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import ClassVar

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import Databases
from oxlite.bench.harness.model import Plan, Sample
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import number
from oxlite.bench.scenarios.cells import Grid
from oxlite.bench.scenarios.scenario import ANY, AXES, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.inserts import figures, verify, work
from oxlite.bench.workloads.inserts.claims import PEER_BUSY
from oxlite.bench.workloads.inserts.parameters import InsertsParameters
from oxlite.bench.workloads.inserts.steps import LADDER
from oxlite.bench.workloads.inserts.tables import TABLES

TASK = "oxlite.bench.workloads.inserts.worker:InsertsTask"
HUNG_BASE_SECONDS = 120.0

DRIVERS = ("stdlib", "apsw", "oxlite")
DATABASE_STYLES = ("group", "each")
CONNECTION_STYLES = tuple(style for style in AXES["style"] if style not in DATABASE_STYLES)
SERVER_STYLES = tuple(style for style in CONNECTION_STYLES if style != "explicit")
"""Explicit transactions begin IMMEDIATE, which is SQLite's."""
PRAGMAS = ("tuned", "durable")

MUTEX = {"style": "mutex", "busy": PEER_BUSY}
OWN = {"style": "own", "busy": PEER_BUSY}
OURS = {"driver": "oxlite", "busy": "gate"}


class InsertsSession:
    """The databases to start from, and the rows."""

    def __init__(self, parameters: InsertsParameters, databases: Databases) -> None:
        self._parameters = parameters
        self._databases = databases
        self._rows = work.rows(parameters)
        self._digest = work.digest(self._rows)
        self._fsync_wanted = True

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        parameters = self._parameters
        journal = LADDER[scenario.step].journal if scenario.step is not None else "wal"
        database = self._databases.start(scenario, journal)
        threads = int(scenario.threads or 1)
        environment = None
        with WorkerGroup(database.directory) as group:
            arguments = {
                "parameters": asdict(parameters),
                "scenario": scenario.used(),
                "path": str(database.path),
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
        found = figures.unpack(facts, payload, threads)
        shares = [work.share(self._rows, thread, threads) for thread in range(threads)]
        certain, possible = verify.acknowledged(shares, found, facts["errors"])
        table = database.rows(work.TABLE)
        digest = verify.check_table(table, certain, possible)
        sample = figures.sample(found, facts["errors"], facts["from_ns"])
        sample.detail |= {"rows": len(table), "digest": digest, "versions": one.facts["versions"]}
        sample.environment = environment
        return sample


class InsertsWorkload(Workload[InsertsParameters]):
    """See the module."""

    name = "inserts"
    title = "one row per transaction"
    parameters_type = InsertsParameters
    quick: ClassVar = {"threads": (1, 16), "duration_seconds": 0.3}
    axes: ClassVar = {
        "driver": DRIVERS,
        "pragmas": PRAGMAS,
        "busy": ("backoff",),
        "style": CONNECTION_STYLES,
        "threads": (),
    }
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
    quick_plan: ClassVar[Plan] = Plan(repeats=2, time_budget_seconds=60.0, warm_ups=0)
    metrics: ClassVar = figures.METRICS
    tables: ClassVar = TABLES

    def grids(self, parameters: InsertsParameters) -> Sequence[Grid]:
        """See the base class: a ladder, and four of threads, of what exists together."""
        threads = {**self.axes, "threads": tuple(map(str, parameters.threads))}
        ladder: Mapping[str, Sequence[str]] = {"driver": DRIVERS, "step": AXES["step"]}
        return (
            ladder,
            threads,
            {**threads, "busy": ("none",), "style": ("own",)},
            {**threads, "driver": ("oxlite",), "busy": ("gate",), "style": AXES["style"]},
            {"driver": ("postgresql",), "style": SERVER_STYLES, "threads": threads["threads"]},
        )

    def work_digest(self, parameters: InsertsParameters) -> str:
        """See the base class."""
        shape = work.digest(work.rows(parameters)), parameters.mode, parameters.duration_seconds
        return hashlib.sha256(repr(shape).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: InsertsParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""

        def fill(connection: Connection, driver: Driver) -> None:
            work.fill(connection, driver, parameters.mode)

        with PostgresServer(scratch) as server:
            yield InsertsSession(parameters, Databases(scratch, "inserts", fill, server))

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        text = (
            f"{number(sample.figures[figures.RATE.name])} inserts/s, "
            f"longest {number(sample.figures[figures.LONGEST.name])} ms"
        )
        failed = sum(sample.errors.values())
        return f"{text}, {failed:,} errors" if failed else text
