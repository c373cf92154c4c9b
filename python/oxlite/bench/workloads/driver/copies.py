"""Whole databases: as SQL, into another database, as bytes."""

from functools import partial

from oxlite.bench.workloads.driver.bodies import COUNT_AND_SUM, repeated
from oxlite.bench.workloads.driver.database import pairs
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Call, Handle, Peer

COPIES = Operations()

DUMPED = 1_000
COPIED = 10_000
DEFINITION = "a INTEGER, b TEXT"
HEADER = b"SQLite format 3\0"


def _source(peer: Peer) -> Handle:
    return peer.table(DEFINITION, pairs(COPIED))


def _copied(copy: Call, target: Handle, count: int) -> Batch:
    """A batch that fills ``target``, over and over."""
    return Batch(
        repeated(count, copy),
        (COPIED, sum(range(COPIED))),
        result=lambda _: tuple(target.execute(COUNT_AND_SUM).fetchone()),
    )


@COPIES.operation("iterdump, 1,000 rows", 12)
def iterdump(peer: Peer, count: int) -> Batch:
    """All lines."""
    peer.standard("dump outside of its shell", "iterdump")
    connection = peer.table(DEFINITION, ((n, f"text {n}") for n in range(DUMPED)))
    rows = [f"INSERT INTO \"t\" VALUES({n},'text {n}');" for n in range(DUMPED)]
    expected = ["BEGIN TRANSACTION;", f"CREATE TABLE t({DEFINITION});", *rows, "COMMIT;"]
    return Batch(repeated(count, lambda: list(connection.iterdump())), expected)


@COPIES.operation("backup, 10,000 rows", 100)
def backup(peer: Peer, count: int) -> Batch:
    """From memory to memory, in one step."""
    target = peer.memory()
    return _copied(peer.backup(_source(peer), target), target, count)


@COPIES.operation("serialize, 10,000 rows", 180)
def serialize(peer: Peer, count: int) -> Batch:
    """To bytes."""
    connection = _source(peer)
    [pages], [size] = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
    )
    return Batch(
        repeated(count, peer.method(connection, "serialize")),
        (HEADER, True),
        result=lambda data: (data[: len(HEADER)], len(data) == pages * size),
    )


@COPIES.operation("deserialize, 10,000 rows", 300)
def deserialize(peer: Peer, count: int) -> Batch:
    """From bytes."""
    data = peer.method(_source(peer), "serialize")()
    target = peer.memory()
    return _copied(partial(peer.method(target, "deserialize"), data), target, count)
