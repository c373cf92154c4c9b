"""What a report of ``web`` shows: rates and latencies, the published failures, the claims."""

from oxlite.bench.layout import Column, Table, against, maximum, median, percentile, spread
from oxlite.bench.workloads.web.claims import ClaimsTable, PublishedTable
from oxlite.bench.workloads.web.figures import FAILED_PERCENT, RATE, REQUEST
from oxlite.bench.workloads.web.ladder import PUBLISHED

PEER = {"driver": "stdlib", "build": "own", "busy": "backoff", "settings": PUBLISHED}
SHOWN = {50.0: "p50", 95.0: "p95", 99.0: "p99", 99.9: "p99.9", 99.99: "p99.99"}


def _percentiles() -> tuple[Column, ...]:
    return tuple(percentile(heading, REQUEST, percent) for percent, heading in SHOWN.items())


TABLES = (
    Table(
        "Successful requests, and their latencies in ms",
        (
            spread("requests/s", RATE),
            against("than immediate", RATE, **PEER),
            median("failed %", FAILED_PERCENT),
            *_percentiles(),
            maximum("max", REQUEST),
        ),
        grouped=("mix", "clients"),
    ),
    PublishedTable(),
    ClaimsTable(),
)
