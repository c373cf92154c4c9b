"""The work of ``gate``: its parameters, keys from a seed, and the table of counters they index.

A write is one upsert that adds one to the counter of its key, a transaction of
its own, so that the table tells how many writes were made of each key, which must be as
many as were acknowledged.

Invariant: the keys of a process depend on the parameters and its number alone,
never on the scenario.
"""

import hashlib
import random
from collections.abc import Sequence
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

KEYS_PER_PROCESS = 4096
"""A process begins again with the first when it has written them all."""

CREATE = "CREATE TABLE counter(k INTEGER PRIMARY KEY, n INTEGER NOT NULL)"
LOAD = "INSERT INTO counter VALUES(?, 0)"
WRITE = "INSERT INTO counter VALUES(?, 1) ON CONFLICT(k) DO UPDATE SET n = n + 1"
WARM = "SELECT sum(n) FROM counter"
CREATE_BALLAST = "CREATE TABLE ballast(b BLOB)"
BALLAST = """
    WITH RECURSIVE number(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < ?)
    INSERT INTO ballast SELECT zeroblob(1000) FROM number
"""
"""What a writer that is to be killed writes: never committed, so never to be seen."""

BALLAST_ROWS = 50_000
"""More than a page cache holds, so that some are in the log already when the kill comes."""

SEEN_BALLAST = "SELECT count(*) FROM ballast"
COUNTED = "SELECT k, n FROM counter"


MAXIMUM_PROCESSES = 1000


@dataclass(frozen=True)
class GateParameters(Parameters):
    """What shapes the work."""

    processes: Sequence[int] = parameter(
        (4, 25), "Processes that write", quick=(8,), least=2, most=MAXIMUM_PROCESSES
    )
    duration_seconds: float = parameter(
        2.0, "Seconds that they write", quick=1.0, least=SHORTEST_SECONDS, most=LONGEST_SECONDS
    )
    keys: int = parameter(100, "Rows of the table, of which each write picks one", least=1)
    kills: int = parameter(30, "Writers killed, where some are", least=1)
    seed: int = seed()
    timeout_seconds: float = timeout("Seconds that a write waits for the lock")


def keys(parameters: GateParameters, process: int) -> list[int]:
    """The keys that one process writes, in order."""
    source = random.Random(f"{parameters.seed}:{process}")
    # Only random() is the same in every version of Python.
    return [int(source.random() * parameters.keys) for _ in range(KEYS_PER_PROCESS)]


def keys_digest(chosen: Sequence[int]) -> str:
    """The sha256 of one process' keys, in hexadecimal."""
    return hashlib.sha256(" ".join(map(str, chosen)).encode()).hexdigest()


def fill(connection: Connection, parameters: GateParameters) -> None:
    """Make the tables that a scenario starts from."""
    connection.execute("BEGIN", ())
    connection.execute(CREATE, ())
    connection.execute(CREATE_BALLAST, ())
    connection.executemany(LOAD, ((key,) for key in range(parameters.keys)))
    connection.execute("COMMIT", ())
