"""The ``shared`` workload: what it is worth that processes share their syncs.

Processes that do nothing but write, as in ``gate``, each write durable when it is
answered; or such processes that are killed, every other one in the middle of a sync. Either
the processes share their syncs of the log (``commit=shared``), or each commit is synced by
itself (``synchronous=FULL``) while others wait for the lock, in Oxlite's queue or in
SQLite's ways.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.cells import Grid
from oxlite.bench.scenarios.scenario import WAITING, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.gate import figures
from oxlite.bench.workloads.gate.figures import (
    JAIN,
    KILLS,
    LONGEST,
    P99,
    RECOVERY_LONGEST,
    RECOVERY_MEDIAN,
    WRITES,
)
from oxlite.bench.workloads.gate.workload import GateSession, GateWorkload
from oxlite.bench.workloads.shared import entries
from oxlite.bench.workloads.shared.entries import Writer
from oxlite.bench.workloads.shared.killing import LEADERS_LOST
from oxlite.bench.workloads.shared.parameters import SharedParameters
from oxlite.bench.workloads.shared.tables import TABLES

KILLER = "oxlite.bench.workloads.shared.killing:SharedKillsTask"

_GATE = GateWorkload()
"""Its work, and how it is told of."""


class SharedSession(GateSession):
    """As that of ``gate``; where writers are killed, they write entries."""

    def _kills(self, group: WorkerGroup, scenario: Scenario, database: Path) -> Sample:
        entries.create_table(database)
        facts, payload = self._run_killer(group, KILLER, scenario, database)
        entries.check(database, [Writer(*told) for told in facts.pop("writers")])
        sample = figures.sample_of_kills(facts, payload)
        if facts["leaders_lost"] is not None:
            sample.figures[LEADERS_LOST.name] = float(facts["leaders_lost"])
        return sample


class SharedWorkload(Workload[SharedParameters]):
    """See the module."""

    name = "shared"
    title = "durable writes of processes that share their syncs"
    parameters_type = SharedParameters
    quick: ClassVar = {"processes": (25,), "duration_seconds": 1.0}
    axes: ClassVar = {
        "driver": ("oxlite",),
        "journal": ("wal",),
        "pragmas": ("durable",),
        "busy": WAITING,
        "disturbance": ("calm", "kills"),
        "commit": ("each", "shared"),
        "processes": (),
    }
    baselines: ClassVar[Sequence[Filter]] = (
        {"commit": "each", "busy": "gate"},
        {"commit": "each", "busy": "backoff"},
    )
    selection: ClassVar[Sequence[Filter]] = (
        {"commit": "shared", "busy": "gate", "disturbance": "calm"},
        {"commit": "each", "disturbance": "calm"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"commit": "shared", "busy": "gate", "disturbance": "calm"},
        {"commit": "each", "busy": "gate", "disturbance": "calm"},
        {"commit": "each", "busy": "backoff", "disturbance": "calm"},
    )
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=900.0)
    quick_plan: ClassVar[Plan] = Plan(repeats=3, time_budget_seconds=90.0, warm_ups=0)
    metrics: ClassVar[Sequence[Metric]] = (
        WRITES,
        P99,
        LONGEST,
        JAIN,
        RECOVERY_MEDIAN,
        RECOVERY_LONGEST,
        KILLS,
        LEADERS_LOST,
    )
    tables: ClassVar[Sequence[Drawable]] = TABLES

    def grids(self, parameters: SharedParameters) -> Sequence[Grid]:
        """See the base class; where one is killed, another one has to go on."""
        counts = {
            "calm": tuple(map(str, parameters.processes)),
            "kills": tuple(str(count) for count in parameters.processes if count > 1),
        }
        return [
            {**self.axes, "disturbance": (disturbance,), "processes": processes}
            for disturbance, processes in counts.items()
        ]

    def work_digest(self, parameters: SharedParameters) -> str:
        """See the base class."""
        return _GATE.work_digest(parameters.of_gate())

    @contextmanager
    def session(
        self, parameters: SharedParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        yield SharedSession(parameters.of_gate(), scratch)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        return _GATE.outcome(sample)
