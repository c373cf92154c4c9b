"""Whether the final table is one that the work can have left.

Processes race, so there is no single right table; but each process' writes
happen in its own order. Hence, for every key: if nobody wrote it, it has the
loaded value or does not exist; otherwise it has the value of some process'
*last* successful write to it. A write that failed with a lock was not made; one
that failed otherwise (a full disk, say) may or may not have been, and either is
accepted.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.workloads.kv.figures import Outcome
from oxlite.bench.workloads.kv.work import Operation


def check_table(
    path: Path,
    loaded: Mapping[str, str],
    streams: list[list[Operation]],
    found: list[Outcome],
) -> int:
    """Check the table in ``path`` once every worker has closed it.

    Returns:
        the rows it has.

    Raises:
        VerificationError: the file is damaged, or a row is wrong, missing or too many.
    """
    certain, possible = _written(streams, found)
    with closing(sqlite3.connect(path)) as connection:
        integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
        table = dict(connection.execute("SELECT k, v FROM kv").fetchall())
    if integrity != "ok":
        raise VerificationError(f"the database is damaged: {integrity}")
    for key, value in table.items():
        allowed = certain.get(key, set()) | possible.get(key, set())
        if not certain.get(key) and key in loaded:
            allowed.add(loaded[key])
        if value not in allowed:
            raise VerificationError(f"the row {key!r} has a value that nobody wrote there last")
    lost = (loaded.keys() | certain.keys()) - table.keys()
    if lost:
        raise VerificationError(f"{len(lost)} rows are missing, one of them {min(lost)!r}")
    return len(table)


def _written(
    streams: list[list[Operation]], found: list[Outcome]
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """By key: the last successful write of each process, and writes of unknown outcome."""
    certain: defaultdict[str, set[str]] = defaultdict(set)
    possible: defaultdict[str, set[str]] = defaultdict(set)
    for operations, outcome in zip(streams, found, strict=True):
        last: dict[str, str] = {}
        for (key, value), number in zip(operations, outcome.outcomes, strict=True):
            if value is None:
                continue
            if number == 0:
                last[key] = value
            elif "locked" not in outcome.errors[number - 1]:
                possible[key].add(value)
        for key, value in last.items():
            certain[key].add(value)
    return certain, possible
