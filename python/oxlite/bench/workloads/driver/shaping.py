"""Rows that are not plain tuples."""

from collections.abc import Callable
from typing import Any

from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer

SHAPING = Operations()

ROWS = [(n, f"name {n}", n / 2) for n in range(1_000)]
SELECT = "SELECT id, name, score FROM t"
FEATURE = "class of rows with access by name"


def _table(peer: Peer) -> Handle:
    return peer.table("id INTEGER PRIMARY KEY, name TEXT, score REAL", ROWS)


def _rows(peer: Peer) -> Handle:
    """A connection that makes ``Row``."""
    library = peer.standard(FEATURE, "Row")
    connection = _table(peer)
    connection.row_factory = library.Row
    return connection


def _fetches(connection: Handle, count: int) -> Callable[[], list[Any]]:
    def run() -> list[Any]:
        fetched = []
        for _ in range(count):
            fetched = connection.execute(SELECT).fetchall()
        return fetched

    return run


@SHAPING.operation("row_factory=Row, 1,000 rows", 30)
def row_factory(peer: Peer, count: int) -> Batch:
    """Fetched, and not looked at."""
    run = _fetches(_rows(peer), count)
    return Batch(run, ROWS, None, lambda rows: [tuple(row) for row in rows])


@SHAPING.operation("Row by name", 180_000)
def by_name(peer: Peer, count: int) -> Batch:
    """``row["score"]``."""
    fetched = _rows(peer).execute(SELECT).fetchall()
    rows = [fetched[n % len(ROWS)] for n in range(count)]

    def run() -> float:
        total = 0.0
        for row in rows:
            total += row["score"]
        return total

    return Batch(run, sum(ROWS[n % len(ROWS)][2] for n in range(count)))


@SHAPING.operation("Row by index", 300_000)
def by_index(peer: Peer, count: int) -> Batch:
    """``row[2]``."""
    fetched = _rows(peer).execute(SELECT).fetchall()
    rows = [fetched[n % len(ROWS)] for n in range(count)]

    def run() -> float:
        total = 0.0
        for row in rows:
            total += row[2]
        return total

    return Batch(run, sum(ROWS[n % len(ROWS)][2] for n in range(count)))


def dictionary(cursor: Handle, row: tuple[Any, ...]) -> dict[str, Any]:
    """The row factory that the standard library's documentation shows."""
    names = [column[0] for column in cursor.description]
    return dict(zip(names, row, strict=False))


@SHAPING.operation("row_factory of dictionaries, 1,000 rows", 10)
def dictionaries(peer: Peer, count: int) -> Batch:
    """A Python function for each row."""
    connection = _table(peer)
    peer.set_row_factory(connection, dictionary)
    run = _fetches(connection, count)
    return Batch(run, [dict(zip(("id", "name", "score"), row, strict=True)) for row in ROWS])
