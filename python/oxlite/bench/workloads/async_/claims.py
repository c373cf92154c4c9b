"""What ``aio.Database`` has to be worth against aiosqlite, as many times better."""

from oxlite.bench.claims import Claim
from oxlite.bench.harness.model import Metric
from oxlite.bench.workloads.async_.figures import DELAY_P95, P99, RATE

WORDS = {"cursor": "a cursor", "fetchall": "execute_fetchall"}
WHAT = {RATE: "calls/s", P99: "shorter p99", DELAY_P95: "shorter delay of the loop, p95"}


def _claim(operation: str, tasks: str, call: str, limit: float, metric: Metric = RATE) -> Claim:
    counted = "1 task" if tasks == "1" else f"{tasks} tasks"
    return Claim(
        f"{operation}, {counted}: {WHAT[metric]} than by {WORDS[call]}",
        metric,
        limit,
        {"driver": "oxlite", "call": "database", "operation": operation, "tasks": tasks},
        {"driver": "aiosqlite", "call": call},
    )


CLAIMS = (
    _claim("read", "1", "cursor", 4.0),
    _claim("read", "16", "cursor", 12.0),
    _claim("read", "64", "cursor", 15.0),
    _claim("read", "1", "fetchall", 1.5),
    _claim("read", "16", "fetchall", 5.0),
    _claim("read", "64", "fetchall", 7.0),
    _claim("insert", "1", "cursor", 1.0),
    _claim("insert", "16", "cursor", 7.0),
    _claim("insert", "64", "cursor", 20.0),
    *(
        _claim(operation, tasks, "cursor", 1.0, P99)
        for operation in ("read", "insert")
        for tasks in ("1", "16", "64")
    ),
    *(_claim("read", tasks, "fetchall", 1.0, P99) for tasks in ("1", "16", "64")),
    *(_claim("read", "64", call, 1.0, DELAY_P95) for call in WORDS),
)
