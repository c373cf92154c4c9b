"""The ``driver`` workload: microseconds per statement, per driver, in one thread.

One worker process per driver lives through the whole run and has its own copy
of the database; they take turns, so that one alone is at work at any time and
every round compares drivers in the same moments. The file is in WAL mode with
the ``tuned`` pragmas, as in an application.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.processes import Worker, WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch, copy_synced
from oxlite.bench.layout import Table, improvement, number, spread
from oxlite.bench.scenarios.pragmas import JOURNAL_MODES
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.driver import worker
from oxlite.bench.workloads.driver.worker import DriverParameters

TASK = "oxlite.bench.workloads.driver.worker:DriverTask"
HUNG_BASE_SECONDS = 60.0
HUNG_SECONDS_PER_OPERATION = 0.01

METRICS = (
    Metric("get_by_text_key_us", "get, text key", "lower"),
    Metric("get_by_integer_key_us", "get, integer key", "lower"),
    Metric("get_in_transaction_us", "get in transaction", "lower"),
    Metric("fetch_100_rows_us", "fetch 100 rows", "lower"),
    Metric("insert_us", "insert", "lower"),
    Metric("executemany_us_per_row", "executemany, a row", "lower"),
)

SETTINGS = {"journal": "wal", "pragmas": "tuned"}
STDLIB = SETTINGS | {"driver": "stdlib"}
APSW = SETTINGS | {"driver": "apsw"}


def create_database(path: Path, journal: str) -> None:
    """Make the database that every driver reads; no connection is left open."""
    numbers = range(worker.ROWS)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={JOURNAL_MODES[journal]}")
        connection.execute("BEGIN")
        for statement in worker.SCHEMA:
            connection.execute(statement)
        for table, key in (("by_text", worker.text_key), ("by_integer", int)):
            connection.executemany(
                f"INSERT INTO {table} VALUES(?,?)",
                ((key(n), worker.text_value(n)) for n in numbers),
            )
        connection.execute("COMMIT")


class DriverSession:
    """A worker per scenario, started when first needed and then kept."""

    def __init__(self, parameters: DriverParameters, scratch: Scratch, stack: ExitStack) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._stack = stack
        self._workers: dict[Scenario, tuple[WorkerGroup, Worker]] = {}

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        group, one = self._workers.get(scenario) or self._start(scenario)
        group.release(HUNG_BASE_SECONDS + HUNG_SECONDS_PER_OPERATION * self._parameters.operations)
        [(facts, _)] = group.collect()
        sample = Sample(facts["figures"], detail={"versions": one.facts["versions"]})
        if with_environment:
            first = scenario == next(iter(self._workers))
            sample.environment = group.environment(one, scenario.driver, fsync=first)
        return sample

    def _start(self, scenario: Scenario) -> tuple[WorkerGroup, Worker]:
        directory = self._scratch.fresh(scenario.label)
        template = directory / "template.db"
        create_database(template, scenario.journal or "rollback")
        database = directory / "driver.db"
        copy_synced(template, database)
        template.unlink()
        group = self._stack.enter_context(WorkerGroup(directory))
        one = group.start(
            TASK,
            {
                "parameters": asdict(self._parameters),
                "scenario": scenario.used(),
                "path": str(database),
            },
            scenario.build or "own",
        )
        group.wait_ready()
        self._workers[scenario] = group, one
        return group, one


class DriverWorkload(Workload[DriverParameters]):
    """See the module."""

    name = "driver"
    title = "what one statement costs, in one thread"
    parameters_type = DriverParameters
    quick: ClassVar = {"operations": 5_000}
    axes: ClassVar = {
        "driver": ("stdlib", "apsw", "oxlite"),
        "journal": ("wal",),
        "pragmas": ("tuned",),
    }
    baselines: ClassVar[Sequence[Filter]] = (STDLIB, APSW)
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = ({},)
    metrics: ClassVar = METRICS
    tables: ClassVar = (
        Table(
            "Microseconds per operation: median (fastest-slowest repeat)",
            tuple(spread(metric.title, metric) for metric in METRICS),
        ),
        *(
            Table(
                f"Times faster than {driver['driver']}: median (spread of paired repeats)",
                tuple(
                    improvement(metric.title, metric, Scenario(**driver).label)
                    for metric in METRICS
                ),
            )
            for driver in (STDLIB, APSW)
        ),
    )

    def work_digest(self, parameters: DriverParameters) -> str:
        """See the base class."""
        return hashlib.sha256(repr(worker.keys(parameters)).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: DriverParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        with ExitStack() as stack:
            yield DriverSession(parameters, scratch, stack)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        return f"get {number(sample.figures['get_by_text_key_us'])} us"
