"""What group commit has to be worth, and what was published of the ladder of settings.

Rows of one driver are compared, in which all but the style is equal: ``mutex`` is one connection
behind one lock, and ``own`` with one caller is a plain commit. Both wait for locks as SQLite does,
so that nothing of the queue for writers is part of what they cost.
"""

from oxlite.bench.claims import Claim, Published
from oxlite.bench.harness.model import Metric
from oxlite.bench.workloads.inserts.figures import P99, RATE

PEER_BUSY = "backoff"
WORDS = {"mutex": "one mutex", "own": "a plain commit"}
SYNCHRONOUS = {"tuned": "NORMAL", "durable": "FULL"}


def _claim(pragmas: str, threads: str, peer: str, limit: float, metric: Metric = RATE) -> Claim:
    callers = "1 caller" if threads == "1" else f"{threads} callers"
    what = "inserts/s" if metric is RATE else "shorter p99"
    return Claim(
        f"{SYNCHRONOUS[pragmas]}, {callers}: {what} than {WORDS[peer]}",
        metric,
        limit,
        {"driver": "oxlite", "busy": "gate", "style": "group", "pragmas": pragmas,
         "threads": threads, "build": "tuned"},
        {"busy": PEER_BUSY, "style": peer},
    )  # fmt: skip


CLAIMS = (
    _claim("durable", "1", "own", 0.97),
    _claim("durable", "16", "mutex", 5.0),
    _claim("durable", "16", "mutex", 1.0, P99),
    _claim("durable", "64", "mutex", 7.0),
    _claim("durable", "64", "mutex", 1.0, P99),
    _claim("tuned", "1", "own", 0.97),
    *(_claim("tuned", threads, "mutex", 1.0) for threads in ("1", "4", "16", "64")),
)

_SOURCE = "inserts with the settings added one by one, in Rust"

PUBLISHED = (
    Published(
        "WAL against SQLite's defaults", "~2,500 against 756 inserts/s", 2_500 / 756, _SOURCE,
        RATE.name, {"step": "wal"}, {"step": "defaults"},
    ),
    Published(
        "synchronous=NORMAL against FULL, in WAL mode", "~25,000 against ~2,500 inserts/s", 10.0,
        _SOURCE, RATE.name, {"step": "normal"}, {"step": "wal"},
    ),
    *(
        Published(
            f"{words} against without", "no large effect", None, _SOURCE,
            RATE.name, {"step": step}, {"step": below},
        )
        for step, below, words in (
            ("temp_store", "normal", "temp_store=MEMORY"),
            ("exclusive", "temp_store", "locking_mode=EXCLUSIVE"),
            ("cache", "exclusive", "a cache of 1 GB"),
            ("prepared", "cache", "prepared statements"),
        )
    ),
)  # fmt: skip
