"""Whether what was made is a backup, and whether the database has everything that was written.

A backup is a database that is sound and has the accounts of one moment: all that there were at
first, and amounts that come to nothing. A way whose backups are none is a figure, and no error of
the run; the database itself must be sound, and have exactly what was acknowledged.
"""

from collections.abc import Sequence
from pathlib import Path

from oxlite import operations
from oxlite import sqlite3 as own
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import rows_of_file
from oxlite.bench.workloads.backup import work
from oxlite.bench.workloads.backup.figures import Outcome


def flaw(path: Path, rows: int, *, compressed: bool = False) -> str | None:
    """What is wrong with a backup, or ``None`` if it is one.

    Args:
        path: its file.
        rows: how many accounts there were at first.
        compressed: whether it has to be restored, beside itself, before it can be opened.
    """
    if compressed:
        restored = path.with_suffix(".restored")
        try:
            operations.restore(path, restored)
        except (operations.OperationsError, own.Error, OSError):
            return "it cannot be restored"
        path = restored
    try:
        [(count, total, _)] = rows_of_file(path, work.SUMS)
    except VerificationError as error:
        return str(error).partition(":")[0]
    if count < rows:
        return "rows are missing"
    return "it is not of one moment" if total else None


def check(path: Path, found: Sequence[Outcome], rows: int) -> None:
    """Check the database once nobody writes any more.

    Args:
        path: its file.
        found: what each of the writers did.
        rows: how many accounts there were at first.

    Raises:
        VerificationError: it is damaged, or what is in it is not what was written.
    """
    [(count, total, moment)] = rows_of_file(path, work.SUMS)
    if count < rows or total:
        raise VerificationError(f"{count} accounts of {rows} come to {total}")
    written = sum(one.moment for one in found)
    if moment != written and not any(one.has_unknown() for one in found):
        raise VerificationError("the accounts are not what the acknowledged transactions make")
