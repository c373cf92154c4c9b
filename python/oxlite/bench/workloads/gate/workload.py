"""The ``gate`` workload: who waits how long for SQLite's write lock.

Processes that do nothing but write, each on its own connection, each write a
tiny upsert and a transaction of its own. They differ in how they wait for the
lock. See the modules beside this one for the work, its checks and its figures.
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
from oxlite.bench.layout import (
    Table,
    against,
    errors,
    extent,
    largest,
    median,
    number,
    percentile,
)
from oxlite.bench.scenarios.scenario import WAITING, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.gate import figures, verify, work
from oxlite.bench.workloads.gate.figures import FEWEST, JAIN, LONGEST, MOST, P99, WRITES
from oxlite.bench.workloads.gate.parameters import GateParameters

WRITER = "oxlite.bench.workloads.gate.worker:GateTask"
HUNG_BASE_SECONDS = 120.0

GROUPED = ("processes", "pragmas")


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
            sample = self._writers(group, scenario, database)
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
        for process in range(len(keys)):
            arguments = {
                "parameters": asdict(parameters),
                "scenario": scenario.used(),
                "process": process,
                "path": str(database),
            }
            group.start(WRITER, arguments, scenario.build or "own")
        group.wait_ready()
        if [one.facts["digest"] for one in group.workers] != [work.keys_digest(k) for k in keys]:
            raise VerificationError("the workers' list of work is not the one asked for")
        group.release(
            HUNG_BASE_SECONDS + parameters.duration_seconds + 2 * parameters.timeout_seconds
        )
        found = [
            figures.unpack(facts, payload, outsider=False) for facts, payload in group.collect()
        ]
        verify.check_table(database, keys, found, parameters.keys)
        sample = figures.sample(found, parameters.duration_seconds)
        sample.detail["versions"] = group.workers[0].facts["versions"]
        return sample

    def _template(self, journal: str) -> Path:
        path = self._templates / f"{journal}.db"
        if not path.exists():
            work.create_database(path, self._parameters, journal)
        return path


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
        "processes": (),
    }
    baselines: ClassVar[Sequence[Filter]] = ({"busy": "backoff"}, {"busy": "fair"})
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = ({"driver": "oxlite"},)
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=900.0)
    quick_plan: ClassVar[Plan] = Plan(repeats=3, time_budget_seconds=60.0, warm_ups=0)
    metrics: ClassVar = (WRITES, P99, LONGEST, JAIN, FEWEST, MOST)
    tables: ClassVar = (
        Table(
            "Writes and fairness; the ratios are of writes/s",
            (
                median("writes/s", WRITES),
                against("than backoff", WRITES, busy="backoff"),
                against("than fair", WRITES, busy="fair"),
                extent("process writes/s", FEWEST, MOST),
                median("Jain", JAIN),
                errors("errors"),
            ),
            grouped=GROUPED,
        ),
        Table(
            "Wait of one write, ms; the ratios are of the longest, above 1 is shorter",
            (
                percentile("p50", "write", 50.0),
                percentile("p99", "write", 99.0),
                percentile("p99.9", "write", 99.9),
                median("longest", LONGEST),
                largest("longest of all", LONGEST),
                against("than backoff", LONGEST, busy="backoff"),
                against("than fair", LONGEST, busy="fair"),
            ),
            grouped=GROUPED,
        ),
    )

    def axes_of(self, parameters: GateParameters) -> Mapping[str, Sequence[str]]:
        """See the base class."""
        return {**self.axes, "processes": tuple(map(str, parameters.processes))}

    def work_digest(self, parameters: GateParameters) -> str:
        """See the base class."""
        keys = [
            work.keys_digest(work.keys(parameters, process))
            for process in range(max(parameters.processes))
        ]
        return hashlib.sha256(repr((keys, parameters.duration_seconds)).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: GateParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        yield GateSession(parameters, scratch)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        failed = sum(sample.errors.values())
        text = (
            f"{number(sample.figures[WRITES.name])} writes/s, "
            f"longest wait {number(sample.figures[LONGEST.name])} ms"
        )
        return f"{text}, {failed:,} errors" if failed else text
