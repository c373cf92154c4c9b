"""What writers write that are killed, so that it shows whether anything is missing.

Each writer writes entries with numbers of its own, 1, 2, 3, …, each a transaction, and the
row number of an entry is greater than those of all entries before it. So of each writer there must
be a beginning of its numbers, in their order: all that it was told of, and at most one more, if it
was killed before it could be told.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import rows_of_file
from oxlite.bench.workloads.gate.verify import sound_counters

CREATE = "CREATE TABLE entry(id INTEGER PRIMARY KEY, writer INTEGER, number INTEGER)"
WRITE = "INSERT INTO entry(writer, number) VALUES(?, ?)"
WRITTEN = "SELECT writer, number FROM entry ORDER BY id"


class Writer(NamedTuple):
    """What is known of a writer that has ended.

    Attributes:
        acknowledged: how many entries it was told of.
        is_killed: whether it could not end by itself.
    """

    acknowledged: int
    is_killed: bool


def create_table(path: Path) -> None:
    """Add the table to a database that nobody uses yet."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(CREATE)


def check(path: Path, writers: Sequence[Writer]) -> None:
    """Check the entries once nobody writes any more.

    Args:
        path: the database.
        writers: by the numbers under which they have written.

    Raises:
        VerificationError: the file is damaged, or an entry is missing, out of order or too many.
    """
    sound_counters(path)
    counts = [0] * len(writers)
    for writer, number in rows_of_file(path, WRITTEN):
        counts[writer] += 1
        if number != counts[writer]:
            raise VerificationError(
                f"entry {number} of writer {writer} stands where its entry {counts[writer]} should"
            )
    for number, (count, writer) in enumerate(zip(counts, writers, strict=True)):
        if not writer.acknowledged <= count <= writer.acknowledged + writer.is_killed:
            raise VerificationError(
                f"there are {count} entries of writer {number}, and {writer.acknowledged} were "
                "acknowledged"
            )
