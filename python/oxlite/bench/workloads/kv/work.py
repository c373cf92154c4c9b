"""The work of ``kv``: parameters, the seeded streams, the database they start from.

The table ``kv(k TEXT PRIMARY KEY, v TEXT)`` is loaded with ``keys`` rows. A
process' stream is ``queries`` autocommitted statements: a read picks one of
the loaded keys, so it always finds a row; a write picks from twice as many, so
half of the upserts update and, until the key exists, the other half insert.
Every written value is 64 random characters and so tells which write it was.

Invariants: a stream depends on the parameters, the seed and the number of the
process alone, never on the scenario; the digest is of the streams in order.
"""

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass

from oxlite.bench.drivers.base import Connection
from oxlite.bench.parameters import LONGEST_SECONDS, Parameters, parameter, seed, timeout

VALUE_BITS = 256  # 64 hexadecimal characters
WRITTEN_KEYS_PER_LOADED = 2

CREATE = "CREATE TABLE kv(k TEXT PRIMARY KEY, v TEXT)"
LOAD = "INSERT INTO kv VALUES(?,?)"
TABLE = "SELECT k, v FROM kv"
READ = "SELECT v FROM kv WHERE k = ?"
WRITE = "INSERT INTO kv VALUES(?,?) ON CONFLICT(k) DO UPDATE SET v=excluded.v"

Operation = tuple[str, str | None]
"""A key, and the value to write there or ``None`` to read it."""


@dataclass(frozen=True)
class KvParameters(Parameters):
    """What shapes the work; 25 processes and 15,000 queries were published."""

    processes: int = parameter(25, "Worker processes", quick=8, least=1, most=1000)
    queries: int = parameter(
        2_000, "Statements of each process", quick=500, published=15_000, least=1
    )
    write_ratio: float = parameter(0.05, "Part of them that are upserts, 0 to 1", most=1)
    keys: int = parameter(10_000, "Rows the table starts with", least=1)
    seed: int = seed()
    timeout_seconds: float = timeout()
    fairness_seconds: float = parameter(
        1.0,
        "Seconds of the turn that measures fairness; 0 leaves it out",
        quick=0.5,
        most=LONGEST_SECONDS,
    )


def key(number: int) -> str:
    """The key of row ``number``."""
    return f"key:{number:08d}"


def value(source: random.Random) -> str:
    """A fresh value of 64 characters."""
    return f"{source.getrandbits(VALUE_BITS):064x}"


def loaded(parameters: KvParameters) -> dict[str, str]:
    """The rows the table starts with."""
    source = random.Random(f"{parameters.seed}:load")
    return {key(number): value(source) for number in range(parameters.keys)}


def stream(parameters: KvParameters, process: int) -> list[Operation]:
    """The work of one process."""
    source = random.Random(f"{parameters.seed}:{process}")
    operations: list[Operation] = []
    for _ in range(parameters.queries):
        # Only random() and getrandbits() are the same in every version of Python.
        if source.random() < parameters.write_ratio:
            number = int(source.random() * parameters.keys * WRITTEN_KEYS_PER_LOADED)
            operations.append((key(number), value(source)))
        else:
            operations.append((key(int(source.random() * parameters.keys)), None))
    return operations


def stream_digest(operations: Iterable[Operation]) -> str:
    """The sha256 of one stream, in hexadecimal."""
    digest = hashlib.sha256()
    for name, written in operations:
        digest.update(f"{name}\t{written or ''}\n".encode())
    return digest.hexdigest()


def work_digest(stream_digests: Iterable[str]) -> str:
    """The sha256 of all streams, from their digests in the order of the processes."""
    return hashlib.sha256("\n".join(stream_digests).encode()).hexdigest()


def fill(connection: Connection, parameters: KvParameters) -> None:
    """Make the table that a scenario starts from."""
    connection.execute("BEGIN", ())
    connection.execute(CREATE, ())
    connection.executemany(LOAD, loaded(parameters).items())
    connection.execute("COMMIT", ())
