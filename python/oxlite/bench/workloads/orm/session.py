"""A run of ``orm``: workers that do an operation one after the other before any does the next.

Each scenario has a worker process with a database of its own; they take turns, so that one alone
is at work at any time. Within a round all do the same operation in the same moments, in an order
that changes from operation to operation and from round to round; one that is short is done several
times, and the median counts.

Two processes of the same program are not equally fast: memory lies otherwise, and a processor may
have a busy neighbour. Over eight pairs of processes the ratio of an operation scattered by 5 to
20 % (standard deviation), and by 2 to 5 % if they shared a processor. So every round has new
workers, all of which work on the same processor, another one than the round before.

Invariants: every worker does an operation equally often in a round; what an operation leaves in
the tables is the same everywhere, or it fails where it differs from where it was first done.
"""

import itertools
import os
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from statistics import median

from oxlite.bench.drivers.catalogue import DRIVERS
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
from oxlite.bench.workloads.orm.ratio import TURNS

TASK = "oxlite.bench.workloads.orm.worker:OrmTask"
HUNG_SECONDS = 1800.0
NS_PER_MS = 1e6
NS_PER_SECOND = 1e9
MOST_TIMES = 25
"""An operation is not done more often in a round."""
LONGEST = 8
"""Nor where all together have taken so many times what is enough for each."""
WARMED_NS = 1_000_000_000
"""What takes no longer than this is done once before it counts: a new process has to learn it."""


@dataclass
class _Runner:
    """A worker of this round, and what it has measured."""

    exits: ExitStack
    group: WorkerGroup
    worker: Worker
    elapsed_ns: dict[str, list[int]] = field(default_factory=dict)


def _processors() -> Sequence[int | None]:
    """Those that may be used; ``None`` where one cannot be chosen."""
    if not hasattr(os, "sched_getaffinity"):
        return [None]
    return sorted(os.sched_getaffinity(0))


class OrmSession:
    """See :class:`~oxlite.bench.harness.run.Divided`; a round's workers are started when needed."""

    def __init__(self, parameters: OrmParameters, scratch: Scratch, stack: ExitStack) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._stack = stack
        # Left after the workers, which are started later.
        self._server = stack.enter_context(PostgresServer(scratch))
        self._runners: dict[Scenario, _Runner] = {}
        self._processors = itertools.cycle(_processors())
        self._processor: int | None = None
        self._is_over = False
        """Whether the round that the workers are of is being summed up."""
        self._fsync_wanted = True
        # What is warmed in this round, by whether it has to be.
        self._warmed: dict[str, bool] = {}
        self._failed: dict[Scenario, dict[str, str]] = defaultdict(dict)
        self._degenerate: dict[Scenario, dict[str, str]] = defaultdict(dict)
        self._digests: dict[str, tuple[str, str]] = {}
        self._timed: dict[str, Timed] = {timed.title: timed for timed in parameters.operations()}

    @property
    def parts(self) -> Sequence[str]:
        """The titles of the operations."""
        return list(self._timed)

    def do(self, scenario: Scenario, part: str) -> None:
        """See the protocol."""
        if self._is_over:
            for other in list(self._runners):
                self._end(other)
            self._is_over = False
        if part in self._failed[scenario]:
            return
        runner = self._runners.get(scenario) or self._start(scenario)
        elapsed_ns = self._turn(scenario, runner, part)
        if elapsed_ns is None:
            return
        if part not in runner.elapsed_ns:
            # As the first of the round decides, for it is done equally often by all.
            runner.elapsed_ns[part] = []
            if self._warmed.setdefault(part, elapsed_ns <= WARMED_NS):
                return
        runner.elapsed_ns[part].append(elapsed_ns)

    def _turn(self, scenario: Scenario, runner: _Runner, part: str) -> int | None:
        """How long a turn lasted; ``None`` if the operation has failed."""
        try:
            runner.group.release(HUNG_SECONDS, {"operation": part, "processor": self._processor})
            [(facts, _)] = runner.group.collect()
        except (WorkerError, OSError):
            self._end(scenario)
            raise
        reason = facts.get("failed") or self._differs(scenario, part, facts["digest"])
        if reason is not None:
            self._failed[scenario][part] = reason
            return None
        if facts["degenerate"] is not None:
            self._degenerate[scenario][part] = facts["degenerate"]
        elapsed_ns: int = facts["elapsed_ns"]
        return elapsed_ns

    def again(self, part: str) -> bool:
        """See the protocol."""
        found = [
            runner.elapsed_ns[part]
            for scenario, runner in self._runners.items()
            if part in runner.elapsed_ns and part not in self._failed[scenario]
        ]
        if not found:
            return False
        if not all(found):  # warmed up, and not counted yet
            return True
        if max(map(len, found)) >= MOST_TIMES:
            return False
        totals_seconds = [sum(elapsed) / NS_PER_SECOND for elapsed in found]
        enough_seconds = self._parameters.at_least_seconds
        return min(totals_seconds) < enough_seconds and sum(
            totals_seconds
        ) < LONGEST * enough_seconds * len(found)

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See the protocol."""
        # Its worker is ended later: an interruption may have this done once more.
        self._is_over = True
        runner = self._runners.get(scenario) or self._start(scenario)
        figures = {
            self._timed[title].metric: median(elapsed) / NS_PER_MS
            for title, elapsed in runner.elapsed_ns.items()
            if elapsed and title not in self._failed[scenario]
        }
        turns = {
            self._timed[title].metric: [elapsed / NS_PER_MS for elapsed in turns_ns]
            for title, turns_ns in runner.elapsed_ns.items()
            if self._timed[title].metric in figures
        }
        failed = {self._timed[title].metric: why for title, why in self._failed[scenario].items()}
        if not failed and len(figures) == len(self._timed):
            figures[SUM.name] = sum(figures.values())
        sample = Sample(figures, failed=failed)
        sample.detail = {
            "versions": runner.worker.facts["versions"],
            TURNS: turns,
            "degenerate": dict(self._degenerate[scenario]),
        }
        if with_environment:
            sample.environment = runner.group.environment(
                runner.worker, scenario.driver, fsync=self._fsync_wanted
            )
            self._fsync_wanted = False
        return sample

    def _end(self, scenario: Scenario) -> None:
        """End its worker."""
        self._runners.pop(scenario).exits.close()

    def _differs(self, scenario: Scenario, part: str, digest: str) -> str | None:
        """Why what an operation has left is wrong, or ``None`` if it is as everywhere."""
        label, first = self._digests.setdefault(part, (scenario.label, digest))
        if digest == first:
            return None
        return f"degenerate: it leaves other rows in the tables than {label} does"

    def _start(self, scenario: Scenario) -> _Runner:
        if not self._runners:
            self._processor = next(self._processors)
            self._warmed.clear()
        directory = self._scratch.fresh(scenario.label)
        if DRIVERS.get(scenario.driver).is_server:
            # A new one each time, of the name that the earlier one had.
            database = self._server.database(f"orm_{scenario.mapper}")
        else:
            database = directory / "orm.db"
            with closing(sqlite3.connect(database)) as connection:
                mode = JOURNAL_MODES[scenario.journal or "rollback"]
                connection.execute(f"PRAGMA journal_mode = {mode}")
        exits = self._stack.enter_context(ExitStack())
        group = exits.enter_context(WorkerGroup(directory))
        arguments = {
            "parameters": asdict(self._parameters),
            "scenario": scenario.used(),
            "path": str(database),
        }
        one = group.start(TASK, arguments, scenario.build or "own")
        group.wait_ready()
        self._runners[scenario] = _Runner(exits, group, one)
        return self._runners[scenario]
