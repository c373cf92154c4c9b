"""A run of ``orm``: workers that do an operation one after the other before any does the next.

Each scenario has a worker process with a database of its own; they take turns, so that one alone
is at work at any time. Within a round all do the same operation in the same moments, in an order
that changes from operation to operation and from round to round; one that is short is done several
times, and the median counts.

Two processes of the same program are not equally fast: memory lies otherwise, and a processor may
have a busy neighbour. Over eight pairs of processes the ratio of an operation scattered by 5 to
20 % (standard deviation), and by 2 to 5 % if they shared a processor. So every round has new
workers, all of which work on the same processor, another one than the round before.

Invariants: every worker does an operation equally often in a round; one that has failed is not
tried again; what an operation leaves in the tables is the same everywhere, or it fails where it
differs from where it was first done.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.databases import Databases
from oxlite.bench.harness.installed import MAPPERS
from oxlite.bench.harness.model import Sample
from oxlite.bench.harness.outcomes import NS_PER_MS, NS_PER_SECOND
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import WorkerSession
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.figures import SUM, TURNS
from oxlite.bench.workloads.orm.operations import Timed
from oxlite.bench.workloads.orm.parameters import OrmParameters
from oxlite.bench.workloads.orm.worker import processors

HUNG_SECONDS = 1800.0
MOST_TIMES = 25
"""An operation is not done more often in a round."""
LONGEST = 8
"""Nor where all together have taken so many times what is enough for each."""
WARMED_NS = 1_000_000_000
"""What takes no longer than this is done once before it counts: a new process has to learn it."""


@dataclass
class Runner:
    """A worker of this round, and what it has measured."""

    exits: ExitStack
    group: WorkerGroup
    elapsed_ns: dict[str, list[int]] = field(default_factory=dict)


class OrmSession(WorkerSession[OrmParameters]):
    """See :class:`~oxlite.bench.harness.run.Divided`; a round's workers are started when needed.

    Attributes:
        runners: the workers of this round that have been started, by scenario.
        digests: by operation, the row that did it first, and of what it left in the tables.
    """

    task = "oxlite.bench.workloads.orm.worker:OrmTask"

    def __init__(self, parameters: OrmParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        # Left after the workers, which are started later.
        server = exits.enter_context(PostgresServer(scratch))
        # Each mapper makes its tables itself.
        self._databases = {
            mapper: Databases(scratch, f"orm_{mapper}", lambda *_: None, server)
            for mapper in MAPPERS
        }
        self.runners: dict[Scenario, Runner] = {}
        self._processors = itertools.cycle(sorted(processors()) or [None])
        self._processor: int | None = None
        self._is_over = False
        """Whether the round that the workers are of is being summed up."""
        # What is warmed in this round, by whether it has to be.
        self._warmed: dict[str, bool] = {}
        self._failed: dict[Scenario, dict[str, str]] = defaultdict(dict)
        self._degenerate: dict[Scenario, dict[str, str]] = defaultdict(dict)
        self.digests: dict[str, tuple[str, str]] = {}
        self._timed: dict[str, Timed] = {timed.title: timed for timed in parameters.operations()}

    @property
    def parts(self) -> Sequence[str]:
        """The titles of the operations."""
        return list(self._timed)

    def do(self, scenario: Scenario, part: str) -> None:
        """See the protocol."""
        if self._is_over:
            for other in list(self.runners):
                self._end(other)
            self._is_over = False
        if part in self._failed[scenario]:
            return
        runner = self.runners.get(scenario) or self._start(scenario)
        elapsed_ns = self._turn(scenario, runner, part)
        if elapsed_ns is None:
            return
        if part not in runner.elapsed_ns:
            # As the first of the round decides, for it is done equally often by all.
            runner.elapsed_ns[part] = []
            if self._warmed.setdefault(part, elapsed_ns <= WARMED_NS):
                return
        runner.elapsed_ns[part].append(elapsed_ns)

    def _turn(self, scenario: Scenario, runner: Runner, part: str) -> int | None:
        """How long a turn lasted; ``None`` if the operation has failed."""
        try:
            runner.group.release(HUNG_SECONDS, {"operation": part, "processor": self._processor})
            [(facts, _)] = runner.group.collect()
        except (WorkerError, OSError):
            self._end(scenario)
            raise
        reason: str | None = facts.get("failed")
        if reason is None:
            label, first = self.digests.setdefault(part, (scenario.label, facts["digest"]))
            if facts["digest"] != first:
                reason = f"degenerate: it leaves other rows in the tables than {label} does"
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
            for scenario, runner in self.runners.items()
            if part in runner.elapsed_ns and part not in self._failed[scenario]
        ]
        if not found:
            return False
        if not all(found):  # warmed up, and not counted yet
            return True
        totals_seconds = [sum(elapsed) / NS_PER_SECOND for elapsed in found]
        enough_seconds = self.parameters.at_least_seconds
        return (
            max(map(len, found)) < MOST_TIMES
            and min(totals_seconds) < enough_seconds
            and sum(totals_seconds) < LONGEST * enough_seconds * len(found)
        )

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See the protocol."""
        # Its worker is ended later: an interruption may have this done once more.
        self._is_over = True
        runner = self.runners.get(scenario) or self._start(scenario)
        turns_ms = {
            self._timed[title].metric: [elapsed / NS_PER_MS for elapsed in elapsed_ns]
            for title, elapsed_ns in runner.elapsed_ns.items()
            if elapsed_ns and title not in self._failed[scenario]
        }
        figures = {metric: median(found) for metric, found in turns_ms.items()}
        failed = {self._timed[title].metric: why for title, why in self._failed[scenario].items()}
        if not failed and len(figures) == len(self._timed):
            figures[SUM.name] = sum(figures.values())
        sample = Sample(figures, failed=failed)
        sample.detail = {TURNS: turns_ms, "degenerate": dict(self._degenerate[scenario])}
        self.describe(sample, runner.group, scenario, with_environment=with_environment)
        return sample

    def _end(self, scenario: Scenario) -> None:
        """End its worker."""
        self.runners.pop(scenario).exits.close()

    def _start(self, scenario: Scenario) -> Runner:
        if not self.runners:
            self._processor = next(self._processors)
            self._warmed.clear()
        databases = self._databases[scenario["mapper"]]
        database = databases.start(scenario, scenario.get("journal", "rollback"))
        exits = self.exits.enter_context(ExitStack())
        group = exits.enter_context(WorkerGroup(database.directory))
        self.start(group, scenario, database.path)
        group.wait_ready()
        self.runners[scenario] = Runner(exits, group)
        return self.runners[scenario]
