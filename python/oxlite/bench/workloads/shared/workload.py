"""The ``shared`` workload: what it is worth that processes share their syncs.

Processes that do nothing but write, as in ``gate``, each write durable when it is
answered; or such processes that are killed, every other one in the middle of a sync. Either
the processes share their syncs of the log (``commit=shared``), or each commit is synced by
itself (``synchronous=FULL``) while others wait for the lock, in Oxlite's queue or in
SQLite's ways.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import ClassVar

from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import HandedOver
from oxlite.bench.layout import Drawable
from oxlite.bench.parameters import parameter
from oxlite.bench.scenarios.axes import (
    BUSY,
    DISTURBANCE,
    DRIVER,
    JOURNAL,
    PRAGMAS,
    PROCESSES,
    WAITING,
    Axis,
    Grid,
)
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
from oxlite.bench.workloads.gate.work import MAXIMUM_PROCESSES, GateParameters
from oxlite.bench.workloads.gate.workload import GateSession, GateWorkload, has_kills
from oxlite.bench.workloads.shared import entries
from oxlite.bench.workloads.shared.entries import Writer
from oxlite.bench.workloads.shared.kills import LEADERS_LOST
from oxlite.bench.workloads.shared.tables import TABLES

_GATE = GateWorkload()
"""Its work."""

COMMIT = Axis(
    "commit",
    "how a commit becomes durable",
    {"each": "by itself, as the pragmas say", "shared": "Oxlite's processes share their syncs"},
)


@dataclass(frozen=True)
class SharedParameters(GateParameters):
    """As those of ``gate``; one process may be alone, where nobody is killed."""

    processes: Sequence[int] = parameter(
        (1, 4, 25), "Processes that write", quick=(8,), least=1, most=MAXIMUM_PROCESSES
    )

    def of_gate(self) -> GateParameters:
        """Those by which ``gate`` does the work: as many keys as the most processes need."""
        return GateParameters(**{**asdict(self), "processes": (max(2, *self.processes),)})


class SharedSession(GateSession):
    """As that of ``gate``; where writers are killed, they write entries."""

    killer = "oxlite.bench.workloads.shared.kills:SharedKillsTask"

    def __init__(self, parameters: SharedParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters.of_gate(), scratch, exits)

    def work(self, group: WorkerGroup, database: Database) -> list[HandedOver]:
        """See the base class."""
        if has_kills(database.scenario):
            entries.create_table(database.path)
        return super().work(group, database)

    def sample(self, database: Database, found: list[HandedOver]) -> Sample:
        """See the base class."""
        if not has_kills(database.scenario):
            return super().sample(database, found)
        [(facts, payload)] = found
        entries.check(database.path, [Writer(*told) for told in facts.pop("writers")])
        sample = figures.sample_of_kills(facts, payload)
        if facts["leaders_lost"] is not None:
            sample.figures[LEADERS_LOST.name] = float(facts["leaders_lost"])
        return sample


class SharedWorkload(Workload[SharedParameters]):
    """See the module."""

    name = "shared"
    title = "durable writes of processes that share their syncs"
    about = """\
Processes whose every write is durable: what it is worth that they share their syncs.

All of it takes about ten minutes, with `--quick` less than one; `--all` takes more than an hour
for each repeat. `disturbance=kills` has to be asked for.
"""
    examples = (
        "--quick --directory /var/lib/app",
        "--scenario disturbance=kills,commit=shared --processes 8 --kills 2000 --repeats 1",
    )
    parameters_type = SharedParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("oxlite"),
        JOURNAL.of("wal"),
        PRAGMAS.of("durable"),
        BUSY.of(*WAITING),
        DISTURBANCE.of("calm", "kills"),
        COMMIT,
        PROCESSES,
    )
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
    session_type = SharedSession
    told: ClassVar = _GATE.told

    def grids(self, parameters: SharedParameters) -> Sequence[Grid]:
        """See the base class; where one is killed, another one has to go on."""
        counts = {
            "calm": tuple(map(str, parameters.processes)),
            "kills": tuple(str(count) for count in parameters.processes if count > 1),
        }
        return [
            {**self.grid(parameters), "disturbance": (disturbance,), "processes": processes}
            for disturbance, processes in counts.items()
        ]

    def work(self, parameters: SharedParameters) -> object:
        """See the base class."""
        return _GATE.work(parameters.of_gate())


WORKLOAD = SharedWorkload()
