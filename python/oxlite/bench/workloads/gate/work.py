"""The work of ``gate``: keys from a seed, and the table of counters they index.

A write is one upsert that adds one to the counter of its key, a transaction of
its own, so that the table tells how many writes were made of each key, which must be as
many as were acknowledged.

Invariant: the keys of a process depend on the parameters and its number alone,
never on the scenario.
"""

import hashlib
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from oxlite.bench.scenarios.pragmas import JOURNAL_MODES
from oxlite.bench.workloads.gate.parameters import GateParameters

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


def keys(parameters: GateParameters, process: int) -> list[int]:
    """The keys that one process writes, in order."""
    source = random.Random(f"{parameters.seed}:{process}")
    # Only random() is the same in every version of Python.
    return [int(source.random() * parameters.keys) for _ in range(KEYS_PER_PROCESS)]


def keys_digest(chosen: Sequence[int]) -> str:
    """The sha256 of one process' keys, in hexadecimal."""
    return hashlib.sha256(" ".join(map(str, chosen)).encode()).hexdigest()


def create_database(path: Path, parameters: GateParameters, journal: str) -> None:
    """Make the database a scenario starts from, by the standard library for every driver."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={JOURNAL_MODES[journal]}")
        connection.execute("BEGIN")
        connection.execute(CREATE)
        connection.execute(CREATE_BALLAST)
        connection.executemany(LOAD, ((key,) for key in range(parameters.keys)))
        connection.execute("COMMIT")
