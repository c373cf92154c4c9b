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
from pathlib import Path
from typing import ClassVar

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.model import Plan, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch, copy_synced
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
PRAGMAS = ("tuned", "durable")

MUTEX = {"style": "mutex", "busy": PEER_BUSY}
OWN = {"style": "own", "busy": PEER_BUSY}
OURS = {"driver": "oxlite", "busy": "gate"}


class InsertsSession:
    """The files to start from, made once, and the rows."""

    def __init__(self, parameters: InsertsParameters, scratch: Scratch) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._rows = work.rows(parameters)
        self._digest = work.digest(self._rows)
        self._templates = scratch.fresh("templates")
        self._fsync_wanted = True

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        parameters = self._parameters
        directory = self._scratch.fresh(scenario.label)
        database = directory / "inserts.db"
        copy_synced(self._template(scenario), database)
        threads = int(scenario.threads or 1)
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
        found = figures.unpack(facts, payload, threads)
        shares = [work.share(self._rows, thread, threads) for thread in range(threads)]
        certain, possible = verify.acknowledged(shares, found, facts["errors"])
        rows, digest = verify.check_table(database, certain, possible)
        sample = figures.sample(found, facts["errors"], facts["from_ns"])
        sample.detail |= {"rows": rows, "digest": digest, "versions": one.facts["versions"]}
        sample.environment = environment
        return sample

    def _template(self, scenario: Scenario) -> Path:
        journal = LADDER[scenario.step].journal if scenario.step is not None else "wal"
        path = self._templates / f"{journal}.db"
        if not path.exists():
            work.create_database(path, self._parameters.mode, journal)
        return path


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
        """See the base class: a ladder, and three of threads, of what exists together."""
        threads = {**self.axes, "threads": tuple(map(str, parameters.threads))}
        ladder: Mapping[str, Sequence[str]] = {"driver": DRIVERS, "step": AXES["step"]}
        return (
            ladder,
            threads,
            {**threads, "busy": ("none",), "style": ("own",)},
            {**threads, "driver": ("oxlite",), "busy": ("gate",), "style": AXES["style"]},
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
        yield InsertsSession(parameters, scratch)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        text = (
            f"{number(sample.figures[figures.RATE.name])} inserts/s, "
            f"longest {number(sample.figures[figures.LONGEST.name])} ms"
        )
        failed = sum(sample.errors.values())
        return f"{text}, {failed:,} errors" if failed else text
