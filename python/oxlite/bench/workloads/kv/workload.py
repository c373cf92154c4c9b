"""The ``kv`` workload: rollback journal against write-ahead log, and who waits.

25 processes, 5 % upserts and 95 % reads by key, autocommitted, each process on
its own connection; every scenario from the same rows. PostgreSQL stands beside. A
measurement has two turns: a fixed count, for wall time, rates and latencies,
and a fixed time, for fairness alone. See the modules beside this one for the
work, its checks and its figures.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import ClassVar

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import Databases
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.layout import (
    Column,
    Table,
    against,
    errors,
    extent,
    improvement,
    maximum,
    median,
    number,
    percentile,
    percentile_of,
    percentile_ratio,
)
from oxlite.bench.scenarios.cells import Grid
from oxlite.bench.scenarios.scenario import POLICIES, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.kv import figures, verify, work
from oxlite.bench.workloads.kv.work import KvParameters

TASK = "oxlite.bench.workloads.kv.worker:KvTask"
HUNG_BASE_SECONDS = 120.0
HUNG_SECONDS_PER_STATEMENT = 0.01

WALL = Metric("wall_seconds", "wall time", "lower", of_all_work=True)
OPERATIONS = Metric("operations_per_second", "operations per second", "higher", of_all_work=True)
READS = Metric("reads_per_second", "reads per second", "higher", of_all_work=True)
WRITES = Metric("writes_per_second", "writes per second", "higher", of_all_work=True)
FASTEST = Metric("fastest_process_seconds", "fastest process", "lower", of_all_work=True)
SLOWEST = Metric("slowest_process_seconds", "slowest process", "lower", of_all_work=True)
JAIN = Metric("jain", "Jain's index", "higher")
WRITE_P99, WRITE_P999 = (
    Metric(name, f"p{percent:g} of a write", "lower")
    for percent, name in figures.WRITE_TAIL.items()
)

STOCK = {"driver": "stdlib", "journal": "rollback", "pragmas": "stock", "busy": "backoff"}
COMPARED = ("stdlib", "oxlite")
STOCK_LABEL = Scenario(**STOCK).label


def _latency_columns(kind: str) -> tuple[Column, ...]:
    return (
        percentile(f"{kind} p50", kind, 50.0),
        percentile("p95", kind, 95.0),
        percentile("p99", kind, 99.0),
        percentile("p99.9", kind, 99.9),
        maximum("max", kind),
    )


class KvSession:
    """The databases to start from, and the streams."""

    def __init__(self, parameters: KvParameters, databases: Databases) -> None:
        self._parameters = parameters
        self._databases = databases
        self._loaded = work.loaded(parameters)
        self._streams = [work.stream(parameters, n) for n in range(parameters.processes)]
        self._digests = [work.stream_digest(stream) for stream in self._streams]
        self._fsync_wanted = True

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        parameters = self._parameters
        database = self._databases.start(scenario, scenario.journal or "rollback")
        environment = None
        with WorkerGroup(database.directory) as group:
            for process in range(parameters.processes):
                arguments = {
                    "parameters": asdict(parameters),
                    "scenario": scenario.used(),
                    "process": process,
                    "path": str(database.path),
                }
                group.start(TASK, arguments, scenario.build or "own")
            group.wait_ready()
            if [worker.facts["digest"] for worker in group.workers] != self._digests:
                raise VerificationError("the workers' list of work is not the one asked for")
            statements = parameters.processes * parameters.queries
            start_ns = group.release(HUNG_BASE_SECONDS + HUNG_SECONDS_PER_STATEMENT * statements)
            found = [
                figures.unpack(facts, payload, parameters.queries)
                for facts, payload in group.collect()
            ]
            table = dict(database.rows(work.TABLE))
            verify.check_table(table, self._loaded, self._streams, found)
            rates = self._rates(group)
            if with_environment:
                environment = group.environment(
                    group.workers[0], scenario.driver, fsync=self._fsync_wanted
                )
                self._fsync_wanted = False
            versions = group.workers[0].facts["versions"]
            group.stop()
        after = dict(database.rows(work.TABLE))
        verify.check_after(after, self._loaded, self._streams, len(table))
        sample = figures.sample(self._streams, found, start_ns, rates)
        sample.detail |= {"rows": len(table), "versions": versions}
        sample.environment = environment
        return sample

    def _rates(self, group: WorkerGroup) -> list[int] | None:
        """What each process does in the fixed time for fairness, if it is wanted."""
        seconds = self._parameters.fairness_seconds
        if not seconds:
            return None
        group.release(HUNG_BASE_SECONDS + seconds, {"seconds": seconds})
        return [facts["done"] for facts, _ in group.collect()]


class KvWorkload(Workload[KvParameters]):
    """See the module."""

    name = "kv"
    title = "key-value reads and upserts from many processes"
    parameters_type = KvParameters
    quick: ClassVar = {"queries": 500, "fairness_seconds": 0.5}
    axes: ClassVar = {
        "driver": ("stdlib", "oxlite"),
        "journal": ("rollback", "wal"),
        "pragmas": ("stock", "tuned"),
        "busy": POLICIES,
    }
    baselines: ClassVar[Sequence[Filter]] = (STOCK,)
    # All but the tuned pragmas with a rollback journal: seven repeats of everything take about
    # 12 minutes on two idle cores, of this about 8. Those rows are slow and say little, because the
    # pragmas change little where a journal is made and deleted at each commit.
    # Of apsw what a user of it would choose.
    selection: ClassVar[Sequence[Filter]] = (
        *({"driver": name, "journal": "rollback", "pragmas": "stock"} for name in COMPARED),
        *({"driver": name, "journal": "wal"} for name in COMPARED),
        {"driver": "apsw", "journal": "wal", "pragmas": "tuned", "busy": "backoff"},
        {"driver": "postgresql"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = (
        STOCK | {"journal": "wal"},
        STOCK | {"journal": "wal", "pragmas": "tuned"},
        STOCK | {"driver": "oxlite", "journal": "wal", "pragmas": "tuned"},
        STOCK | {"driver": "oxlite", "journal": "wal", "pragmas": "tuned", "busy": "fair"},
        STOCK | {"driver": "oxlite", "journal": "wal", "pragmas": "tuned", "busy": "gate"},
        {"driver": "postgresql"},
    )
    metrics: ClassVar = (
        WALL, OPERATIONS, READS, WRITES, FASTEST, SLOWEST, JAIN, WRITE_P99, WRITE_P999,
    )  # fmt: skip
    tables: ClassVar = (
        Table(
            f"Throughput and fairness; ratios are to {STOCK_LABEL}",
            (
                median("wall s", WALL),
                median("reads/s", READS),
                median("writes/s", WRITES),
                errors("errors"),
                extent("process s", FASTEST, SLOWEST),
                median("Jain", JAIN),
                improvement("times faster", WALL, STOCK_LABEL),
            ),
        ),
        Table("Latency, ms", (*_latency_columns("read"), *_latency_columns("write"))),
        Table(
            "The gate against fair: the longest waits of writes",
            (
                percentile("p99.9, ms", "write", 99.9),
                percentile_of("fair's", "write", 99.9, busy="fair"),
                percentile_ratio("gate / fair", "write", 99.9, busy="fair"),
                against("times shorter in a repeat", WRITE_P999, busy="fair"),
                against("the same of p99", WRITE_P99, busy="fair"),
                against("times faster", WALL, busy="fair"),
            ),
            {"busy": "gate"},
        ),
    )

    def grids(self, parameters: KvParameters) -> Sequence[Grid]:
        """See the base class: SQLite's settings are no axes of PostgreSQL's."""
        apsw = {**self.axes, "driver": ("apsw",), "busy": ("none", "backoff")}
        return self.axes, apsw, {"driver": ("postgresql",)}

    def work_digest(self, parameters: KvParameters) -> str:
        """See the base class."""
        return work.work_digest(
            work.stream_digest(work.stream(parameters, process))
            for process in range(parameters.processes)
        )

    @contextmanager
    def session(
        self, parameters: KvParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""

        def fill(connection: Connection, _: Driver) -> None:
            work.fill(connection, parameters)

        with PostgresServer(scratch) as server:
            yield KvSession(parameters, Databases(scratch, "kv", fill, server))

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        failed = sum(sample.errors.values())
        text = f"{number(sample.figures['wall_seconds'])} s"
        return f"{text}, {failed:,} errors" if failed else text
