"""The work of ``top``: its parameters, the table, and the two operations.

Each operation is a transaction of its own: a row is changed, or read, by its primary key. The read
is the cheapest statement that there is, so whatever is done for each statement shows there the
most. A look at the clock would show as well, so of a round of reads the last one alone is timed.

Invariant: what a process does depends on the parameters and its number alone, never on the
scenario; it begins again with the first key when it has had all.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oxlite.bench.drivers.base import Connection
from oxlite.bench.parameters import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    Parameters,
    parameter,
    seed,
    timeout,
)

WRITE, READ = "write", "read"
"""The values of the axis ``load``."""

ROWS = 1_000
NO_ROW = 0
"""A key that no row has: they are numbered from 1."""

KEYS_PER_PROCESS = 10_000

NOTICED_SECONDS = 1.2
"""Processes look once a second whether somebody watches."""

CREATE = "CREATE TABLE item(id INTEGER PRIMARY KEY, n INTEGER NOT NULL, text TEXT NOT NULL)"
LOAD = "INSERT INTO item VALUES(?, 0, ?)"
CHANGED = "SELECT sum(n) FROM item"


@dataclass(frozen=True)
class TopParameters(Parameters):
    """What shapes the work."""

    processes: Sequence[int] = parameter(
        (1, 4), "Processes that work", quick=(2,), least=1, most=100
    )
    limit_seconds: float = parameter(
        2.0, "Seconds in which is counted", quick=0.6, least=SHORTEST_SECONDS, most=3600
    )
    lead_seconds: float = parameter(
        1.5, "Seconds that they work before, in which they notice a watch", quick=NOTICED_SECONDS,
        least=NOTICED_SECONDS, most=3600,
    )  # fmt: skip
    every_seconds: float = parameter(
        1.0, "Seconds from one look of the watch to the next", quick=0.3,
        least=SHORTEST_SECONDS, most=LONGEST_SECONDS,
    )  # fmt: skip
    seed: int = seed()
    timeout_seconds: float = timeout("Seconds that a writer waits for the lock")


@dataclass(frozen=True)
class Operation:
    """What is done again and again.

    Attributes:
        sql: a statement with a key for its parameter.
        in_round: how many make a round, of which the last one is timed.
    """

    sql: str
    in_round: int


OPERATIONS: Mapping[str, Operation] = {
    WRITE: Operation("UPDATE item SET n = n + 1 WHERE id = ?", 1),
    READ: Operation("SELECT text FROM item WHERE id = ?", 20),
}


def keys(parameters: TopParameters, process: int) -> list[int]:
    """The keys of one process, in order."""
    # Only random() is the same in every version of Python.
    source = random.Random(f"{parameters.seed}:{process}")
    return [1 + int(source.random() * ROWS) for _ in range(KEYS_PER_PROCESS)]


def text(key: int) -> str:
    """What stands in a row: some hundred bytes."""
    return f"{key:0100}"


def fill(connection: Connection) -> None:
    """Make the table that a scenario starts from."""
    connection.execute(CREATE, ())
    connection.execute("BEGIN", ())
    connection.executemany(LOAD, ((key, text(key)) for key in range(1, ROWS + 1)))
    connection.execute("COMMIT", ())
