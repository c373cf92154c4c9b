"""Whether the final table is one that the work can have left.

Processes race, so there is no single right table; but each process' writes
happen in its own order. Hence, for every key: if nobody wrote it, it has the
loaded value or does not exist; otherwise it has the value of some process'
*last* successful write to it. A write that failed with a lock was not made; one
that failed otherwise (a full disk, say) may or may not have been, and either is
accepted.

This holds after the fixed count, while the workers are idle. The time for
fairness then runs the streams again, each as far as it comes, so once all have
closed only the soundness of the file and its keys are checked again.
"""

from collections import defaultdict
from collections.abc import Mapping, Set

from oxlite.bench.errors import VerificationError
from oxlite.bench.workloads.kv.figures import Outcome
from oxlite.bench.workloads.kv.work import Operation


def check_table(
    table: Mapping[str, str],
    loaded: Mapping[str, str],
    streams: list[list[Operation]],
    found: list[Outcome],
) -> None:
    """Check the table after the fixed count.

    Args:
        table: it, by key.
        loaded: the rows it started with.
        streams: the work of each process.
        found: what each did of it.

    Raises:
        VerificationError: a row is wrong, missing or too many.
    """
    certain, possible = _written(streams, found)
    for key, value in table.items():
        allowed = certain.get(key, set()) | possible.get(key, set())
        if not certain.get(key) and key in loaded:
            allowed.add(loaded[key])
        if value not in allowed:
            raise VerificationError(f"the row {key!r} has a value that nobody wrote there last")
    _require_keys(table, loaded.keys() | certain.keys())


def check_after(
    table: Mapping[str, str], loaded: Mapping[str, str], streams: list[list[Operation]], rows: int
) -> None:
    """Check the table once every worker has closed it.

    Args:
        table: it, by key.
        loaded: the rows it started with.
        streams: the work, repeated for the time for fairness.
        rows: how many rows it had after the fixed count.

    Raises:
        VerificationError: it has a row too many or too few.
    """
    written = {key for stream in streams for key, value in stream if value is not None}
    _require_keys(table, loaded.keys())
    strangers = table.keys() - loaded.keys() - written
    if strangers or len(table) < rows:
        raise VerificationError(
            f"{len(table)} rows after {rows}, {len(strangers)} of them that nobody wrote"
        )


def _require_keys(table: Mapping[str, str], keys: Set[str]) -> None:
    lost = keys - table.keys()
    if lost:
        raise VerificationError(f"{len(lost)} rows are missing, one of them {min(lost)!r}")


def _written(
    streams: list[list[Operation]], found: list[Outcome]
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """By key: the last successful write of each process, and writes of unknown outcome."""
    certain: defaultdict[str, set[str]] = defaultdict(set)
    possible: defaultdict[str, set[str]] = defaultdict(set)
    for operations, outcome in zip(streams, found, strict=True):
        done, perhaps = outcome.made(operations)
        last = {key: value for key, value in done if value is not None}
        for key, written in last.items():
            certain[key].add(written)
        for key, value in perhaps:
            if value is not None:
                possible[key].add(value)
    return certain, possible
