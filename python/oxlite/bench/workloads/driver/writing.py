"""Inserting, scripts and transactions, in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from oxlite.bench.workloads.driver import database
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer
from oxlite.bench.workloads.driver.reading import LARGE_BYTES, LONG_CHARACTERS, MIXED, WIDE

WRITING = Operations()

INSERT = "INSERT INTO t VALUES(?,?)"
STATEMENTS = 10
COUNT_AND_SUM = "SELECT count(*), sum(a) FROM t"


def _pairs(count: int) -> list[tuple[int, str]]:
    return [(n, database.text_value(n)) for n in range(count)]


def undone(connection: Handle, looking: str = COUNT_AND_SUM) -> Callable[[object], object]:
    """What was inserted, looked up and rolled back."""

    def result(_: object) -> tuple[object, ...]:
        row = tuple(connection.execute(looking).fetchone())
        connection.execute("ROLLBACK")
        return row

    return result


def _emptied(connection: Handle) -> Callable[[object], object]:
    """What was inserted, looked up and deleted."""

    def result(_: object) -> tuple[object, ...]:
        row = tuple(connection.execute(COUNT_AND_SUM).fetchone())
        connection.execute("DELETE FROM t")
        return row

    return result


def _inserts(
    execute: Callable[..., object], rows: Sequence[object], sql: str
) -> Callable[[], None]:
    def run() -> None:
        for row in rows:
            execute(sql, row)

    return run


@WRITING.operation("insert in a transaction", 15_000)
def insert(peer: Peer, count: int) -> Batch:
    """One row by one ``execute``."""
    connection = peer.table("a INTEGER, b TEXT", ())
    return Batch(
        _inserts(connection.execute, _pairs(count), INSERT),
        (count, sum(range(count))),
        lambda: connection.execute("BEGIN"),
        undone(connection),
    )


@WRITING.operation("insert, autocommit", 8_000)
def insert_autocommit(peer: Peer, count: int) -> Batch:
    """Each row a transaction; without a disk, what that costs besides."""
    connection = peer.table("a INTEGER, b TEXT", ())
    return Batch(
        _inserts(connection.execute, _pairs(count), INSERT),
        (count, sum(range(count))),
        None,
        _emptied(connection),
    )


def _executemany(peer: Peer, count: int, sets: Callable[[], Iterable[tuple[int, str]]]) -> Batch:
    connection = peer.table("a INTEGER, b TEXT", ())
    return Batch(
        lambda: connection.executemany(INSERT, sets()),
        (count, sum(range(count))),
        lambda: connection.execute("BEGIN"),
        undone(connection),
    )


@WRITING.operation("executemany of a list, a row", 30_000)
def executemany_list(peer: Peer, count: int) -> Batch:
    """All rows known beforehand."""
    rows = _pairs(count)
    return _executemany(peer, count, lambda: rows)


@WRITING.operation("executemany of a generator, a row", 25_000)
def executemany_generator(peer: Peer, count: int) -> Batch:
    """Rows made one by one while they are inserted."""
    rows = _pairs(count)

    def sets() -> Iterator[tuple[int, str]]:
        yield from rows

    return _executemany(peer, count, sets)


@WRITING.operation("NULL, float, integer in, a row", 30_000)
def mixed_in(peer: Peer, count: int) -> Batch:
    """Through ``executemany``: what the types other than text cost."""
    rows = [MIXED[n % len(MIXED)] for n in range(count)]
    connection = peer.table("a INTEGER, b REAL, c INTEGER", ())
    return Batch(
        lambda: connection.executemany("INSERT INTO t VALUES(?,?,?)", rows),
        (count, None, sum(b for _, b, _ in rows), sum(c for _, _, c in rows)),
        lambda: connection.execute("BEGIN"),
        undone(connection, "SELECT count(*), max(a), sum(b), sum(c) FROM t"),
    )


@WRITING.operation("row of 100 columns in", 3_000)
def wide_in(peer: Peer, count: int) -> Batch:
    """A hundred parameters of one statement."""
    connection = peer.table(",".join(f"c{n}" for n in range(WIDE)), ())
    rows = [tuple(range(n, n + WIDE)) for n in range(count)]
    return Batch(
        _inserts(
            connection.execute, rows, f"INSERT INTO t VALUES({','.join('?' for _ in range(WIDE))})"
        ),
        (count, sum(range(count)), sum(range(count)) + (WIDE - 1) * count),
        lambda: connection.execute("BEGIN"),
        undone(connection, f"SELECT count(*), sum(c0), sum(c{WIDE - 1}) FROM t"),
    )


def _value_in(peer: Peer, count: int, value: str | bytes) -> Batch:
    connection = peer.table("k INTEGER PRIMARY KEY, v", ((0, b""),))
    rows = [(value,)] * count
    return Batch(
        _inserts(connection.execute, rows, "UPDATE t SET v = ?"),
        (1, len(value), value),
        lambda: connection.execute("BEGIN"),
        undone(connection, "SELECT count(*), length(v), v FROM t"),
    )


@WRITING.operation("text of 100 KiB in", 1_200)
def long_text_in(peer: Peer, count: int) -> Batch:
    """Encoded and copied."""
    return _value_in(peer, count, "abcdefgh" * (LONG_CHARACTERS // 8))


@WRITING.operation("blob of 1 MiB in", 100)
def large_blob_in(peer: Peer, count: int) -> Batch:
    """Copied."""
    return _value_in(peer, count, bytes(range(256)) * (LARGE_BYTES // 256))


@WRITING.operation("executescript of 10 statements", 1_500)
def executescript(peer: Peer, count: int) -> Batch:
    """Eight inserts in one transaction; every statement is prepared anew."""
    connection = peer.table("a INTEGER, b TEXT", ())
    script = peer.script(connection)
    inserts = "".join(f"INSERT INTO t VALUES({n}, 'text');\n" for n in range(STATEMENTS - 2))
    text = f"BEGIN;\n{inserts}COMMIT;\n"

    def run() -> None:
        for _ in range(count):
            script(text)

    rows = STATEMENTS - 2
    return Batch(run, (count * rows, count * sum(range(rows))), None, _emptied(connection))


@WRITING.operation("begin, commit", 20_000)
def commit_empty(peer: Peer, count: int) -> Batch:
    """A transaction in which nothing happens."""
    connection = peer.table("a INTEGER, b TEXT", ())
    execute, commit = connection.execute, peer.committer(connection)

    def run() -> None:
        for _ in range(count):
            execute("BEGIN")
            commit()

    return Batch(run, (0, None, False), None, lambda _: _open_after(connection))


@WRITING.operation("begin, insert, commit", 5_000)
def commit_one_row(peer: Peer, count: int) -> Batch:
    """A transaction of one row."""
    connection = peer.table("a INTEGER, b TEXT", ())
    execute, commit = connection.execute, peer.committer(connection)

    def run() -> None:
        for _ in range(count):
            execute("BEGIN")
            execute(INSERT, (1, "text"))
            commit()

    return Batch(run, (count, count, False), None, lambda _: _open_after(connection))


def _open_after(connection: Handle) -> tuple[object, ...]:
    """What is in the table, and whether a transaction is still open; the table is emptied."""
    is_open = connection.in_transaction
    row = tuple(connection.execute(COUNT_AND_SUM).fetchone())
    connection.execute("DELETE FROM t")
    return (*row, is_open)
