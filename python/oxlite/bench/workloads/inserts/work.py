"""The work of ``inserts``: its parameters, rows from a seed, and the table they go into.

A row is what the published benchmarks insert: a UUID of version 4 as 16 bytes, the
instant of its creation as RFC 3339 has it, and a name.

The published table has a unique index on its primary key beside the one that a primary
key brings, so each insert changes three b-trees. That index serves nothing: it is there
in the mode ``faithful`` and left out in ``sound``, where an insert changes two.

Invariant: the rows depend on the seed and their number alone, and a thread's share on the
number of threads, never on the rest of the scenario. Without the clock and Python's own
``uuid4`` the final table can be compared with the list.
"""

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.errors import require_at_least
from oxlite.bench.parameters import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    Parameters,
    parameter,
    seed,
    timeout,
)

Row = tuple[bytes, str, str]

CREATE = """
    CREATE TABLE users(
        id {bytes} PRIMARY KEY NOT NULL,
        created_at TEXT NOT NULL,
        username TEXT NOT NULL
    )
"""
CREATE_REDUNDANT = "CREATE UNIQUE INDEX users_id ON users(id)"
INSERT = "INSERT INTO users(id, created_at, username) VALUES(?,?,?)"
WARM = "SELECT count(*) FROM users"
TABLE = "SELECT id, created_at, username FROM users ORDER BY id"

ID_BYTES = 16
VERSION_BYTE, VARIANT_BYTE = 6, 8
AS_VERSION = bytes(byte & 0x0F | 0x40 for byte in range(256))
AS_VARIANT = bytes(byte & 0x3F | 0x80 for byte in range(256))
"""RFC 9562 fixes four bits of one byte and two of another."""

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
ROWS_PER_SECOND = 1000


MODES = ("sound", "faithful")
"""With what the schema needs, or with the redundant index of the published one."""


@dataclass(frozen=True)
class InsertsParameters(Parameters):
    """What shapes the work."""

    mode: str = parameter(
        "sound",
        "sound, or faithful: with the published redundant index",
        published="faithful",
        choices=MODES,
    )
    threads: Sequence[int] = parameter(
        (1, 4, 16, 64), "Threads that insert at once", quick=(16,), least=1, most=1000
    )
    inserts: int = parameter(100_000, "Rows of all threads, at most", least=1)
    duration_seconds: float = parameter(
        0.4,
        "Seconds that each scenario inserts",
        quick=0.15,
        least=SHORTEST_SECONDS,
        most=LONGEST_SECONDS,
    )
    seed: int = seed("Of the rows")
    timeout_seconds: float = timeout()

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        require_at_least("--inserts", self.inserts, max(self.threads))


def rows(parameters: InsertsParameters) -> list[Row]:
    """All rows, in order."""
    count = parameters.inserts
    source = random.Random(f"{parameters.seed}:inserts")
    # Only random() and getrandbits() are the same in every version of Python.
    drawn = bytearray(source.getrandbits(8 * ID_BYTES * count).to_bytes(ID_BYTES * count, "little"))
    drawn[VERSION_BYTE::ID_BYTES] = drawn[VERSION_BYTE::ID_BYTES].translate(AS_VERSION)
    drawn[VARIANT_BYTE::ID_BYTES] = drawn[VARIANT_BYTE::ID_BYTES].translate(AS_VARIANT)
    ids = bytes(drawn)
    made: list[Row] = []
    for first in range(0, count, ROWS_PER_SECOND):
        second = FIRST + timedelta(seconds=first // ROWS_PER_SECOND)
        instant = second.strftime("%Y-%m-%dT%H:%M:%S")
        made.extend(
            (
                ids[ID_BYTES * number : ID_BYTES * (number + 1)],
                f"{instant}.{number % ROWS_PER_SECOND:03}Z",
                f"user{number}",
            )
            for number in range(first, min(first + ROWS_PER_SECOND, count))
        )
    return made


def share(of: Sequence[Row], thread: int, threads: int) -> Sequence[Row]:
    """The rows of one of the threads, in order."""
    return of[thread::threads]


def digest(of: Iterable[Row]) -> str:
    """The sha256 of rows, in hexadecimal."""
    found = hashlib.sha256()
    for identifier, created_at, username in of:
        found.update(identifier + f"\t{created_at}\t{username}\n".encode())
    return found.hexdigest()


def fill(connection: Connection, driver: Driver, mode: str) -> None:
    """Make the table that a scenario starts from."""
    connection.execute(CREATE.format(bytes=driver.bytes_type), ())
    if mode == "faithful":
        connection.execute(CREATE_REDUNDANT, ())
