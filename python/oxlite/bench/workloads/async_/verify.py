"""Whether the table has the rows whose insertion was acknowledged, and no others."""

from collections.abc import Sequence
from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import rows_of_file
from oxlite.bench.workloads.async_ import work


def check_table(path: Path, counts: Sequence[int]) -> None:
    """Check the table once all tasks have ended.

    Args:
        path: the database.
        counts: how many rows each task has inserted.

    Raises:
        VerificationError: the file is damaged, or there are other rows.
    """
    found = {task: tuple(rest) for task, *rest in rows_of_file(path, work.INSERTED)}
    found.pop(-1, None)
    expected = {task: (count, 0, count - 1) for task, count in enumerate(counts) if count}
    if found != expected:
        there, acknowledged = (sum(row[0] for row in rows.values()) for rows in (found, expected))
        raise VerificationError(
            f"the table has {there:,} rows, and {acknowledged:,} inserts were acknowledged, "
            "or they are other ones"
        )
