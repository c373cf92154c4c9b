"""Whether what was written beside listeners is there."""

from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import rows_of_file
from oxlite.bench.workloads.notify import work


def check_written(path: Path, written: int) -> None:
    """See that the counter counts what was written, and one more to warm up.

    Raises:
        VerificationError: it does not, or the file is damaged.
    """
    [(found,)] = rows_of_file(path, work.COUNTED)
    if found != written + 1:
        raise VerificationError(f"the counter is {found}, and {written + 1} were written")
