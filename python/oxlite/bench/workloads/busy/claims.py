"""What was published of short transactions behind long ones."""

from oxlite.bench.claims import Published

_SOURCE = "waiting for SQLite's write lock in Ruby, 8 processes of 4 threads"
_ROWS = {"busy": "fair", "processes": "8", "threads": "4"}
_AGAINST = {"busy": "backoff"}

PUBLISHED = (
    Published(
        "the slowest child, nobody long: 1 ms against the growing back-off",
        "27 ms against 107 ms", 107 / 27, _SOURCE, "slowest_child_ms",
        {**_ROWS, "long": "0"}, _AGAINST,
    ),
    Published(
        "the slowest child behind one long transaction: 1 ms against the back-off",
        "902 ms against 1,424 ms", 1_424 / 902, _SOURCE, "slowest_child_ms",
        {**_ROWS, "long": "1"}, _AGAINST,
    ),
)  # fmt: skip
