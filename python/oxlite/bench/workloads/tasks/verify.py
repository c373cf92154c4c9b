"""Whether Oxlite's file says of the tasks what the ledger does."""

from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import rows_of_file

COUNTS = "SELECT status, count(*) FROM oxlite_task GROUP BY status"


def check_statuses(path: Path, successful: int, *, ready: int = 0, others: int = 0) -> None:
    """See that so many tasks have been successful, and that no other one is there.

    Args:
        path: the file, which nobody has open.
        successful: how many have ended at least.
        ready: how many were left when the workers ended.
        others: how many of those may have ended too.

    Raises:
        VerificationError: that is not so, or the file is damaged.
    """
    found = dict(rows_of_file(path, COUNTS))
    ended = found.pop("successful", 0)
    left = found.pop("ready", 0)
    if found or ended + left != successful + ready or not 0 <= ended - successful <= others:
        said = ", ".join(f"{count:,} {status}" for status, count in found.items())
        raise VerificationError(
            f"{successful:,} tasks have run; the file has {ended:,} that were successful, "
            f"{left:,} that are ready, and {said or 'no other'}"
        )
