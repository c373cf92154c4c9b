"""The database file of ``driver``: two tables of 10,000 rows, by text and by integer key.

Operations on a file read these; all others work in memory, where the driver's
own share is the largest.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from oxlite.bench.scenarios.pragmas import JOURNAL_MODES

ROWS = 10_000
VALUE_CHARACTERS = 64

SCHEMA = (
    "CREATE TABLE by_text(k TEXT PRIMARY KEY, v TEXT)",
    "CREATE TABLE by_integer(k INTEGER PRIMARY KEY, v TEXT)",
)


def text_key(number: int) -> str:
    """The text key of row ``number``."""
    return f"key:{number:08d}"


def text_value(number: int) -> str:
    """The value of row ``number``."""
    return f"{number:0{VALUE_CHARACTERS}x}"


def create_database(path: Path, journal: str) -> None:
    """Make the database that every driver reads; no connection is left open."""
    numbers = range(ROWS)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={JOURNAL_MODES[journal]}")
        connection.execute("BEGIN")
        for statement in SCHEMA:
            connection.execute(statement)
        for table, key in (("by_text", text_key), ("by_integer", int)):
            connection.executemany(
                f"INSERT INTO {table} VALUES(?,?)", ((key(n), text_value(n)) for n in numbers)
            )
        connection.execute("COMMIT")
