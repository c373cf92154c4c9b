"""What is written, what was acknowledged of it, and whether what is found is a prefix of that.

In the database each transaction is a row of ``step``, numbered over all writers, and has rows of
``entry``, numbered for each writer. Beside it each writer has a file, in which he says to which
number a transaction will bring him, before it is committed, and again when it is, with the time.

Invariants:
- Whatever is a prefix of what was committed has the steps 1 to n, and of each writer the entries
  1 to the last of his last step.
- What a writer has said stays said when he is killed: a file's pages outlive its process.
"""

import os
import sqlite3 as stdlib
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tests.kill_campaigns import WrongError

from oxlite import Database

__all__ = ["WRITERS", "Said", "Slip", "append", "create", "found", "said"]

WRITERS = 3


class Said(NamedTuple):
    """What a writer has said.

    Attributes:
        begun: The numbers to which transactions would bring him.
        acknowledged: Those that were committed, each with the time after that.
    """

    begun: list[int]
    acknowledged: list[tuple[int, float]]


class Slip:
    """The file of a writer."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)

    def say(self, what: str, number: int, at: float) -> None:
        """Write a line, at once."""
        os.write(self._descriptor, f"{what} {number} {at!r}\n".encode())


def said(path: Path) -> Said:
    """What stands in the file of a writer; nothing if he has not come to it."""
    begun, acknowledged = [], []
    if path.exists():
        for line in path.read_text().splitlines():
            what, number, at = line.split()
            if what == "begun":
                begun.append(int(number))
            else:
                acknowledged.append((int(number), float(at)))
    return Said(begun, acknowledged)


def create(path: Path) -> None:
    """Make its tables."""
    with Database(path) as db, db.write() as connection:
        connection.execute("CREATE TABLE step (id INTEGER PRIMARY KEY, writer INTEGER, last INT)")
        connection.execute(
            "CREATE TABLE entry (writer INTEGER, number INTEGER, step INTEGER, filling BLOB,"
            " PRIMARY KEY (writer, number)) WITHOUT ROWID"
        )
        connection.execute("CREATE TABLE total (writer INTEGER PRIMARY KEY, count INTEGER)")
        for writer in range(WRITERS):
            connection.execute("INSERT INTO total VALUES (?, 0)", (writer,))


def append(db: Database, writer: int, rows: int, slip: Slip, now: float) -> int:
    """Write the next numbers of a writer; they are committed then."""
    with db.write() as connection:
        [(count,)] = connection.execute(
            "UPDATE total SET count = count + ? WHERE writer = ? RETURNING count", (rows, writer)
        ).fetchall()
        [(step,)] = connection.execute(
            "INSERT INTO step (writer, last) VALUES (?, ?) RETURNING id", (writer, count)
        ).fetchall()
        connection.executemany(
            "INSERT INTO entry VALUES (?, ?, ?, randomblob(?))",
            [(writer, one, step, one * 37 % 300) for one in range(count - rows + 1, count + 1)],
        )
        slip.say("begun", count, now)
    return int(count)


def found(path: Path) -> list[int]:
    """How many entries of each writer are there, as another SQLite reads it.

    Raises:
        WrongError: It is no prefix, or damaged.
    """
    with closing(stdlib.connect(path)) as connection:
        if (told := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            raise WrongError(f"{path} is damaged: {told}")
        [(steps, last_step)] = connection.execute(
            "SELECT count(*), coalesce(max(id), 0) FROM step"
        ).fetchall()
        if steps != last_step:
            raise WrongError(f"{path} has {steps} steps, the last of which is {last_step}")
        totals = [row[0] for row in connection.execute("SELECT count FROM total ORDER BY writer")]
        if len(totals) != WRITERS:
            raise WrongError(f"{path} has {len(totals)} writers")
        for writer, total in enumerate(totals):
            [entries] = connection.execute(
                "SELECT count(*), coalesce(max(number), 0), coalesce(max(step), 0) FROM entry"
                " WHERE writer = ?",
                (writer,),
            ).fetchall()
            [step] = connection.execute(
                "SELECT coalesce(max(last), 0), coalesce(max(id), 0) FROM step WHERE writer = ?",
                (writer,),
            ).fetchall()
            if entries != (total, *step) or step[0] != total:
                raise WrongError(
                    f"{path}: writer {writer} has {entries}, his last step is {step}, and he says"
                    f" {total}"
                )
    return totals
