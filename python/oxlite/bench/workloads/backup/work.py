"""The work of ``backup``: its parameters, the accounts, and what is moved between them.

A transaction moves an amount from one account to another one and gives both a new text: two rows of
about 200 bytes, by keys at random. One key in twenty has no row at first, so it is inserted. All
amounts together come to nothing, at every commit: a copy in which they do not is none of a moment.

Invariant: what a process moves depends on the parameters and its number alone, never on the
scenario; it begins again with the first when it has done all.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from oxlite.bench.drivers.base import Connection
from oxlite.bench.parameters import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    Parameters,
    parameter,
    seed,
    timeout,
)

TRANSACTIONS_PER_PROCESS = 20_000
ROWS_PER_MEBIBYTE = 20 * 256
"""So many rows there are in a page of 4 KiB, and so many pages."""

TEXT_BITS = 736  # 184 hexadecimal characters
MORE_KEYS = 20
"""One in so many has no row at first."""

LARGEST_AMOUNT = 1000
ROWS_AT_ONCE = 50_000

CREATE = "CREATE TABLE account(id INTEGER PRIMARY KEY, amount INTEGER NOT NULL, text TEXT NOT NULL)"
LOAD = "INSERT INTO account VALUES(?, 0, ?)"
WRITE = """
    INSERT INTO account VALUES(?, ?, ?)
    ON CONFLICT(id) DO UPDATE SET amount = amount + excluded.amount, text = excluded.text
"""
WARM = "SELECT amount FROM account WHERE id = 0"
SUMS = "SELECT count(*), sum(amount), sum(id * amount) FROM account"


@dataclass(frozen=True)
class BackupParameters(Parameters):
    """What shapes the work."""

    size_mebibytes: int = parameter(
        1024, "Mebibytes of the database", quick=16, least=1, most=1 << 20, option="--size"
    )
    processes: int = parameter(2, "Processes that write", least=1, most=1000)
    lead_seconds: float = parameter(
        2.0, "Seconds that they write before", quick=0.2, most=LONGEST_SECONDS
    )
    least_seconds: float = parameter(
        3.0,
        "Seconds for which backups are made, one after the other, at the least",
        quick=0.5,
        least=SHORTEST_SECONDS,
        most=LONGEST_SECONDS,
    )
    limit_seconds: float = parameter(
        60.0,
        "Seconds after which the shell's backup is given up",
        quick=2.0,
        least=SHORTEST_SECONDS,
        most=LONGEST_SECONDS,
    )
    seed: int = seed()
    timeout_seconds: float = timeout("Seconds that a writer waits for the lock")

    @property
    def rows(self) -> int:
        """How many accounts there are at first."""
        return self.size_mebibytes * ROWS_PER_MEBIBYTE


Row = tuple[int, int, str]
"""A key, what is added to its amount, its new text."""


class Transaction(NamedTuple):
    """What is moved at once.

    Attributes:
        first: the account that gets it.
        second: the one that it is taken from.
    """

    first: Row
    second: Row

    @property
    def moment(self) -> int:
        """What it adds to the sum of keys times amounts, by which a lost one shows."""
        return sum(key * amount for key, amount, _ in self)


def transactions(parameters: BackupParameters, process: int) -> list[Transaction]:
    """What one process moves, in order."""
    source = random.Random(f"{parameters.seed}:{process}")
    keys = parameters.rows + max(1, parameters.rows // MORE_KEYS)
    return [_transaction(source, keys) for _ in range(TRANSACTIONS_PER_PROCESS)]


def fill(connection: Connection, parameters: BackupParameters) -> None:
    """Make the table that a scenario starts from, a part at a time, so that the WAL stays small."""
    connection.execute(CREATE, ())
    source = random.Random(f"{parameters.seed}:load")
    for first in range(0, parameters.rows, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, parameters.rows)
        connection.execute("BEGIN", ())
        connection.executemany(LOAD, _loaded(source, first, last))
        connection.execute("COMMIT", ())


def _loaded(source: random.Random, first: int, last: int) -> Iterator[tuple[int, str]]:
    return ((key, _text(source)) for key in range(first, last))


# Only random() and getrandbits() are the same in every version of Python.


def _transaction(source: random.Random, keys: int) -> Transaction:
    first = int(source.random() * keys)
    second = (first + 1 + int(source.random() * (keys - 1))) % keys
    amount = 1 + int(source.random() * LARGEST_AMOUNT)
    text = _text(source)
    return Transaction((first, amount, text), (second, -amount, text))


def _text(source: random.Random) -> str:
    return f"{source.getrandbits(TEXT_BITS):0{TEXT_BITS // 4}x}"
