"""Looking up and fetching: on the file where locks belong to it, else in memory."""

from collections.abc import Callable

from oxlite.bench.workloads.driver import database
from oxlite.bench.workloads.driver.database import ROWS, VALUE_CHARACTERS
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer

READING = Operations()

MANY = 10_000
WIDE = 100
LONG_CHARACTERS = 100 << 10
LARGE_BYTES = 1 << 20
MIXED = [(None, number / 4, number) for number in range(1_000)]
MIXED_SUM = sum(number / 4 + number for _, _, number in MIXED)


def _many(peer: Peer) -> Handle:
    return peer.table(
        "k INTEGER PRIMARY KEY, v TEXT", ((n, database.text_value(n)) for n in range(MANY))
    )


def _gets(connection: Handle, sql: str, keys: list[tuple[object]]) -> Callable[[], int]:
    execute = connection.execute

    def run() -> int:
        characters = 0
        for key in keys:
            characters += len(execute(sql, key).fetchone()[0])
        return characters

    return run


@READING.operation("get by integer key", 3_000)
def by_integer_key(peer: Peer, count: int) -> Batch:
    """Each in a transaction of its own, which locks the file and lets it go."""
    keys: list[tuple[object]] = [(n,) for n in peer.numbers("keys", count, ROWS)]
    run = _gets(peer.file, "SELECT v FROM by_integer WHERE k = ?", keys)
    return Batch(run, VALUE_CHARACTERS * count)


@READING.operation("get by text key", 2_500)
def by_text_key(peer: Peer, count: int) -> Batch:
    """The same through an index."""
    keys: list[tuple[object]] = [(database.text_key(n),) for n in peer.numbers("keys", count, ROWS)]
    run = _gets(peer.file, "SELECT v FROM by_text WHERE k = ?", keys)
    return Batch(run, VALUE_CHARACTERS * count)


@READING.operation("get by text key in a transaction", 6_000)
def in_transaction(peer: Peer, count: int) -> Batch:
    """Without the locks: the driver and the look-up alone."""
    alone = by_text_key(peer, count)
    execute = peer.file.execute

    def committed(characters: int) -> int:
        execute("COMMIT")
        return characters

    return Batch(alone.run, alone.expected, lambda: execute("BEGIN"), committed)


@READING.operation("get by named parameter (dict)", 8_000)
def by_name(peer: Peer, count: int) -> Batch:
    """A dictionary in the place of a tuple."""
    execute = _many(peer).execute
    parameters = [{"key": n} for n in peer.numbers("keys", count, MANY)]

    def run() -> int:
        characters = 0
        for named in parameters:
            characters += len(execute("SELECT v FROM t WHERE k = :key", named).fetchone()[0])
        return characters

    return Batch(run, VALUE_CHARACTERS * count)


@READING.operation("100 rows", 500)
def hundred_rows(peer: Peer, count: int) -> Batch:
    """A page of a list: an integer and a text, from the file."""
    execute = peer.file.execute
    starts = [(n,) for n in peer.numbers("starts", count, ROWS - 100)]
    sql = "SELECT k, v FROM by_integer WHERE k >= ? ORDER BY k LIMIT 100"

    def run() -> tuple[int, int]:
        rows = total = 0
        for start in starts:
            fetched = execute(sql, start).fetchall()
            rows += len(fetched)
            total += fetched[-1][0]
        return rows, total

    return Batch(run, (100 * count, sum(start + 99 for (start,) in starts)))


@READING.operation("10,000 rows, iteration", 6)
def iteration(peer: Peer, count: int) -> Batch:
    """``for row in cursor``."""
    execute = _many(peer).execute

    def run() -> int:
        total = 0
        for _ in range(count):
            for row in execute("SELECT k, v FROM t"):
                total += row[0]
        return total

    return Batch(run, count * sum(range(MANY)))


@READING.operation("10,000 rows, fetchall", 6)
def fetchall(peer: Peer, count: int) -> Batch:
    """One list."""
    execute = _many(peer).execute

    def run() -> list[tuple[int, str]]:
        fetched = []
        for _ in range(count):
            fetched = execute("SELECT k, v FROM t").fetchall()
        return fetched

    return Batch(run, [(n, database.text_value(n)) for n in range(MANY)])


@READING.operation("10,000 rows, fetchmany(100)", 6)
def fetchmany(peer: Peer, count: int) -> Batch:
    """A list of a hundred at a time."""
    peer.standard("fetchmany", "fetchmany")
    execute = _many(peer).execute

    def run() -> tuple[int, int]:
        rows = calls = 0
        for _ in range(count):
            cursor = execute("SELECT k, v FROM t")
            while fetched := cursor.fetchmany(100):
                rows += len(fetched)
                calls += 1
        return rows, calls

    return Batch(run, (count * MANY, count * MANY // 100))


@READING.operation("row of 100 columns out", 3_000)
def wide_out(peer: Peer, count: int) -> Batch:
    """Integers: what a column costs."""
    execute = peer.table(",".join(f"c{n}" for n in range(WIDE)), [range(WIDE)]).execute

    def run() -> int:
        total = 0
        for _ in range(count):
            row = execute("SELECT * FROM t").fetchone()
            total += len(row) + row[-1]
        return total

    return Batch(run, count * (WIDE + WIDE - 1))


@READING.operation("1,000 rows of NULL, float, integer", 50)
def mixed_out(peer: Peer, count: int) -> Batch:
    """What the types other than text cost."""
    execute = peer.table("a, b REAL, c INTEGER", MIXED).execute

    def run() -> list[tuple[None, float, int]]:
        fetched = []
        for _ in range(count):
            fetched = execute("SELECT a, b, c FROM t").fetchall()
        return fetched

    return Batch(run, MIXED)


def _values(peer: Peer, count: int, value: str | bytes) -> Batch:
    execute = peer.table("v", [(value,)]).execute

    def run() -> tuple[int, object]:
        length, got = 0, None
        for _ in range(count):
            got = execute("SELECT v FROM t").fetchone()[0]
            length += len(got)
        return length, got

    return Batch(run, (count * len(value), value))


@READING.operation("text of 100 KiB out", 1_000)
def long_text_out(peer: Peer, count: int) -> Batch:
    """Copied and decoded."""
    return _values(peer, count, "abcdefgh" * (LONG_CHARACTERS // 8))


@READING.operation("blob of 1 MiB out", 140)
def large_blob_out(peer: Peer, count: int) -> Batch:
    """Copied."""
    return _values(peer, count, bytes(range(256)) * (LARGE_BYTES // 256))


@READING.operation("text_factory=bytes, 1,000 rows", 90)
def text_factory(peer: Peer, count: int) -> Batch:
    """Text that is not decoded."""
    rows = [(database.text_value(n),) for n in range(1_000)]
    connection = peer.table("v TEXT", rows)
    peer.standard("text_factory", "text_factory")
    connection.text_factory = bytes

    def run() -> list[tuple[bytes]]:
        fetched = []
        for _ in range(count):
            fetched = connection.execute("SELECT v FROM t").fetchall()
        return fetched

    return Batch(run, [(text.encode(),) for (text,) in rows])
