"""The ``gate`` workload: who waits how long for SQLite's write lock.

Processes that do nothing but write, each on its own connection, each write a
tiny upsert and a transaction of its own. They differ in how they wait for the
lock, and in what else goes on: nothing; half of the processes are outsiders, which
use the standard library's SQLite and its timeout; or writers are killed.
See the modules beside this one for the work, its checks and its figures.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch, copy_synced
from oxlite.bench.layout import Drawable, number
from oxlite.bench.scenarios.scenario import AXES, WAITING, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.gate import figures, verify, work
from oxlite.bench.workloads.gate.figures import (
    KILLS,
    LONGEST,
    METRICS,
    RECOVERY_LONGEST,
    WRITES,
)
from oxlite.bench.workloads.gate.parameters import GateParameters
from oxlite.bench.workloads.gate.tables import TABLES
from oxlite.bench.workloads.gate.victim import ANY

WRITER = "oxlite.bench.workloads.gate.worker:GateTask"
KILLER = "oxlite.bench.workloads.gate.killing:KillsTask"
HUNG_BASE_SECONDS = 120.0
HUNG_SECONDS_PER_KILL = 2.0


class GateSession:
    """The database to start from, made once, and the keys of every process."""

    def __init__(self, parameters: GateParameters, scratch: Scratch) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._keys = [work.keys(parameters, n) for n in range(max(parameters.processes))]
        self._templates = scratch.fresh("templates")
        self._fsync_wanted = True

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        directory = self._scratch.fresh(scenario.label)
        database = directory / "gate.db"
        copy_synced(self._template(scenario.journal or "rollback"), database)
        with WorkerGroup(directory) as group:
            if scenario.disturbance == "kills":
                sample = self._kills(group, scenario, database)
            else:
                sample = self._writers(group, scenario, database)
            sample.detail["versions"] = group.workers[0].facts["versions"]
            if with_environment:
                sample.environment = group.environment(
                    group.workers[0], scenario.driver, fsync=self._fsync_wanted
                )
                self._fsync_wanted = False
            group.stop()
        return sample

    def _writers(self, group: WorkerGroup, scenario: Scenario, database: Path) -> Sample:
        parameters = self._parameters
        keys = self._keys[: int(scenario.processes or 0)]
        outsiders = len(keys) // 2 if scenario.disturbance == "outsiders" else 0
        # Every other one, so that neither half begins before the other.
        outside = [process % 2 == 1 and process // 2 < outsiders for process in range(len(keys))]
        for process, is_outside in enumerate(outside):
            own = _outsider(scenario) if is_outside else scenario
            group.start(
                WRITER, self._arguments(own, database) | {"process": process}, own.build or "own"
            )
        group.wait_ready()
        self._check_digests([one.facts["digest"] for one in group.workers])
        group.release(
            HUNG_BASE_SECONDS + parameters.duration_seconds + 2 * parameters.timeout_seconds
        )
        found = [
            figures.unpack(facts, payload, outsider=is_outside)
            for (facts, payload), is_outside in zip(group.collect(), outside, strict=True)
        ]
        verify.check_table(database, keys, found, parameters.keys)
        return figures.sample(found, parameters.duration_seconds)

    def _kills(self, group: WorkerGroup, scenario: Scenario, database: Path) -> Sample:
        facts, payload = self._run_killer(group, KILLER, scenario, database)
        verify.check_total(database, facts["acknowledged"], facts["kills"][ANY])
        return figures.sample_of_kills(facts, payload)

    def _run_killer(
        self, group: WorkerGroup, task: str, scenario: Scenario, database: Path
    ) -> tuple[Message, bytes]:
        """Have writers killed by ``task``, a subclass of ``KillsTask``; what it hands over."""
        kills = self._parameters.kills
        killer = group.start(task, self._arguments(scenario, database), scenario.build or "own")
        group.wait_ready()
        self._check_digests(killer.facts["digests"])
        group.release(HUNG_BASE_SECONDS + HUNG_SECONDS_PER_KILL * kills)
        [(facts, payload)] = group.collect()
        return facts, payload

    def _arguments(self, scenario: Scenario, database: Path) -> Message:
        return {
            "parameters": asdict(self._parameters),
            "scenario": scenario.used(),
            "path": str(database),
        }

    def _check_digests(self, digests: Sequence[str]) -> None:
        """Check that the workers have the work of the first so many processes.

        Raises:
            VerificationError: they do not.
        """
        if list(digests) != [work.keys_digest(keys) for keys in self._keys[: len(digests)]]:
            raise VerificationError("the workers' list of work is not the one asked for")

    def _template(self, journal: str) -> Path:
        path = self._templates / f"{journal}.db"
        if not path.exists():
            work.create_database(path, self._parameters, journal)
        return path


def _outsider(scenario: Scenario) -> Scenario:
    """The scenario of an outsider: the same file and settings, by the standard library."""
    driver = DRIVERS.get("stdlib")
    return replace(scenario, driver=driver.name, build=driver.default_build, busy="backoff")


class GateWorkload(Workload[GateParameters]):
    """See the module."""

    name = "gate"
    title = "who waits how long for the write lock"
    parameters_type = GateParameters
    quick: ClassVar = {"processes": (25,), "duration_seconds": 1.0}
    axes: ClassVar = {
        "driver": ("stdlib", "oxlite"),
        "journal": ("wal",),
        "pragmas": ("tuned", "durable"),
        "busy": WAITING,
        "disturbance": AXES["disturbance"],
        "processes": (),
    }
    baselines: ClassVar[Sequence[Filter]] = ({"busy": "backoff"}, {"busy": "fair"})
    # The standard library stands beside it as a peer, and every disturbance is there; all of
    # their combinations would take twice as long.
    selection: ClassVar[Sequence[Filter]] = (
        {"driver": "stdlib", "busy": "backoff", "disturbance": "calm"},
        {"driver": "oxlite", "disturbance": "calm"},
        {"driver": "oxlite", "disturbance": "outsiders", "pragmas": "tuned"},
        {"driver": "oxlite", "disturbance": "kills", "pragmas": "tuned"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = ({"driver": "oxlite", "disturbance": "calm"},)
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=900.0)
    quick_plan: ClassVar[Plan] = Plan(repeats=3, time_budget_seconds=90.0, warm_ups=0)
    metrics: ClassVar[Sequence[Metric]] = METRICS
    tables: ClassVar[Sequence[Drawable]] = TABLES

    def axes_of(self, parameters: GateParameters) -> Mapping[str, Sequence[str]]:
        """See the base class."""
        return {**self.axes, "processes": tuple(map(str, parameters.processes))}

    def work_digest(self, parameters: GateParameters) -> str:
        """See the base class."""
        keys = [
            work.keys_digest(work.keys(parameters, process))
            for process in range(max(parameters.processes))
        ]
        shape = parameters.duration_seconds, parameters.kills
        return hashlib.sha256(repr((keys, shape)).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: GateParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        yield GateSession(parameters, scratch)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        shown = sample.figures
        if KILLS.name in shown:
            text = (
                f"{number(shown[KILLS.name])} kills, longest time to a commit "
                f"{number(shown[RECOVERY_LONGEST.name])} ms"
            )
        else:
            text = (
                f"{number(shown[WRITES.name])} writes/s, "
                f"longest wait {number(shown[LONGEST.name])} ms"
            )
        failed = sum(sample.errors.values())
        return f"{text}, {failed:,} errors" if failed else text
