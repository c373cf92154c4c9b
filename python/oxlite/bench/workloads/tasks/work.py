"""The work of ``async``: a table, and which of its rows each task reads.

Invariant: the keys depend on the seed and the task alone. A task goes round its keys for
as long as it has time; inserted rows have the task and a number that counts up.
"""

import hashlib
import random
import sqlite3
from contextlib import closing
from pathlib import Path

from oxlite.bench.workloads.tasks.parameters import TasksParameters

CREATE = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"
CREATE_INSERTED = "CREATE TABLE inserted (task INTEGER NOT NULL, number INTEGER NOT NULL)"
FILL = "INSERT INTO note VALUES (?, ?)"
READ = "SELECT text FROM note WHERE id = ?"
INSERT = "INSERT INTO inserted (task, number) VALUES (?, ?)"
INSERTED = "SELECT task, count(*), min(number), max(number) FROM inserted GROUP BY task"

KEYS = 997
"""How many keys a task has."""


def text(key: int) -> str:
    """The text of a row: some hundred bytes."""
    return f"note {key} " + "x" * 90


def keys(parameters: TasksParameters, task: int) -> list[int]:
    """The keys that a task reads, one after the other."""
    source = random.Random(f"{parameters.seed}:async:{task}")
    # Only random() is the same in every version of Python.
    return [int(source.random() * parameters.rows) + 1 for _ in range(KEYS)]


def digest(parameters: TasksParameters) -> str:
    """The sha256 of the keys of all tasks."""
    every = [keys(parameters, task) for task in range(max(parameters.tasks))]
    shape = parameters.rows, parameters.duration_seconds, every
    return hashlib.sha256(repr(shape).encode()).hexdigest()


def create_database(path: Path, parameters: TasksParameters) -> None:
    """Make the file a scenario starts from, by the standard library for every driver."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(CREATE)
        connection.execute(CREATE_INSERTED)
        connection.execute("BEGIN")
        connection.executemany(FILL, ((key, text(key)) for key in range(1, parameters.rows + 1)))
        connection.execute("COMMIT")
