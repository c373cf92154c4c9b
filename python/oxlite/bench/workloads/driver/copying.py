"""Whole databases: as SQL, into another database, as bytes."""

from oxlite.bench.workloads.driver import database
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer

COPYING = Operations()

DUMPED = 1_000
COPIED = 10_000
DEFINITION = "a INTEGER, b TEXT"
HEADER = b"SQLite format 3\0"
COUNT_AND_SUM = "SELECT count(*), sum(a) FROM t"
COPIED_SUM = (COPIED, sum(range(COPIED)))


def _source(peer: Peer) -> Handle:
    return peer.table(DEFINITION, ((n, database.text_value(n)) for n in range(COPIED)))


@COPYING.operation("iterdump, 1,000 rows", 12)
def iterdump(peer: Peer, count: int) -> Batch:
    """All lines."""
    peer.standard("dump outside of its shell", "iterdump")
    connection = peer.table(DEFINITION, ((n, f"text {n}") for n in range(DUMPED)))

    def run() -> list[str]:
        lines = []
        for _ in range(count):
            lines = list(connection.iterdump())
        return lines

    rows = [f"INSERT INTO \"t\" VALUES({n},'text {n}');" for n in range(DUMPED)]
    return Batch(run, ["BEGIN TRANSACTION;", f"CREATE TABLE t({DEFINITION});", *rows, "COMMIT;"])


@COPYING.operation("backup, 10,000 rows", 100)
def backup(peer: Peer, count: int) -> Batch:
    """From memory to memory, in one step."""
    target = peer.memory()
    copy = peer.backup(_source(peer), target)

    def run() -> None:
        for _ in range(count):
            copy()

    return Batch(run, COPIED_SUM, None, lambda _: tuple(target.execute(COUNT_AND_SUM).fetchone()))


@COPYING.operation("serialize, 10,000 rows", 180)
def serialize(peer: Peer, count: int) -> Batch:
    """To bytes."""
    connection = _source(peer)
    serializer = peer.serializer(connection)
    [pages], [size] = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
    )

    def run() -> bytes:
        data = b""
        for _ in range(count):
            data = serializer()
        return data

    return Batch(
        run, (HEADER, True), None, lambda data: (data[: len(HEADER)], len(data) == pages * size)
    )


@COPYING.operation("deserialize, 10,000 rows", 300)
def deserialize(peer: Peer, count: int) -> Batch:
    """From bytes."""
    data = peer.serializer(_source(peer))()
    target = peer.memory()
    deserializer = peer.deserializer(target)

    def run() -> None:
        for _ in range(count):
            deserializer(data)

    return Batch(run, COPIED_SUM, None, lambda _: tuple(target.execute(COUNT_AND_SUM).fetchone()))
