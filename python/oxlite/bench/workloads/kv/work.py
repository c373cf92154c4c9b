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
from oxlite.bench.errors import UsageError, require_between

VALUE_BITS = 256  # 64 hexadecimal characters
MAXIMUM_PROCESSES = 1000
MAXIMUM_COUNT = 10_000_000
MAXIMUM_SECONDS = 86_400
"""Of a wait: the drivers count milliseconds in a signed 32-bit integer, and some wrap round."""

WRITTEN_KEYS_PER_LOADED = 2

CREATE = "CREATE TABLE kv(k TEXT PRIMARY KEY, v TEXT)"
LOAD = "INSERT INTO kv VALUES(?,?)"
TABLE = "SELECT k, v FROM kv"
READ = "SELECT v FROM kv WHERE k = ?"
WRITE = "INSERT INTO kv VALUES(?,?) ON CONFLICT(k) DO UPDATE SET v=excluded.v"

Operation = tuple[str, str | None]
"""A key, and the value to write there or ``None`` to read it."""


@dataclass(frozen=True)
class KvParameters:
    """What shapes the work.

    Attributes:
        processes: worker processes (published: 25).
        queries: statements of each process (published: 15,000; shown: 2,000).
        write_ratio: the part of them that are upserts, 0 to 1.
        keys: rows the table is loaded with.
        seed: of all random streams.
        timeout_seconds: how long a statement waits for a lock, where it waits.
        fairness_seconds: how long the processes then go on, for their rates; 0 leaves it out.
    """

    processes: int = 25
    queries: int = 2_000
    write_ratio: float = 0.05
    keys: int = 10_000
    seed: int = 1
    timeout_seconds: float = 5.0
    fairness_seconds: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        require_between("--processes", self.processes, 1, MAXIMUM_PROCESSES)
        require_between("--queries", self.queries, 1, MAXIMUM_COUNT)
        require_between("--keys", self.keys, 1, MAXIMUM_COUNT)
        require_between("--timeout", self.timeout_seconds, 0, MAXIMUM_SECONDS)
        require_between("--fairness", self.fairness_seconds, 0, MAXIMUM_SECONDS)
        if not 0 <= self.write_ratio <= 1:
            raise UsageError(f"--write-ratio must be between 0 and 1, not {self.write_ratio:g}")


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
