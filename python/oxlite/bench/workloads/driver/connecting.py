"""Connections and cursors: what making and closing one costs."""

from oxlite.bench.workloads.driver.database import VALUE_CHARACTERS
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Peer

CONNECTING = Operations()

GET = "SELECT v FROM by_integer WHERE k = 7"


def _connects(peer: Peer, count: int, name: str) -> Batch:
    connect = peer.connector

    def run() -> int:
        done = 0
        for _ in range(count):
            connect(name).close()
            done += 1
        return done

    return Batch(run, count)


@CONNECTING.operation("connect, close: memory", 900)
def memory(peer: Peer, count: int) -> Batch:
    """With the driver's defaults, as all of these."""
    return _connects(peer, count, ":memory:")


@CONNECTING.operation("connect, close: WAL file", 450)
def wal_file(peer: Peer, count: int) -> Batch:
    """An existing file that another connection has open; SQLite reads nothing of it yet."""
    return _connects(peer, count, str(peer.path))


@CONNECTING.operation("connect, get, close: WAL file", 150)
def wal_file_used(peer: Peer, count: int) -> Batch:
    """With a first look-up, for which SQLite opens the log and reads the schema."""
    connect, path = peer.connector, str(peer.path)

    def run() -> int:
        characters = 0
        for _ in range(count):
            connection = connect(path)
            characters += len(connection.execute(GET).fetchone()[0])
            connection.close()
        return characters

    return Batch(run, VALUE_CHARACTERS * count)


@CONNECTING.operation("cursor()", 70_000)
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
