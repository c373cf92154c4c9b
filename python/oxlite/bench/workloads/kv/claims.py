"""What was published of the same processes, with a rollback journal and with WAL."""

from oxlite.bench.claims import Published

_SOURCE = "25 processes in Python, 5 % upserts: rollback journal against WAL"
_WAL = {"journal": "wal", "pragmas": "stock", "busy": "backoff"}
_ROLLBACK = {"journal": "rollback"}

PUBLISHED = (
    Published(
        "reads: WAL against a rollback journal", "70,000 to 83,000 against 5,600 reads/s",
        76_500 / 5_600, _SOURCE, "reads_per_second", _WAL, _ROLLBACK,
    ),
    Published(
        "writes: WAL against a rollback journal", "3,600 to 4,300 against 291 writes/s",
        3_950 / 291, _SOURCE, "writes_per_second", _WAL, _ROLLBACK,
    ),
    Published(
        "99th percentile of a read: WAL against a rollback journal", "0.5 ms against 20 ms",
        40.0, _SOURCE, ("read", 99.0), _WAL, _ROLLBACK,
    ),
)  # fmt: skip
