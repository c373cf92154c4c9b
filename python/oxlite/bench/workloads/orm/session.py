"""A run of ``orm``: workers that do an operation one after the other before any does the next.

One worker process per scenario lives through the whole run and has its own database; they take
turns, so that one alone is at work at any time. Within a round all do the same operation in the
same moments, in an order that changes from operation to operation and from round to round; one
that is short is done several times, and the median counts.

Invariants: every worker does an operation equally often in a round; what an operation leaves in
the tables is the same everywhere, or it fails where it differs from where it was first done.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from statistics import median

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.model import Sample
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.processes import Worker, WorkerGroup
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.scenarios.pragmas import JOURNAL_MODES
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.figures import SUM
from oxlite.bench.workloads.orm.operations import Timed
from oxlite.bench.workloads.orm.parameters import OrmParameters

TASK = "oxlite.bench.workloads.orm.worker:OrmTask"
HUNG_SECONDS = 1800.0
NS_PER_MS = 1e6
NS_PER_SECOND = 1e9
MOST_TIMES = 9
"""An operation is not done more often in a round."""
LONGEST = 8
"""Nor where all together have taken so many times what is enough for each."""


@dataclass
class _Runner:
    """A worker, and what it has measured in this round."""

    group: WorkerGroup
    worker: Worker
    elapsed_ns: dict[str, list[int]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    degenerate: dict[str, str] = field(default_factory=dict)


class OrmSession:
    """See :class:`~oxlite.bench.harness.run.Divided`; workers are started when first needed."""

    def __init__(self, parameters: OrmParameters, scratch: Scratch, stack: ExitStack) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._stack = stack
        # Left after the workers, which are started later.
        self._server = stack.enter_context(PostgresServer(scratch))
        self._runners: dict[Scenario, _Runner] = {}
        self._digests: dict[str, tuple[str, str]] = {}
        self._timed: dict[str, Timed] = {timed.title: timed for timed in parameters.operations()}

    @property
    def parts(self) -> Sequence[str]:
        """The titles of the operations."""
        return list(self._timed)

    def do(self, scenario: Scenario, part: str) -> None:
        """See the protocol."""
        runner = self._runners.get(scenario) or self._start(scenario)
        if part in runner.failed:
            return
        try:
            runner.group.release(HUNG_SECONDS, {"operation": part})
            [(facts, _)] = runner.group.collect()
        except WorkerError:
            del self._runners[scenario]
            raise
        reason = facts.get("failed") or self._differs(scenario, part, facts["digest"])
        if reason is not None:
            runner.failed[part] = reason
            return
        runner.elapsed_ns.setdefault(part, []).append(facts["elapsed_ns"])
        if facts["degenerate"] is not None:
            runner.degenerate[part] = facts["degenerate"]

    def again(self, part: str) -> bool:
        """See the protocol."""
        found = [
            runner.elapsed_ns[part]
            for runner in self._runners.values()
            if part in runner.elapsed_ns
        ]
        if not found or max(map(len, found)) >= MOST_TIMES:
            return False
        totals_seconds = [sum(elapsed) / NS_PER_SECOND for elapsed in found]
        enough_seconds = self._parameters.at_least_seconds
        return min(totals_seconds) < enough_seconds and sum(
            totals_seconds
        ) < LONGEST * enough_seconds * len(found)

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See the protocol."""
        runner = self._runners[scenario]
        figures = {
            self._timed[title].metric: median(elapsed) / NS_PER_MS
            for title, elapsed in runner.elapsed_ns.items()
        }
        times = {title: len(elapsed) for title, elapsed in runner.elapsed_ns.items()}
        runner.elapsed_ns = {}
        failed = {self._timed[title].metric: why for title, why in runner.failed.items()}
        if not failed:
            figures[SUM.name] = sum(figures.values())
        sample = Sample(figures, failed=failed)
        sample.detail = {
            "versions": runner.worker.facts["versions"],
            "times": times,
            "degenerate": dict(runner.degenerate),
        }
        if with_environment:
            first = scenario == next(iter(self._runners))
            sample.environment = runner.group.environment(
                runner.worker, scenario.driver, fsync=first
            )
        return sample

    def _differs(self, scenario: Scenario, part: str, digest: str) -> str | None:
        """Why what an operation has left is wrong, or ``None`` if it is as everywhere."""
        label, first = self._digests.setdefault(part, (scenario.label, digest))
        if digest == first:
            return None
        return f"degenerate: it leaves other rows in the tables than {label} does"

    def _start(self, scenario: Scenario) -> _Runner:
        directory = self._scratch.fresh(scenario.label)
        if scenario.driver == "postgresql":
            database = self._server.database(f"orm_{scenario.mapper}")
        else:
            database = directory / "orm.db"
            with closing(sqlite3.connect(database)) as connection:
                mode = JOURNAL_MODES[scenario.journal or "rollback"]
                connection.execute(f"PRAGMA journal_mode = {mode}")
        group = self._stack.enter_context(WorkerGroup(directory))
        arguments = {
            "parameters": asdict(self._parameters),
            "scenario": scenario.used(),
            "path": str(database),
        }
        one = group.start(TASK, arguments, scenario.build or "own")
        group.wait_ready()
        self._runners[scenario] = _Runner(group, one)
        return self._runners[scenario]
