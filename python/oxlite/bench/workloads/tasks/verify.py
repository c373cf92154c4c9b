"""Whether the table has the rows whose insertion was acknowledged, and no others."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.workloads.tasks import work


def check_table(path: Path, counts: Sequence[int]) -> None:
    """Check the table once all tasks have ended.

    Args:
        path: the database.
        counts: how many rows each task has inserted.

    Raises:
        VerificationError: the file is damaged, or there are other rows.
    """
    with closing(sqlite3.connect(path)) as connection:
        integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if integrity != "ok":
            raise VerificationError(f"the database is damaged: {integrity}")
        found = {row[0]: row[1:] for row in connection.execute(work.INSERTED)}
    found.pop(-1, None)
    expected = {task: (count, 0, count - 1) for task, count in enumerate(counts) if count}
    if found != expected:
        there, acknowledged = (sum(row[0] for row in rows.values()) for rows in (found, expected))
        raise VerificationError(
            f"the table has {there:,} rows, and {acknowledged:,} inserts were acknowledged, "
            "or they are other ones"
        )
