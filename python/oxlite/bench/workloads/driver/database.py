"""The database file of ``driver``: two tables of 10,000 rows, by text and by integer key.

Operations on a file read these; all others work in memory, where the driver's
own share is the largest.
"""

from oxlite.bench.drivers.base import Connection

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


def pairs(count: int) -> list[tuple[int, str]]:
    """The rows below ``count``, by integer key."""
    return [(number, text_value(number)) for number in range(count)]


def fill(connection: Connection) -> None:
    """Make the tables, and what is in them."""
    connection.execute("BEGIN", ())
    for statement in SCHEMA:
        connection.execute(statement, ())
    for table, key in (("by_text", text_key), ("by_integer", int)):
        rows = ((key(number), text) for number, text in pairs(ROWS))
        connection.executemany(f"INSERT INTO {table} VALUES(?,?)", rows)
    connection.execute("COMMIT", ())
