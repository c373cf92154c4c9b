"""The work of ``async``: its parameters, a table, and which of its rows each task reads.

Invariant: the keys depend on the seed and the task alone. A task goes round its keys for
as long as it has time; inserted rows have the task and a number that counts up.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.drivers.base import Connection
from oxlite.bench.parameters import SHORTEST_SECONDS, Parameters, parameter, seed, timeout

CREATE = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"
CREATE_INSERTED = "CREATE TABLE inserted (task INTEGER NOT NULL, number INTEGER NOT NULL)"
FILL = "INSERT INTO note VALUES (?, ?)"
READ = "SELECT text FROM note WHERE id = ?"
INSERT = "INSERT INTO inserted (task, number) VALUES (?, ?)"
INSERTED = "SELECT task, count(*), min(number), max(number) FROM inserted GROUP BY task"

KEYS = 997
"""How many keys a task has."""


@dataclass(frozen=True)
class AsyncParameters(Parameters):
    """What shapes the work."""

    tasks: Sequence[int] = parameter(
        (1, 16, 64), "Tasks at once", quick=(16,), least=1, most=10_000
    )
    rows: int = parameter(10_000, "Rows of the table that is read", least=1, most=1_000_000)
    duration_seconds: float = parameter(
        1.0, "Seconds of each scenario", quick=0.5, least=SHORTEST_SECONDS, most=3600
    )
    seed: int = seed("Of which rows are read")
    timeout_seconds: float = timeout("Seconds to wait for the lock")


def text(key: int) -> str:
    """The text of a row: some hundred bytes."""
    return f"note {key} " + "x" * 90


def keys(parameters: AsyncParameters, task: int) -> list[int]:
    """The keys that a task reads, one after the other."""
    source = random.Random(f"{parameters.seed}:async:{task}")
    # Only random() is the same in every version of Python.
    return [int(source.random() * parameters.rows) + 1 for _ in range(KEYS)]


def shape(parameters: AsyncParameters) -> object:
    """What all tasks do."""
    every = [keys(parameters, task) for task in range(max(parameters.tasks))]
    return parameters.rows, parameters.duration_seconds, every


def fill(connection: Connection, parameters: AsyncParameters) -> None:
    """Make the tables that a scenario starts from."""
    connection.execute(CREATE, ())
    connection.execute(CREATE_INSERTED, ())
    connection.execute("BEGIN", ())
    connection.executemany(FILL, ((key, text(key)) for key in range(1, parameters.rows + 1)))
    connection.execute("COMMIT", ())
