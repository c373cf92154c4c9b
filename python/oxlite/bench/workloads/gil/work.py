"""What shapes a run of ``gil``: parameters, the file that its threads share, the keys to look up.

10,000 rows by text key are read, an empty table is written to. The standard
library makes the file for every driver.

Invariant: keys depend on the seed and the number of the reader alone; what
stands under each is known, so that every look-up can be checked.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.drivers.base import Connection
from oxlite.bench.parameters import Parameters, interpreters, parameter, seed

ROWS = 10_000
KEYS = 2_000
VALUE_CHARACTERS = 64

SCHEMA = (
    "CREATE TABLE items(k TEXT PRIMARY KEY, v TEXT)",
    "CREATE TABLE written(k INTEGER PRIMARY KEY, v TEXT)",
)
READ = "SELECT v FROM items WHERE k = ?"
WARM = "SELECT count(*), sum(length(k) + length(v)) FROM items"
WRITE = "INSERT INTO written(v) VALUES (?)"
WRITTEN = "SELECT count(*) FROM written"
FORGET = "DELETE FROM written"
CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)"
# One row, and the whole table for each round: its length is that of SQLite's own work.
QUERY = """
    WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
    SELECT sum(length(v)) FROM n CROSS JOIN items
"""

Lookup = tuple[tuple[str], tuple[str]]
"""The parameters of a look-up, and the row it must give."""


@dataclass(frozen=True)
class GilParameters(Parameters):
    """What shapes the work."""

    interpreter: Sequence[str] = interpreters()
    scale: float = parameter(
        1.0, "Length of a turn in parts of the usual", quick=0.2, least=0.001, most=100
    )
    seed: int = seed("Of the random order of keys")


def key(number: int) -> str:
    """The key of row ``number``."""
    return f"key:{number:08d}"


def value(number: int) -> str:
    """The value of row ``number``."""
    return f"{number:0{VALUE_CHARACTERS}x}"


def lookups(seed: int, reader: int) -> list[Lookup]:
    """What one reader looks up, over and over."""
    source = random.Random(f"{seed}:gil:{reader}")
    numbers = (int(source.random() * ROWS) for _ in range(KEYS))
    return [((key(number),), (value(number),)) for number in numbers]


def query_result(rounds: int) -> int:
    """What :data:`QUERY` gives for ``rounds``."""
    return rounds * ROWS * VALUE_CHARACTERS


def fill(connection: Connection) -> None:
    """Make the tables, and what is in them from the start."""
    connection.execute("BEGIN", ())
    for statement in SCHEMA:
        connection.execute(statement, ())
    rows = ((key(number), value(number)) for number in range(ROWS))
    connection.executemany("INSERT INTO items VALUES (?,?)", rows)
    connection.execute("COMMIT", ())
