"""What a report of ``notify`` shows: messages, idle listeners, writers, and the bars."""

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.layout import Table, against, errors, maximum, median, percentile, total
from oxlite.bench.workloads.notify.claims import CLAIMS
from oxlite.bench.workloads.notify.figures import (
    CALLED,
    DISORDERED,
    DOUBLED,
    EARLY,
    HEARD,
    LOST,
    RATE,
    RUNNING,
    WAKEUPS,
    WRITES,
)

GROUPED = ("listeners", "hertz")
KEPT = (
    "Oxlite (profile web), honker and the polled table write to a file with synchronous=NORMAL: a "
    "message outlasts a crash of the process, and the last ones may be lost with the power. "
    "PostgreSQL has its defaults, synchronous_commit=on: each message waits for the disk, and "
    "none is kept for who is not there. Redis is told to save nothing: a message is in memory "
    "alone, and whoever is not there, or too slow, never hears of it."
)
ZERO = "What is heard before the publisher's call has returned counts as 0."

TABLES = (
    Table(
        "From the commit to the listener, ms",
        (
            *(percentile(f"p{p:g}", HEARD, p) for p in (50.0, 99.0, 99.9)),
            maximum("max", HEARD),
            median("early", EARLY),
            *(percentile(f"from the call p{p:g}", CALLED, p) for p in (50.0, 99.0)),
            median("messages/s", RATE),
            total("lost", LOST),
            total("doubled", DOUBLED),
            total("out of order", DISORDERED),
            errors("errors"),
        ),
        {"load": "messages"},
        GROUPED,
        remarks=(ZERO, KEPT),
    ),
    Table(
        "Idle listeners: wake-ups and processor time while nothing is published",
        (median("wake-ups", WAKEUPS), median("processor ms", RUNNING)),
        {"load": "idle"},
    ),
    Table(
        "Transactions in a second beside listeners to another channel",
        (
            median("transactions/s", WRITES),
            against("than without listeners", WRITES, elsewhere="0"),
        ),
        {"load": "writers"},
    ),
    ClaimsTable("Notifications against their bars", CLAIMS),
)
