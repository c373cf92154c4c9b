"""Rows out: looking up and fetching, and rows that are not plain tuples.

On the file where locks belong to it, else in memory.
"""

import dataclasses
from functools import partial
from typing import Any

from oxlite.bench.workloads.driver.bodies import fetches, lengths
from oxlite.bench.workloads.driver.database import ROWS, VALUE_CHARACTERS, pairs, text_key
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Call, Handle, Peer

READS = Operations()
ROW_FORMS = Operations()

WIDE = 100
LONG_TEXT = "abcdefgh" * ((100 << 10) // 8)
LARGE_BLOB = bytes(range(256)) * ((1 << 20) // 256)
MANY = 10_000
MIXED = [(None, number / 4, number) for number in range(1_000)]
NAMED = [(n, f"name {n}", n / 2) for n in range(1_000)]
SELECT_MANY = "SELECT k, v FROM t"
SELECT_NAMED = "SELECT id, name, score FROM t"


def _many(peer: Peer) -> Handle:
    return peer.table("k INTEGER PRIMARY KEY, v TEXT", pairs(MANY))


def _get(table: str, key: Call, peer: Peer, count: int) -> Batch:
    keys = [(key(n),) for n in peer.numbers("keys", count, ROWS)]
    run = lengths(peer.file.execute, f"SELECT v FROM {table} WHERE k = ?", keys)
    return Batch(run, VALUE_CHARACTERS * count)


# Each in a transaction of its own, which locks the file and lets it go.
READS.operation("get by integer key", 7_000)(partial(_get, "by_integer", int))
# The same through an index.
READS.operation("get by text key", 7_000)(partial(_get, "by_text", text_key))


def _get_in_transaction(table: str, key: Call, peer: Peer, count: int) -> Batch:
    """Without the locks: the driver and the look-up alone."""
    execute = peer.file.execute

    def committed(characters: int) -> int:
        execute("COMMIT")
        return characters

    alone = _get(table, key, peer, count)
    return dataclasses.replace(alone, before=lambda: execute("BEGIN"), result=committed)


READS.operation("get by integer key in a transaction", 8_000)(
    partial(_get_in_transaction, "by_integer", int)
)
READS.operation("get by text key in a transaction", 6_000)(
    partial(_get_in_transaction, "by_text", text_key)
)


@READS.operation("get by named parameter (dict)", 8_000)
def get_by_name(peer: Peer, count: int) -> Batch:
    """A dictionary in the place of a tuple."""
    keys = [{"key": n} for n in peer.numbers("keys", count, MANY)]
    run = lengths(_many(peer).execute, "SELECT v FROM t WHERE k = :key", keys)
    return Batch(run, VALUE_CHARACTERS * count)


@READS.operation("100 rows", 500)
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


@READS.operation("10,000 rows, iteration", 6)
def iteration(peer: Peer, count: int) -> Batch:
    """``for row in cursor``."""
    execute = _many(peer).execute

    def run() -> int:
        total = 0
        for _ in range(count):
            for row in execute(SELECT_MANY):
                total += row[0]
        return total

    return Batch(run, count * sum(range(MANY)))


@READS.operation("10,000 rows, fetchall", 6)
def fetchall(peer: Peer, count: int) -> Batch:
    """One list."""
    return Batch(fetches(_many(peer), SELECT_MANY, count), pairs(MANY))


@READS.operation("10,000 rows, fetchmany(100)", 6)
def fetchmany(peer: Peer, count: int) -> Batch:
    """A list of a hundred at a time."""
    peer.standard("fetchmany", "fetchmany")
    execute = _many(peer).execute

    def run() -> tuple[int, int]:
        rows = calls = 0
        for _ in range(count):
            cursor = execute(SELECT_MANY)
            while fetched := cursor.fetchmany(100):
                rows += len(fetched)
                calls += 1
        return rows, calls

    return Batch(run, (count * MANY, count * MANY // 100))


@READS.operation("row of 100 columns out", 3_000)
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


@READS.operation("1,000 rows of NULL, float, integer", 50)
def mixed_out(peer: Peer, count: int) -> Batch:
    """What the types other than text cost."""
    connection = peer.table("a, b REAL, c INTEGER", MIXED)
    return Batch(fetches(connection, "SELECT a, b, c FROM t", count), MIXED)


def _value(value: str | bytes, peer: Peer, count: int) -> Batch:
    execute = peer.table("v", [(value,)]).execute

    def run() -> tuple[int, object]:
        length, got = 0, None
        for _ in range(count):
            got = execute("SELECT v FROM t").fetchone()[0]
            length += len(got)
        return length, got

    return Batch(run, (count * len(value), value))


READS.operation("text of 100 KiB out", 1_000)(partial(_value, LONG_TEXT))
READS.operation("blob of 1 MiB out", 140)(partial(_value, LARGE_BLOB))


@READS.operation("text_factory=bytes, 1,000 rows", 90)
def text_factory(peer: Peer, count: int) -> Batch:
    """Text that is not decoded."""
    peer.standard("text_factory", "text_factory")
    rows = [(text,) for _, text in pairs(1_000)]
    connection = peer.table("v TEXT", rows)
    connection.text_factory = bytes
    expected = [(text.encode(),) for (text,) in rows]
    return Batch(fetches(connection, "SELECT v FROM t", count), expected)


def _named(peer: Peer) -> Handle:
    return peer.table("id INTEGER PRIMARY KEY, name TEXT, score REAL", NAMED)


def _rows(peer: Peer) -> Handle:
    """A connection that makes ``Row``."""
    library = peer.standard("class of rows with access by name", "Row")
    connection = _named(peer)
    connection.row_factory = library.Row
    return connection


@ROW_FORMS.operation("row_factory=Row, 1,000 rows", 30)
def row_factory(peer: Peer, count: int) -> Batch:
    """Fetched, and not looked at."""
    run = fetches(_rows(peer), SELECT_NAMED, count)
    return Batch(run, NAMED, result=lambda rows: [tuple(row) for row in rows])


def _scores(column: str | int, peer: Peer, count: int) -> Batch:
    """``row["score"]`` and ``row[2]``."""
    fetched = _rows(peer).execute(SELECT_NAMED).fetchall()
    rows = [fetched[n % len(NAMED)] for n in range(count)]

    def run() -> float:
        total, wanted = 0.0, column
        for row in rows:
            total += row[wanted]
        return total

    return Batch(run, sum(NAMED[n % len(NAMED)][2] for n in range(count)))


ROW_FORMS.operation("Row by name", 180_000)(partial(_scores, "score"))
ROW_FORMS.operation("Row by index", 300_000)(partial(_scores, 2))


def dictionary(cursor: Handle, row: tuple[Any, ...]) -> dict[str, Any]:
    """The row factory that the standard library's documentation shows."""
    names = [column[0] for column in cursor.description]
    return dict(zip(names, row, strict=False))


@ROW_FORMS.operation("row_factory of dictionaries, 1,000 rows", 10)
def dictionaries(peer: Peer, count: int) -> Batch:
    """A Python function for each row."""
    connection = _named(peer)
    setattr(connection, peer.row_factory, dictionary)
    expected = [dict(zip(("id", "name", "score"), row, strict=True)) for row in NAMED]
    return Batch(fetches(connection, SELECT_NAMED, count), expected)
