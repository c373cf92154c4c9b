"""The ``shared`` workload: what it is worth that processes share their syncs.

Processes that do nothing but write, as in ``gate``, each write durable when it is
answered. Either the processes share their syncs of the log (``commit=shared``), or
each commit is synced by itself (``synchronous=FULL``) while others wait for the lock,
in Oxlite's queue or in SQLite's ways.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.scenario import WAITING, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.gate.figures import JAIN, LONGEST, P99, WRITES
from oxlite.bench.workloads.gate.workload import GateSession, GateWorkload
from oxlite.bench.workloads.shared.parameters import SharedParameters
from oxlite.bench.workloads.shared.tables import TABLES

_GATE = GateWorkload()
"""Its work, and how it is told of."""


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
        "commit": ("each", "shared"),
        "processes": (),
    }
    baselines: ClassVar[Sequence[Filter]] = (
        {"commit": "each", "busy": "gate"},
        {"commit": "each", "busy": "backoff"},
    )
    selection: ClassVar[Sequence[Filter]] = (
        {"commit": "shared", "busy": "gate"},
        {"commit": "each"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"commit": "shared", "busy": "gate"},
        {"commit": "each", "busy": "gate"},
        {"commit": "each", "busy": "backoff"},
    )
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=900.0)
    quick_plan: ClassVar[Plan] = Plan(repeats=3, time_budget_seconds=90.0, warm_ups=0)
    metrics: ClassVar[Sequence[Metric]] = (WRITES, P99, LONGEST, JAIN)
    tables: ClassVar[Sequence[Drawable]] = TABLES

    def axes_of(self, parameters: SharedParameters) -> Mapping[str, Sequence[str]]:
        """See the base class."""
        return {**self.axes, "processes": tuple(map(str, parameters.processes))}

    def work_digest(self, parameters: SharedParameters) -> str:
        """See the base class."""
        return _GATE.work_digest(parameters.of_gate())

    @contextmanager
    def session(
        self, parameters: SharedParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        yield GateSession(parameters.of_gate(), scratch)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        return _GATE.outcome(sample)
