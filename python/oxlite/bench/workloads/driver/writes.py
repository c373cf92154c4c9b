"""Rows in: inserting, scripts and transactions, in memory."""

from collections.abc import Iterator
from functools import partial

from oxlite.bench.workloads.driver.bodies import executions, looked_up, rolled_back
from oxlite.bench.workloads.driver.database import pairs
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Call, Handle, Peer
from oxlite.bench.workloads.driver.reads import LARGE_BLOB, LONG_TEXT, MIXED, WIDE

WRITES = Operations()

INSERT = "INSERT INTO t VALUES(?,?)"
SCRIPT_INSERTS = 8
SCRIPT = "BEGIN;\n{}COMMIT;\n".format(
    "".join(f"INSERT INTO t VALUES({n}, 'text');\n" for n in range(SCRIPT_INSERTS))
)


def _empty(peer: Peer) -> Handle:
    return peer.table("a INTEGER, b TEXT", ())


@WRITES.operation("insert in a transaction", 15_000)
def insert(peer: Peer, count: int) -> Batch:
    """One row by one ``execute``."""
    connection = _empty(peer)
    run = executions(connection.execute, INSERT, pairs(count))
    return rolled_back(connection, run, (count, sum(range(count))))


@WRITES.operation("insert, autocommit", 8_000)
def insert_autocommit(peer: Peer, count: int) -> Batch:
    """Each row a transaction; without a disk, what that costs besides."""
    connection = _empty(peer)
    run = executions(connection.execute, INSERT, pairs(count))
    result = looked_up(connection, "DELETE FROM t")
    return Batch(run, (count, sum(range(count))), result=result)


@WRITES.operation("executemany of a list, a row", 30_000)
def executemany_list(peer: Peer, count: int) -> Batch:
    """All rows known beforehand."""
    connection, rows = _empty(peer), pairs(count)
    expected = (count, sum(range(count)))
    return rolled_back(connection, lambda: connection.executemany(INSERT, rows), expected)


@WRITES.operation("executemany of a generator, a row", 25_000)
def executemany_generator(peer: Peer, count: int) -> Batch:
    """Rows made one by one while they are inserted."""
    connection, rows = _empty(peer), pairs(count)

    def sets() -> Iterator[tuple[int, str]]:
        yield from rows

    expected = (count, sum(range(count)))
    return rolled_back(connection, lambda: connection.executemany(INSERT, sets()), expected)


@WRITES.operation("NULL, float, integer in, a row", 30_000)
def mixed_in(peer: Peer, count: int) -> Batch:
    """Through ``executemany``: what the types other than text cost."""
    rows = [MIXED[n % len(MIXED)] for n in range(count)]
    connection = peer.table("a INTEGER, b REAL, c INTEGER", ())
    return rolled_back(
        connection,
        lambda: connection.executemany("INSERT INTO t VALUES(?,?,?)", rows),
        (count, None, sum(b for _, b, _ in rows), sum(c for _, _, c in rows)),
        "SELECT count(*), max(a), sum(b), sum(c) FROM t",
    )


@WRITES.operation("row of 100 columns in", 3_000)
def wide_in(peer: Peer, count: int) -> Batch:
    """A hundred parameters of one statement."""
    connection = peer.table(",".join(f"c{n}" for n in range(WIDE)), ())
    rows = [tuple(range(n, n + WIDE)) for n in range(count)]
    sql = f"INSERT INTO t VALUES({','.join('?' for _ in range(WIDE))})"
    return rolled_back(
        connection,
        executions(connection.execute, sql, rows),
        (count, sum(range(count)), sum(range(count)) + (WIDE - 1) * count),
        f"SELECT count(*), sum(c0), sum(c{WIDE - 1}) FROM t",
    )


def _value(value: str | bytes, peer: Peer, count: int) -> Batch:
    connection = peer.table("k INTEGER PRIMARY KEY, v", ((0, b""),))
    run = executions(connection.execute, "UPDATE t SET v = ?", [(value,)] * count)
    return rolled_back(
        connection, run, (1, len(value), value), "SELECT count(*), length(v), v FROM t"
    )


WRITES.operation("text of 100 KiB in", 1_200)(partial(_value, LONG_TEXT))
WRITES.operation("blob of 1 MiB in", 100)(partial(_value, LARGE_BLOB))


@WRITES.operation("executescript of 10 statements", 1_500)
def executescript(peer: Peer, count: int) -> Batch:
    """Eight inserts in one transaction, the same script again and again."""
    connection = _empty(peer)
    script = peer.method(connection, "executescript")

    def run() -> None:
        for _ in range(count):
            script(SCRIPT)

    expected = (count * SCRIPT_INSERTS, count * sum(range(SCRIPT_INSERTS)))
    return Batch(run, expected, result=looked_up(connection, "DELETE FROM t"))


def _committed(connection: Handle, run: Call, count: int, total: int | None) -> Batch:
    """A batch after which no transaction is open, and the table is emptied."""
    emptied = looked_up(connection, "DELETE FROM t")
    return Batch(
        run, (False, count, total), result=lambda _: (connection.in_transaction, *emptied(None))
    )


@WRITES.operation("begin, commit", 20_000)
def commit_empty(peer: Peer, count: int) -> Batch:
    """A transaction in which nothing happens."""
    connection = _empty(peer)
    execute, commit = connection.execute, peer.method(connection, "commit")

    def run() -> None:
        for _ in range(count):
            execute("BEGIN")
            commit()

    return _committed(connection, run, 0, None)


@WRITES.operation("begin, insert, commit", 5_000)
def commit_one_row(peer: Peer, count: int) -> Batch:
    """A transaction of one row."""
    connection = _empty(peer)
    execute, commit = connection.execute, peer.method(connection, "commit")

    def run() -> None:
        for _ in range(count):
            execute("BEGIN")
            execute(INSERT, (1, "text"))
            commit()

    return _committed(connection, run, count, count)
