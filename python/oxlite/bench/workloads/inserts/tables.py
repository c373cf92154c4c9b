"""What a report of ``inserts`` shows: the ladder, then threads at NORMAL and at FULL, the claims.

Published figures stand beside those of this machine: they are of another machine and in
another language, so only the steps between them say something.
"""

from collections.abc import Sequence
from dataclasses import replace

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import (
    ABSENT,
    Column,
    Drawing,
    Table,
    against,
    errors,
    extent,
    improvement,
    largest,
    median,
    percentile,
)
from oxlite.bench.workloads.inserts.claims import CLAIMS, PEER_BUSY, SYNCHRONOUS
from oxlite.bench.workloads.inserts.figures import FEWEST, KIND, LONGEST, MOST, RATE
from oxlite.bench.workloads.inserts.steps import LADDER, below

PUBLISHED = (
    "published, on other machines and in Rust: as in the table, and of the steps from temp_store "
    "to prepared that they have no large effect; another replication 15,329 inserts/s (sqlx, WAL, "
    "NORMAL, 3 at once, 100,000 inserts)"
)
GROUPED = ("threads",)


def _added(_: Result, row: Row) -> str:
    return LADDER[row.scenario["step"]].added


def _published(_: Result, row: Row) -> str:
    return LADDER[row.scenario["step"]].published or ABSENT


def _than_below(result: Result, row: Row) -> str:
    name = below(row.scenario["step"])
    if name is None:
        return ABSENT
    other = row.scenario.but(step=name)
    return improvement("", RATE, other.label).text(result, row)


class LadderTable(Table):
    """The ladder, and below it what was published."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        return [replace(one, remarks=[PUBLISHED]) for one in super().drawings(result)]


def _of_threads(pragmas: str) -> tuple[Table, Table]:
    """The two tables of one value of the axis ``pragmas``."""
    title, only = f"Threads, WAL, synchronous={SYNCHRONOUS[pragmas]}", {"pragmas": pragmas}
    return (
        Table(
            f"{title}: inserts/s; the ratios are to one mutex",
            (
                median("inserts/s", RATE),
                against("of the driver", RATE, style="mutex", busy=PEER_BUSY),
                against(
                    "of stdlib", RATE, driver="stdlib", build="own", style="mutex", busy=PEER_BUSY
                ),
                extent("thread inserts/s", FEWEST, MOST),
                errors("errors"),
            ),
            only,
            GROUPED,
            uses=("style",),
        ),
        Table(
            f"{title}: times of one insert, ms",
            (
                *(percentile(f"p{each:g}", KIND, each) for each in (50.0, 95.0, 99.0, 99.9)),
                median("longest", LONGEST),
                largest("max", LONGEST),
            ),
            only,
            GROUPED,
            uses=("style",),
        ),
    )


_OF_THE_SERVER = Table(
    "Threads, PostgreSQL's own defaults, whose commits reach the disk; times of one insert in ms",
    (
        median("inserts/s", RATE),
        against(
            "of Oxlite's group commit at FULL", RATE, driver="oxlite", build="tuned",
            pragmas="durable", busy="gate", style="group",
        ),
        extent("thread inserts/s", FEWEST, MOST),
        percentile("p50", KIND, 50.0),
        percentile("p99", KIND, 99.0),
        largest("max", LONGEST),
        errors("errors"),
    ),
    {"driver": "postgresql"},
    GROUPED,
)  # fmt: skip

TABLES = (
    LadderTable(
        "The ladder, one thread, each step on top of those above it; times of one insert in ms",
        (
            Column("added", _added),
            median("inserts/s", RATE),
            Column("than the step before", _than_below),
            Column("published", _published),
            percentile("p50", KIND, 50.0),
            percentile("p99", KIND, 99.0),
            largest("max", LONGEST),
        ),
        grouped=("driver",),
        uses=("step",),
    ),
    *_of_threads("tuned"),
    *_of_threads("durable"),
    _OF_THE_SERVER,
    ClaimsTable("Oxlite's group commit against its bars, times better", CLAIMS),
)
