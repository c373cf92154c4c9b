"""The ``busy`` workload: how long short transactions wait behind long ones.

A parent process runs some write transactions of about a second; children start
while the first holds the lock, and want it for nothing: ``SELECT 1`` in a write
transaction. Who of them waits longest depends on how a lock is waited for.
"""

import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Plan, Result, Row, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import ABSENT, Column, Table, against, errors, median, number, spread
from oxlite.bench.scenarios.pragmas import JOURNAL_MODES
from oxlite.bench.scenarios.scenario import HANDLERS, WAITING, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.busy.parameters import BusyParameters, work_digest

PARENT = "oxlite.bench.workloads.busy.worker:ParentTask"
CHILD = "oxlite.bench.workloads.busy.worker:ChildTask"
HUNG_BASE_SECONDS = 120.0
NS_PER_MS = 1e6

PARENT_TIME = Metric("parent_ms", "parent", "lower")
FASTEST = Metric("fastest_child_ms", "fastest child", "lower")
SLOWEST = Metric("slowest_child_ms", "slowest child", "lower", of_all_work=True)
DIFFERENCE = Metric("difference_ms", "slowest less fastest child", "lower")

GROUPED = ("processes", "threads", "long")

PUBLISHED: Mapping[tuple[str, str, str, str], int] = {
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
    key = (one.busy or "", one.processes or "", one.threads or "", one.long or "")
    found = PUBLISHED.get(key)
    return ABSENT if found is None else number(found)


class BusySession:
    """A database, which nobody changes."""

    def __init__(self, parameters: BusyParameters, scratch: Scratch) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._fsync_wanted = True

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        parameters = self._parameters
        directory = self._scratch.fresh(scenario.label)
        database = directory / "busy.db"
        create_database(database, scenario.journal or "rollback")
        arguments = {
            "parameters": asdict(parameters),
            "scenario": scenario.used(),
            "path": str(database),
        }
        children, long = int(scenario.processes or 0), int(scenario.long or 0)
        threads = int(scenario.threads or 0)
        environment = None
        with WorkerGroup(directory) as group:
            parent = group.start(PARENT, arguments, scenario.build or "own")
            for _ in range(children):
                group.start(CHILD, arguments, scenario.build or "own")
            group.wait_ready()
            transactions = long + children * threads * parameters.transactions
            group.release(
                HUNG_BASE_SECONDS
                + long * parameters.hold_seconds
                + transactions * parameters.timeout_seconds
            )
            found = group.collect()
            if with_environment:
                environment = group.environment(parent, scenario.driver, fsync=self._fsync_wanted)
                self._fsync_wanted = False
            group.stop()
        sample = sample_of(found, transactions)
        sample.detail["versions"] = parent.facts["versions"]
        sample.environment = environment
        return sample


def create_database(path: Path, journal: str) -> None:
    """Make the database, by the standard library for every driver."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={JOURNAL_MODES[journal]}")
        connection.execute("CREATE TABLE untouched(a)")


def sample_of(found: Sequence[tuple[Message, bytes]], asked: int) -> Sample:
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
    waits_ns = array("Q")
    for _, payload in others:
        waits_ns.frombytes(payload)
    times_ms = [facts["elapsed_ns"] / NS_PER_MS for facts, _ in others]
    figures = {
        FASTEST.name: min(times_ms),
        SLOWEST.name: max(times_ms),
        DIFFERENCE.name: max(times_ms) - min(times_ms),
    }
    if parent["elapsed_ns"]:  # else it had nothing to do
        figures[PARENT_TIME.name] = parent["elapsed_ns"] / NS_PER_MS
    return Sample(
        figures,
        asked,
        dict(errors),
        {"transaction": waits_ns},
        {"children_ms": times_ms},
    )


class BusyWorkload(Workload[BusyParameters]):
    """See the module."""

    name = "busy"
    title = "who waits how long behind a long transaction"
    parameters_type = BusyParameters
    quick: ClassVar = {"processes": (8,), "threads": (4,), "long": (0, 1)}
    axes: ClassVar = {
        "driver": ("stdlib", "oxlite"),
        "journal": ("wal",),
        "pragmas": ("tuned",),
        "busy": (*WAITING, *HANDLERS),
        "processes": (),
        "threads": (),
        "long": (),
    }
    baselines: ClassVar[Sequence[Filter]] = ({"busy": "backoff"}, {"busy": "fair"})
    selection: ClassVar[Sequence[Filter]] = (
        {"driver": "stdlib", "busy": "backoff"},
        *({"driver": "oxlite", "busy": policy} for policy in WAITING),
    )
    quick_selection: ClassVar[Sequence[Filter]] = tuple(
        {"driver": "oxlite", "busy": policy} for policy in WAITING
    )
    # Nothing here has to be warmed: connections are opened before the start, and no row is read.
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=900.0, warm_ups=0)
    quick_plan: ClassVar[Plan] = Plan(repeats=3, time_budget_seconds=90.0, warm_ups=0)
    metrics: ClassVar = (SLOWEST, FASTEST, DIFFERENCE, PARENT_TIME)
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

    def axes_of(self, parameters: BusyParameters) -> Mapping[str, Sequence[str]]:
        """See the base class."""
        counts = {axis: tuple(map(str, getattr(parameters, axis))) for axis in GROUPED}
        return {**self.axes, **counts}

    def work_digest(self, parameters: BusyParameters) -> str:
        """See the base class."""
        return work_digest(parameters)

    @contextmanager
    def session(
        self, parameters: BusyParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        yield BusySession(parameters, scratch)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        failed = sum(sample.errors.values())
        text = f"slowest child {number(sample.figures[SLOWEST.name])} ms"
        return f"{text}, {failed:,} errors" if failed else text
