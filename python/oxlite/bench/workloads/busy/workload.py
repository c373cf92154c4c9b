"""The ``busy`` workload: how long short transactions wait behind long ones.

A parent process runs some write transactions of about a second; children start
while the first holds the lock, and want it for nothing: ``SELECT 1`` in a write
transaction. Who of them waits longest depends on how a lock is waited for.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Metric, Plan, Result, Row, Sample
from oxlite.bench.harness.outcomes import NS_PER_MS
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.session import FreshSession, HandedOver
from oxlite.bench.layout import ABSENT, Column, Table, against, errors, median, number, spread
from oxlite.bench.scenarios.axes import (
    BUSY,
    DRIVER,
    HANDLERS,
    JOURNAL,
    PRAGMAS,
    PROCESSES,
    THREADS,
    WAITING,
    Axis,
    of_parameter,
)
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.busy.claims import PUBLISHED
from oxlite.bench.workloads.busy.parameters import BusyParameters

CHILD = "oxlite.bench.workloads.busy.worker:ChildTask"

PARENT_TIME = Metric("parent_ms", "parent", "lower")
FASTEST = Metric("fastest_child_ms", "fastest child", "lower")
SLOWEST = Metric("slowest_child_ms", "slowest child", "lower", of_all_work=True)
DIFFERENCE = Metric("difference_ms", "slowest less fastest child", "lower")

GROUPED = ("processes", "threads", "long")

PUBLISHED_MS: Mapping[tuple[str, str, str, str], int] = {
    ("fair", "8", "4", "0"): 27,
    ("backoff", "8", "4", "0"): 107,
    ("fair", "8", "4", "1"): 902,
    ("backoff", "8", "4", "1"): 1424,
}
"""The slowest child in ms as published, by busy policy, processes, threads and long transactions:
another machine, in Ruby, with handlers written there."""


def _published(result: Result, row: Row) -> str:
    one, given = row.scenario, result.parameters
    if (given["hold_seconds"], given["transactions"]) != (1.0, 1):
        return ABSENT
    key = one["busy"], one["processes"], one["threads"], one["long"]
    found = PUBLISHED_MS.get(key)
    return ABSENT if found is None else number(found)


class BusySession(FreshSession[BusyParameters, list[HandedOver]]):
    """A parent and its children, on a database that nobody changes."""

    name = "busy"
    task = "oxlite.bench.workloads.busy.worker:ParentTask"

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        connection.execute("CREATE TABLE untouched(a)", ())

    def work(self, group: WorkerGroup, database: Database) -> list[HandedOver]:
        """See the base class."""
        parameters, scenario = self.parameters, database.scenario
        self.start(group, scenario, database.path)
        for _ in range(int(scenario.get("processes", 0))):
            self.start(group, scenario, database.path, CHILD)
        seconds = (
            int(scenario.get("long", 0)) * parameters.hold_seconds
            + self._transactions(scenario) * parameters.timeout_seconds
        )
        return self.first_turn(group, (), seconds)[1]

    def sample(self, database: Database, found: list[HandedOver]) -> Sample:
        """See the base class."""
        return sample_of(found, self._transactions(database.scenario))

    def _transactions(self, scenario: Scenario) -> int:
        children, threads = int(scenario.get("processes", 0)), int(scenario.get("threads", 0))
        return int(scenario.get("long", 0)) + children * threads * self.parameters.transactions


def sample_of(found: Sequence[HandedOver], asked: int) -> Sample:
    """The figures of one run, from what the parent and then each child handed over.

    Raises:
        VerificationError: it is not all of the work.
    """
    (parent, _), *others = found
    errors: Counter[str] = Counter()
    for facts, _ in found:
        errors.update(facts["errors"])
    done = sum(facts["done"] for facts, _ in found)
    if done + sum(errors.values()) != asked:
        raise VerificationError(
            f"{done} transactions and {sum(errors.values())} errors, asked for {asked}"
        )
    waits_ns = array("Q", b"".join(payload for _, payload in others))
    times_ms = [facts["elapsed_ns"] / NS_PER_MS for facts, _ in others]
    figures = {
        FASTEST.name: min(times_ms),
        SLOWEST.name: max(times_ms),
        DIFFERENCE.name: max(times_ms) - min(times_ms),
    }
    if parent["elapsed_ns"]:  # else it had nothing to do
        figures[PARENT_TIME.name] = parent["elapsed_ns"] / NS_PER_MS
    detail = {"children_ms": times_ms}
    return Sample(figures, asked, dict(errors), {"transaction": waits_ns}, detail)


class BusyWorkload(Workload[BusyParameters]):
    """See the module."""

    name = "busy"
    title = "who waits how long behind a long transaction"
    about = """\
Short transactions behind a long one: how each way of waiting treats the slowest.

All of it takes about ten minutes, with `--quick` less than one.
"""
    examples = (
        "--quick",
        "--all --processes 8 --threads 4 --long 1",
    )
    parameters_type = BusyParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("stdlib", "oxlite"),
        JOURNAL.of("wal"),
        PRAGMAS.of("tuned"),
        BUSY.of(*WAITING, *HANDLERS),
        PROCESSES,
        THREADS,
        of_parameter("long", "how many long transactions are run beside them"),
    )
    baselines: ClassVar[Sequence[Filter]] = ({"busy": "backoff"}, {"busy": "fair"})
    selection: ClassVar[Sequence[Filter]] = (
        {"driver": "stdlib", "busy": "backoff"},
        *({"driver": "oxlite", "busy": policy} for policy in WAITING),
    )
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"driver": "stdlib", "busy": "backoff"},
        {"driver": "oxlite", "busy": "gate"},
    )
    # Nothing here has to be warmed: connections are opened before the start, and no row is read.
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=900.0, warm_ups=0)
    metrics: ClassVar = (SLOWEST, FASTEST, DIFFERENCE, PARENT_TIME)
    contest: ClassVar = Contest(
        (SLOWEST,),
        "ms for the slowest child",
        {"driver": "oxlite", "busy": "gate"},
        [{"driver": "stdlib", "busy": "backoff"}],
    )
    published: ClassVar = PUBLISHED
    tables: ClassVar = (
        Table(
            "The parent, the fastest and the slowest child, ms",
            (
                median("parent", PARENT_TIME),
                median("fastest", FASTEST),
                median("slowest", SLOWEST),
                median("difference", DIFFERENCE),
                errors("errors"),
                Column("slowest published", _published),
            ),
            grouped=GROUPED,
        ),
        Table(
            "The slowest child, ms, and how many times shorter",
            (
                spread("slowest", SLOWEST),
                against("than backoff", SLOWEST, busy="backoff"),
                against("than fair", SLOWEST, busy="fair"),
            ),
            grouped=GROUPED,
        ),
    )

    session_type = BusySession
    told: ClassVar = ((SLOWEST, "slowest child {} ms"),)

    def work(self, parameters: BusyParameters) -> object:
        """See the base class: there is nothing random in it."""
        return (
            parameters.processes,
            parameters.threads,
            parameters.long,
            parameters.hold_seconds,
            parameters.transactions,
        )


WORKLOAD = BusyWorkload()
