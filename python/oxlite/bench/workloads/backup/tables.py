"""What a report of ``backup`` shows: the writers, the backups, and the bars."""

from collections import Counter

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import (
    ABSENT,
    Column,
    Table,
    against,
    errors,
    largest,
    median,
    percentile,
    spread,
    total,
)
from oxlite.bench.workloads.backup.claims import CLAIMS
from oxlite.bench.workloads.backup.figures import (
    BEGUN,
    COMMIT,
    COMMITS,
    LONGEST,
    P99,
    SECONDS,
    SIZE,
    WAL,
    WHOLE,
)
from oxlite.bench.workloads.backup.ways import NONE

CHECKED = (
    "Oxlite's time has the integrity_check of the copy, its rows counted and its SHA-256 in it; "
    "the others look at nothing. The shell's has the start of two programs in it, and begins again "
    "when others have committed. All but cp wait until it is on the disk."
)
NO_BACKUP = "cp is no backup: the WAL is not in it, and pages of several commits are mixed."


def _wrong(_: Result, row: Row) -> str:
    """What was wrong with backups, and how often."""
    found: Counter[str] = Counter()
    for sample in row.samples:
        found.update(sample.detail.get("wrong", {}))
    said = [f"{count:,} \N{MULTIPLICATION SIGN} {what}" for what, count in found.most_common()]
    return ABSENT if row.failure is not None else "; ".join(said) or ABSENT


TABLES = (
    Table(
        "Those who write while a backup is made; the ratio is of commits/s",
        (
            median("commits/s", COMMITS),
            against("times without one", COMMITS, way=NONE),
            percentile("p50 ms", COMMIT, 50.0),
            median("p99 ms", P99),
            largest("longest ms", LONGEST),
            errors("errors"),
        ),
    ),
    Table(
        "The backup",
        (
            spread("seconds", SECONDS),
            median("MiB", SIZE),
            median("WAL, MiB", WAL),
            total("begun", BEGUN),
            total("whole", WHOLE),
            Column("what is wrong", _wrong),
        ),
        remarks=(CHECKED, NO_BACKUP),
    ),
    ClaimsTable("Backups against their bars", CLAIMS),
)
