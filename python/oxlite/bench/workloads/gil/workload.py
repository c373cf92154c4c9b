"""The ``gil`` workload: how kind a driver is to the other threads of its process.

One worker process per driver lives through the whole run and has its own copy
of the database; they take turns, so that one alone is at work at any time. The
file is in WAL mode with the ``tuned`` pragmas, as in an application.

The axis ``interpreter`` is there if the run names interpreters: each is the
executable of workers, which need Oxlite installed there.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import ClassVar

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.model import Plan, Sample
from oxlite.bench.harness.processes import Worker, WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import number
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.gil import turns, work
from oxlite.bench.workloads.gil.bars import GilTable
from oxlite.bench.workloads.gil.parameters import GilParameters
from oxlite.bench.workloads.gil.worker import unpacked

TASK = "oxlite.bench.workloads.gil.worker:GilTask"
HUNG_BASE_SECONDS = 20.0
HUNG_SECONDS = 20.0
REHEARSED_SCALE = 0.02

SETTINGS = {"journal": "wal", "pragmas": "tuned"}
PEERS = ("stdlib", "apsw")


class GilSession:
    """A worker per scenario, started when first needed and then kept."""

    def __init__(self, parameters: GilParameters, scratch: Scratch, stack: ExitStack) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._stack = stack
        self._workers: dict[Scenario, tuple[WorkerGroup, Worker]] = {}

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        group, one = self._workers.get(scenario) or self._start(scenario)
        try:
            group.release(HUNG_BASE_SECONDS + HUNG_SECONDS * self._parameters.scale)
            [(facts, payload)] = group.collect()
        except WorkerError:
            # One that hangs with busy threads would be measured with the others.
            one.process.kill()
            raise
        sample = Sample(
            facts["figures"],
            latencies_ns=unpacked(facts, payload),
            detail={"versions": one.facts["versions"], **facts["detail"]},
            absent=facts["absent"],
            failed=facts["failed"],
        )
        if with_environment:
            first = scenario == next(iter(self._workers))
            sample.environment = group.environment(one, scenario.driver, fsync=first)
        return sample

    def _start(self, scenario: Scenario) -> tuple[WorkerGroup, Worker]:
        # A label may hold the path of an interpreter.
        directory = self._scratch.fresh(f"{len(self._workers)} {scenario.driver}")
        database = directory / "gil.db"
        work.create_database(database, scenario.journal or "rollback")
        group = self._stack.enter_context(WorkerGroup(directory))
        one = group.start(
            TASK,
            {
                "parameters": asdict(self._parameters),
                "scenario": scenario.used(),
                "path": str(database),
            },
            scenario.build or "own",
            scenario.interpreter,
        )
        try:
            group.wait_ready()
            # So that the first sample meets the same interpreter and files as the others.
            rehearsed = min(self._parameters.scale, REHEARSED_SCALE)
            group.release(HUNG_BASE_SECONDS, {"scale": rehearsed})
            group.collect()
        except WorkerError:
            one.process.kill()
            raise
        self._workers[scenario] = group, one
        return group, one


class GilWorkload(Workload[GilParameters]):
    """See the module."""

    name = "gil"
    title = "how kind a driver is to the other threads"
    parameters_type = GilParameters
    quick: ClassVar = {"scale": 0.2}
    axes: ClassVar = {
        "driver": (*PEERS, "oxlite"),
        "journal": ("wal",),
        "pragmas": ("tuned",),
    }
    baselines: ClassVar[Sequence[Filter]] = tuple(SETTINGS | {"driver": peer} for peer in PEERS)
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = ({},)
    # Workers rehearse when they start. Five repeats bound a median with 94 %; a turn must be
    # long enough for many hand-overs of the GIL, 5 ms each, and the whole run is to be short.
    plan: ClassVar[Plan] = Plan(repeats=5, warm_ups=0)
    quick_plan: ClassVar[Plan] = Plan(repeats=2, time_budget_seconds=90.0, warm_ups=0)
    metrics: ClassVar = turns.METRICS
    tables: ClassVar = (GilTable(turns.METRICS, PEERS),)

    def axes_of(self, parameters: GilParameters) -> Mapping[str, Sequence[str]]:
        """See the base class."""
        if not parameters.interpreter:
            return self.axes
        return {**self.axes, "interpreter": parameters.interpreter}

    def work_digest(self, parameters: GilParameters) -> str:
        """See the base class."""
        readers = [work.lookups(parameters.seed, reader) for reader in range(max(turns.READERS))]
        measured = [metric.name for metric in turns.METRICS]
        return hashlib.sha256(repr((readers, measured, parameters.scale)).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: GilParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        with ExitStack() as stack:
            yield GilSession(parameters, scratch, stack)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        shown = (
            (turns.LOOKUPS_BESIDE[1], "look-ups/s beside the CPU thread"),
            (turns.WAKE_P99[max(turns.IDLE_READERS)], "ms late"),
        )
        texts = [
            f"{number(sample.figures[metric.name])} {unit}"
            for metric, unit in shown
            if metric.name in sample.figures
        ]
        failed = [f"{len(sample.failed)} failed"] if sample.failed else []
        return ", ".join([*texts, *failed]) or "nothing"
