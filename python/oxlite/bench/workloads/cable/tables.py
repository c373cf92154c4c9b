"""What a report of ``cable`` shows: messages, idle members, and the bars."""

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.layout import Table, against, errors, maximum, median, percentile, total
from oxlite.bench.workloads.cable.claims import CLAIMS, PEERS
from oxlite.bench.workloads.cable.figures import (
    DELIVERED,
    DISORDERED,
    DOUBLED,
    LOST,
    P50,
    RATE,
    RUNNING,
    WAKEUPS,
)

[CORE, _] = PEERS.values()
KEPT = (
    "Oxlite has its own file and profile cache, channels-lite WAL and synchronous=NORMAL: what "
    "waits outlasts a crash of the process. Redis is told to save nothing; its pub/sub, and the "
    "layer in memory, keep nothing for who is not there. In memory the server has one process."
)

TABLES = (
    Table(
        "From the sender's WebSocket to a client's, ms",
        (
            *(percentile(f"p{p:g}", DELIVERED, p) for p in (50.0, 99.0, 99.9)),
            maximum("max", DELIVERED),
            against("p50 than channels-redis' core", P50, **CORE),
            median("deliveries/s", RATE),
            total("lost", LOST),
            total("doubled", DOUBLED),
            total("out of order", DISORDERED),
            errors("errors"),
        ),
        {"load": "messages"},
        ("clients", "hertz"),
        remarks=(KEPT,),
    ),
    Table(
        "Idle members: wake-ups and processor time while nothing is sent",
        (median("wake-ups", WAKEUPS), median("processor ms", RUNNING)),
        {"load": "idle"},
    ),
    ClaimsTable("The cable against its bars", CLAIMS),
)
