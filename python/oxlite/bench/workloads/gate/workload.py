"""The ``gate`` workload: who waits how long for SQLite's write lock.

Processes that do nothing but write, each on its own connection, each write a
tiny upsert and a transaction of its own. They differ in how they wait for the
lock, and in what else goes on: nothing; half of the processes are outsiders, which
use the standard library's SQLite and its timeout; or writers are killed.
See the modules beside this one for the work, its checks and its figures.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import FreshSession, HandedOver
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.axes import (
    BUSY,
    DISTURBANCE,
    DRIVER,
    JOURNAL,
    PRAGMAS,
    PROCESSES,
    WAITING,
    Axis,
)
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.gate import figures, verify, work
from oxlite.bench.workloads.gate.figures import KILLS, LONGEST, METRICS, RECOVERY_LONGEST, WRITES
from oxlite.bench.workloads.gate.tables import TABLES
from oxlite.bench.workloads.gate.victim import ANY
from oxlite.bench.workloads.gate.work import GateParameters

HUNG_SECONDS_PER_KILL = 2.0


class GateSession(FreshSession[GateParameters, list[HandedOver]]):
    """Processes that write, or one that forks and kills such processes.

    Attributes:
        killer: what the latter does.
    """

    name = "gate"
    task = "oxlite.bench.workloads.gate.worker:GateTask"
    killer: ClassVar[str] = "oxlite.bench.workloads.gate.kills:KillsTask"

    def __init__(self, parameters: GateParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._keys = [work.keys(parameters, n) for n in range(max(parameters.processes))]

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        work.fill(connection, self.parameters)

    def work(self, group: WorkerGroup, database: Database) -> list[HandedOver]:
        """See the base class."""
        parameters, scenario = self.parameters, database.scenario
        if has_kills(scenario):
            self.start(group, scenario, database.path, self.killer)
            seconds = HUNG_SECONDS_PER_KILL * parameters.kills
        else:
            for process, is_outside in enumerate(_outside(scenario)):
                own = _outsider(scenario) if is_outside else scenario
                self.start(group, own, database.path, process=process)
            seconds = parameters.duration_seconds + 2 * parameters.timeout_seconds
        digests = [work.keys_digest(keys) for keys in self._keys_of(scenario)]
        return self.first_turn(group, digests, seconds)[1]

    def sample(self, database: Database, found: list[HandedOver]) -> Sample:
        """See the base class."""
        parameters, scenario = self.parameters, database.scenario
        if has_kills(scenario):
            [(facts, payload)] = found
            verify.check_total(database.path, facts["acknowledged"], facts["kills"][ANY])
            return figures.sample_of_kills(facts, payload)
        outcomes = [
            figures.unpack(facts, payload, outsider=is_outside)
            for (facts, payload), is_outside in zip(found, _outside(scenario), strict=True)
        ]
        verify.check_table(database.path, self._keys_of(scenario), outcomes, parameters.keys)
        return figures.sample(outcomes, parameters.duration_seconds)

    def _keys_of(self, scenario: Scenario) -> Sequence[Sequence[int]]:
        return self._keys[: int(scenario.get("processes", 0))]


def has_kills(scenario: Scenario) -> bool:
    """Whether writers are killed."""
    return scenario.get("disturbance") == "kills"


def _outside(scenario: Scenario) -> Sequence[bool]:
    """Of each process whether it is an outsider: every other one, so that neither half begins."""
    count = int(scenario.get("processes", 0))
    outsiders = count // 2 if scenario.get("disturbance") == "outsiders" else 0
    return [process % 2 == 1 and process // 2 < outsiders for process in range(count)]


def _outsider(scenario: Scenario) -> Scenario:
    """The scenario of an outsider: the same file and settings, by the standard library."""
    driver = DRIVERS.get("stdlib")
    return scenario.but(driver=driver.name, build=driver.default_build, busy="backoff")


class GateWorkload(Workload[GateParameters]):
    """See the module."""

    name = "gate"
    title = "who waits how long for the write lock"
    about = """\
Processes that do nothing but write: how each busy policy shares out the write lock.

Each write is a tiny upsert in a transaction of its own. All of it takes about ten minutes, with
`--quick` less than one. Where writers are killed, the figure is the time until another one has
committed.
"""
    examples = (
        "--quick",
        "--scenario pragmas=durable --processes 8 --duration 10 --directory /var/lib/app",
        "--scenario driver=oxlite,disturbance=kills --processes 8 --kills 10000 --repeats 1",
    )
    parameters_type = GateParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("stdlib", "oxlite"),
        JOURNAL.of("wal"),
        PRAGMAS.of("tuned", "durable"),
        BUSY.of(*WAITING),
        DISTURBANCE,
        PROCESSES,
    )
    baselines: ClassVar[Sequence[Filter]] = ({"busy": "backoff"}, {"busy": "fair"})
    # The standard library stands beside it as a peer, and every disturbance is there; all of
    # their combinations would take twice as long.
    selection: ClassVar[Sequence[Filter]] = (
        {"driver": "stdlib", "busy": "backoff", "disturbance": "calm"},
        {"driver": "oxlite", "disturbance": "calm"},
        {"driver": "oxlite", "disturbance": "outsiders", "pragmas": "tuned"},
        {"driver": "oxlite", "disturbance": "kills", "pragmas": "tuned"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"driver": "stdlib", "busy": "backoff", "disturbance": "calm", "pragmas": "tuned"},
        {"driver": "oxlite", "disturbance": "calm", "pragmas": "tuned"},
    )
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=900.0)
    metrics: ClassVar[Sequence[Metric]] = METRICS
    contest: ClassVar = Contest(
        (WRITES,),
        "writes/s",
        {"driver": "oxlite", "pragmas": "tuned", "busy": "gate", "disturbance": "calm"},
        [{"driver": "stdlib", "busy": "backoff"}],
        tail="write",
    )
    tables: ClassVar[Sequence[Drawable]] = TABLES

    session_type = GateSession
    told: ClassVar = (
        (KILLS, "{} kills"),
        (RECOVERY_LONGEST, "longest time to a commit {} ms"),
        (WRITES, "{} writes/s"),
        (LONGEST, "longest wait {} ms"),
    )

    def work(self, parameters: GateParameters) -> object:
        """See the base class."""
        keys = [
            work.keys_digest(work.keys(parameters, process))
            for process in range(max(parameters.processes))
        ]
        return keys, (parameters.duration_seconds, parameters.kills)


WORKLOAD = GateWorkload()
