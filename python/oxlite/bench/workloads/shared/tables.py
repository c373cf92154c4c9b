"""What a report of ``shared`` shows: the rates, with the bars below them, and the waits."""

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import (
    ABSENT,
    Column,
    Table,
    against,
    errors,
    extent,
    median,
    total,
)
from oxlite.bench.workloads.gate.figures import FEWEST, JAIN, LONGEST, MOST, WRITES
from oxlite.bench.workloads.gate.tables import KILLED, WAITS, times_to_a_commit
from oxlite.bench.workloads.shared.claims import CLAIMS
from oxlite.bench.workloads.shared.kills import KINDS, LEADERS_LOST, SYNCING

GROUPED = ("processes",)
CALM = {"disturbance": "calm"}


def _in_a_sync(_: Result, row: Row) -> str:
    found = row.latencies.get(SYNCING)
    return ABSENT if found is None else f"{found.count:,}"


TABLES = (
    Table(
        "Durable writes and fairness; the ratios are of writes/s",
        (
            median("writes/s", WRITES),
            against("than the gate alone", WRITES, commit="each", busy="gate"),
            against("than backoff", WRITES, commit="each", busy="backoff"),
            extent("process writes/s", FEWEST, MOST),
            median("Jain", JAIN),
            errors("errors"),
        ),
        CALM,
        GROUPED,
    ),
    Table(
        "Wait of one durable write, ms; the ratio is of the longest, above 1 is shorter",
        (
            *WAITS,
            against("than backoff", LONGEST, commit="each", busy="backoff"),
        ),
        CALM,
        GROUPED,
    ),
    Table(
        KILLED,
        (
            *times_to_a_commit(KINDS),
            Column("met in a sync", _in_a_sync),
            total("leaders lost", LEADERS_LOST),
            errors("errors"),
        ),
        {"disturbance": "kills"},
        GROUPED,
    ),
    ClaimsTable("Shared syncs against their bars", CLAIMS),
)
