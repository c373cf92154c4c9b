"""What a report of ``gate`` shows: two tables of writers, one with outsiders, one of kills."""

from collections.abc import Sequence

from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import (
    ABSENT,
    Column,
    Table,
    against,
    errors,
    extent,
    largest,
    maximum,
    median,
    percentile,
)
from oxlite.bench.workloads.gate.figures import (
    FEWEST,
    JAIN,
    LONGEST,
    MOST,
    OUTSIDERS,
    OUTSIDERS_LONGEST,
    OUTSIDERS_WRITES,
    WRITES,
)
from oxlite.bench.workloads.gate.victim import KINDS

GROUPED = ("processes", "pragmas")
WAITS = (
    *(percentile(f"p{percent:g}", "write", percent) for percent in (50.0, 99.0, 99.9)),
    median("longest", LONGEST),
    largest("maximum", LONGEST),
)
KILLED = "Writers are killed: ms until another commits, by what was killed"


def _errors_of(heading: str, *, outsiders: bool) -> Column:
    """How many writes of ours, or of the outsiders, failed in all repeats."""

    def text(_: Result, row: Row) -> str:
        found = row.errors().items()
        count = sum(n for name, n in found if name.startswith(OUTSIDERS) == outsiders)
        return ABSENT if row.failure is not None else f"{count:,}"

    return Column(heading, text)


def _kills(_: Result, row: Row) -> str:
    counts = [found.count for found in row.latencies.values()]
    return f"{sum(counts):,}" if counts else ABSENT


def times_to_a_commit(kinds: Sequence[str]) -> tuple[Column, ...]:
    """How many were killed, and how long it took after each kind of kill."""
    return (
        Column("kills", _kills),
        *(
            column
            for kind in kinds
            for column in (
                percentile(f"{kind} p50", kind, 50.0),
                percentile("p99", kind, 99.0),
                maximum("max", kind),
            )
        ),
    )


TABLES = (
    Table(
        "Writes and fairness; the ratios are of writes/s",
        (
            median("writes/s", WRITES),
            against("than backoff", WRITES, busy="backoff"),
            against("than fair", WRITES, busy="fair"),
            extent("process writes/s", FEWEST, MOST),
            median("Jain", JAIN),
            errors("errors"),
        ),
        {"disturbance": "calm"},
        GROUPED,
    ),
    Table(
        "Wait of one write, ms; the ratios are of the longest, above 1 is shorter",
        (
            *WAITS,
            against("than backoff", LONGEST, busy="backoff"),
            against("than fair", LONGEST, busy="fair"),
        ),
        {"disturbance": "calm"},
        GROUPED,
    ),
    Table(
        "Half of the processes are outsiders: the standard library with a timeout; waits in ms",
        (
            median("writes/s", WRITES),
            percentile("p99", "write", 99.0),
            largest("maximum", LONGEST),
            median("Jain", JAIN),
            _errors_of("errors", outsiders=False),
            median("outsiders' writes/s", OUTSIDERS_WRITES),
            percentile("p99", "outsiders' write", 99.0),
            largest("maximum", OUTSIDERS_LONGEST),
            _errors_of("errors", outsiders=True),
        ),
        {"disturbance": "outsiders"},
        GROUPED,
    ),
    Table(
        KILLED,
        (*times_to_a_commit(KINDS), errors("errors")),
        {"disturbance": "kills"},
        GROUPED,
    ),
)
