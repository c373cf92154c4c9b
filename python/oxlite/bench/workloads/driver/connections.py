"""Statements, connections and cursors: what making one costs."""

import itertools
from functools import partial

from oxlite.bench.workloads.driver.database import VALUE_CHARACTERS
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer

CONNECTIONS = Operations()

CHANGES = ("CREATE TABLE other(a, b)", "DROP TABLE other")


class Texts:
    """Look-ups that differ in a comment alone, none of which was ever seen before.

    Attributes:
        expected: what :meth:`run` gives.
    """

    def __init__(self, connection: Handle, count: int) -> None:
        self._execute = connection.execute
        self._number = itertools.count()
        self._texts = [""] * count
        self.expected = sum(n % 100 for n in range(count))

    def renew(self) -> None:
        """Make the texts of the next batch."""
        self._texts = [
            f"SELECT a FROM t WHERE a = {n % 100} /* {next(self._number):08d} */"
            for n in range(len(self._texts))
        ]

    def run(self) -> int:
        """Run each once."""
        total = 0
        for text in self._texts:
            total += self._execute(text).fetchone()[0]
        return total


@CONNECTIONS.operation("new SQL text (cache miss)", 3_500)
def cache_miss(peer: Peer, count: int) -> Batch:
    """Texts that no statement cache can know."""
    texts = Texts(peer.table("a INTEGER PRIMARY KEY", ((n,) for n in range(100))), count)
    return Batch(texts.run, texts.expected, texts.renew)


@CONNECTIONS.operation("get after a change of schema", 700)
def schema_change(peer: Peer, count: int) -> Batch:
    """A table is made or dropped, and then a known statement has to be prepared again."""
    execute = peer.table("a INTEGER PRIMARY KEY, b TEXT", ((n, f"{n}") for n in range(100))).execute

    def run() -> int:
        total = 0
        for n in range(count):
            execute(CHANGES[n % 2])
            total += execute("SELECT a FROM t WHERE a = ?", (n % 100,)).fetchone()[0]
        return total

    def result(total: int) -> int:
        execute("DROP TABLE IF EXISTS other")
        return total

    return Batch(run, sum(n % 100 for n in range(count)), result=result)


def _connect(name: str | None, peer: Peer, count: int) -> Batch:
    """By the driver's defaults, as all of these; to the file, without a ``name``."""
    connect, name = peer.connector, name or str(peer.path)

    def run() -> int:
        done = 0
        for _ in range(count):
            connect(name).close()
            done += 1
        return done

    return Batch(run, count)


CONNECTIONS.operation("connect, close: memory", 900)(partial(_connect, ":memory:"))
# An existing file that another connection has open; SQLite reads nothing of it yet.
CONNECTIONS.operation("connect, close: WAL file", 450)(partial(_connect, None))


@CONNECTIONS.operation("connect with settings, close: WAL file", 100)
def connect_with_settings(peer: Peer, count: int) -> Batch:
    """By ``oxlite.connect``; elsewhere the same pragmas, set and read back as that does."""
    connect, path = peer.production_connector, str(peer.path)

    def run() -> int:
        done = 0
        for _ in range(count):
            connect(path).close()
            done += 1
        return done

    return Batch(run, count)


@CONNECTIONS.operation("connect, get, close: WAL file", 150)
def connect_and_get(peer: Peer, count: int) -> Batch:
    """With a first look-up, for which SQLite opens the WAL and reads the schema."""
    connect, path = peer.connector, str(peer.path)

    def run() -> int:
        characters = 0
        for _ in range(count):
            connection = connect(path)
            [value] = connection.execute("SELECT v FROM by_integer WHERE k = 7").fetchone()
            characters += len(value)
            connection.close()
        return characters

    return Batch(run, VALUE_CHARACTERS * count)


@CONNECTIONS.operation("cursor()", 70_000)
def cursor(peer: Peer, count: int) -> Batch:
    """Made and dropped."""
    make = peer.memory().cursor

    def run() -> int:
        done = 0
        for _ in range(count):
            make()
            done += 1
        return done

    return Batch(run, count)
