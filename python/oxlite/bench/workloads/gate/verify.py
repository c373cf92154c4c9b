"""Whether the table counts exactly the writes that were acknowledged.

For every key: at least as many as were acknowledged, and no more than that and
those whose outcome is not known. A write that failed with a lock was not made;
one that failed otherwise (a full disk, say) may or may not have been. A writer that
was killed may have made one write more than it could acknowledge; what it wrote
in a transaction that it never committed is not there.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import rows_of_file
from oxlite.bench.workloads.gate import work
from oxlite.bench.workloads.gate.figures import Outcome


def sound_counters(path: Path) -> dict[int, int]:
    """The counters by key, of a file that is not damaged.

    Raises:
        VerificationError: it is.
    """
    [(seen,)] = rows_of_file(path, work.SEEN_BALLAST)
    if seen:
        raise VerificationError(f"{seen} rows can be seen that were never committed")
    return dict(rows_of_file(path, work.COUNTED))


def check_table(
    path: Path, keys: Sequence[Sequence[int]], found: Sequence[Outcome], rows: int
) -> None:
    """Check the table once nobody writes any more.

    Args:
        path: the database.
        keys: of each process, in order.
        found: what each did.
        rows: how many keys the table has.

    Raises:
        VerificationError: the file is damaged, or a counter is wrong.
    """
    certain: Counter[int] = Counter()
    unknown: Counter[int] = Counter()
    for own, outcome in zip(keys, found, strict=True):
        done, perhaps = outcome.made(itertools.cycle(own))
        certain.update(done)
        unknown.update(perhaps)
    counters = sound_counters(path)
    if counters.keys() != set(range(rows)):
        raise VerificationError(f"the table has {len(counters)} rows of {rows}")
    for key, count in counters.items():
        if not certain[key] <= count <= certain[key] + unknown[key]:
            raise VerificationError(
                f"the counter of key {key} is {count}, and {certain[key]} writes of it were "
                f"acknowledged"
            )


def check_total(path: Path, acknowledged: int, unknown: int) -> None:
    """Check the table after kills.

    Args:
        path: the database.
        acknowledged: the writes that were, by all.
        unknown: the kills at which one more may have been made.

    Raises:
        VerificationError: the file is damaged, or its counters are wrong.
    """
    total = sum(sound_counters(path).values())
    if not acknowledged <= total <= acknowledged + unknown:
        raise VerificationError(
            f"the counters come to {total}, and {acknowledged} writes were acknowledged, "
            f"{unknown} more possible"
        )
