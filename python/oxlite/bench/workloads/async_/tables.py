"""What a report of ``async`` shows: reads, inserts, and the bars."""

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.layout import Table, against, median, percentile
from oxlite.bench.workloads.async_.claims import CLAIMS
from oxlite.bench.workloads.async_.figures import CALL, DELAY, DELAY_P95, RATE

TITLES = {"read": "A row by its key", "insert": "One row, durable when it is answered"}
PEER = {"driver": "aiosqlite", "build": "own"}


def _of(operation: str) -> Table:
    return Table(
        f"{TITLES[operation]}: calls/s, times of one call and delays of the event loop in ms",
        (
            median("calls/s", RATE),
            against("than by aiosqlite's cursor", RATE, **PEER, call="cursor"),
            against("than by its fetchall", RATE, **PEER, call="fetchall"),
            percentile("p50", CALL, 50.0),
            percentile("p99", CALL, 99.0),
            percentile("loop p50", DELAY, 50.0),
            median("loop p95", DELAY_P95),
        ),
        {"operation": operation},
        ("tasks",),
    )


TABLES = (
    _of("read"),
    _of("insert"),
    ClaimsTable("aio.Database against aiosqlite, times better", CLAIMS),
)
