"""Whether the final table is that of the work that was acknowledged.

Every insert that was acknowledged is there, nothing else is, and each row is the one that the
seed gives. An insert that failed with a lock was not made; one that failed otherwise (a
full disk, say) may or may not have been, and either is accepted.
"""

from collections.abc import Sequence

from oxlite.bench.errors import VerificationError
from oxlite.bench.workloads.inserts import work
from oxlite.bench.workloads.inserts.figures import Outcome


def acknowledged(
    shares: Sequence[Sequence[work.Row]], found: Sequence[Outcome]
) -> tuple[list[work.Row], list[work.Row]]:
    """The rows that must be in the table, and those that may be.

    Args:
        shares: the rows of each thread, in order.
        found: what each did of them.
    """
    certain: list[work.Row] = []
    possible: list[work.Row] = []
    for own, outcome in zip(shares, found, strict=True):
        done, perhaps = outcome.made(own)
        certain += done
        possible += perhaps
    return certain, possible


def check_table(
    table: Sequence[work.Row], certain: Sequence[work.Row], possible: Sequence[work.Row]
) -> str:
    """Check the table once nobody inserts any more.

    Args:
        table: its rows, by their identifiers.
        certain: the rows that must be in it, and
        possible: those that may be.

    Returns:
        its digest.

    Raises:
        VerificationError: the table is another one.
    """
    there = {row[0] for row in table} if possible else set()
    expected = sorted([*certain, *(row for row in possible if row[0] in there)])
    if len(table) != len(expected):
        raise VerificationError(
            f"the table has {len(table):,} rows, and {len(expected):,} inserts were acknowledged"
        )
    digest = work.digest(table)
    if digest != work.digest(expected):
        raise VerificationError("the rows of the table are not those that were inserted")
    return digest
