"""What is written: of each writer the numbers from 1 on, and how many these are.

Invariant: whatever is a prefix of what was committed has all numbers up to one, and that count.
"""

import sqlite3 as stdlib
from contextlib import closing
from pathlib import Path

from tests.kill_campaigns import WrongError

from oxlite import Database

__all__ = ["WRITERS", "append", "counts", "create"]

WRITERS = 2


def create(path: Path) -> None:
    """Make its tables."""
    with Database(path) as db, db.write() as connection:
        connection.execute(
            "CREATE TABLE entry (writer INTEGER, number INTEGER, filling BLOB,"
            " PRIMARY KEY (writer, number)) WITHOUT ROWID"
        )
        connection.execute("CREATE TABLE total (writer INTEGER PRIMARY KEY, count INTEGER)")
        connection.execute("CREATE INDEX entry_filling ON entry (filling)")
        for writer in range(WRITERS):
            connection.execute("INSERT INTO total VALUES (?, 0)", (writer,))


def append(db: Database, writer: int) -> int:
    """Write the next number of a writer; it is committed then."""
    with db.write() as connection:
        [(count,)] = connection.execute(
            "UPDATE total SET count = count + 1 WHERE writer = ? RETURNING count", (writer,)
        ).fetchall()
        connection.execute(
            "INSERT INTO entry VALUES (?, ?, randomblob(?))", (writer, count, count * 37 % 300)
        )
    return int(count)


def counts(path: Path) -> list[int]:
    """How many numbers of each writer are there, as another SQLite reads it.

    Raises:
        WrongError: It is no prefix, or damaged.
    """
    with closing(stdlib.connect(path)) as connection:
        if (said := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            raise WrongError(f"{path} is damaged: {said}")
        totals = [row[0] for row in connection.execute("SELECT count FROM total ORDER BY writer")]
        for writer, total in enumerate(totals):
            [found] = connection.execute(
                "SELECT count(*), coalesce(max(number), 0) FROM entry WHERE writer = ?", (writer,)
            ).fetchall()
            if found != (total, total):
                raise WrongError(f"{path}: writer {writer} has {found}, and says {total}")
    if len(totals) != WRITERS:
        raise WrongError(f"{path} has {len(totals)} writers")
    return totals
