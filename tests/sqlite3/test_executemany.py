"""``executemany``: any iterable of parameter sets, errors in the middle, what it refuses."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oxlite import sqlite3


@pytest.fixture
def table(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A connection with the empty table ``t(a UNIQUE, b)``."""
    connection.execute("CREATE TABLE t(a UNIQUE, b)")
    return connection


def rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT a FROM t ORDER BY a").fetchall()


@pytest.mark.parametrize(
    "parameter_sets",
    [
        [(1, 1), (2, 2), (3, 3)],
        ((n, n) for n in (1, 2, 3)),
        iter([[1, 1], [2, 2], [3, 3]]),
        {(1, 1): None, (2, 2): None, (3, 3): None},
        zip((1, 2, 3), (1, 2, 3), strict=True),
    ],
    ids=["list", "generator", "iterator of lists", "dict", "zip"],
)
def test_any_iterable_will_do(
    table: sqlite3.Connection, parameter_sets: Iterator[tuple[int, int]]
) -> None:
    cursor = table.executemany("INSERT INTO t VALUES (?, ?)", parameter_sets)
    assert cursor.rowcount == 3
    assert cursor.description is None
    assert rows(table) == [(1,), (2,), (3,)]


def test_named_parameters(table: sqlite3.Connection) -> None:
    table.executemany("INSERT INTO t VALUES (:a, :b)", [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    assert rows(table) == [(1,), (3,)]


def test_no_parameter_sets_change_nothing(table: sqlite3.Connection) -> None:
    cursor = table.executemany("INSERT INTO t VALUES (?, ?)", [])
    assert cursor.rowcount == 0
    assert rows(table) == []


def test_the_row_count_is_the_sum(table: sqlite3.Connection) -> None:
    table.executemany("INSERT INTO t VALUES (?, ?)", [(n, n % 3) for n in range(9)])
    cursor = table.executemany("UPDATE t SET b = 7 WHERE b = ?", [(0,), (1,), (99,)])
    assert cursor.rowcount == 6
    assert table.executemany("DELETE FROM t WHERE b = ?", [(7,), (2,)]).rowcount == 9


def test_lastrowid_is_left_alone(table: sqlite3.Connection) -> None:
    cursor = table.cursor()
    cursor.execute("INSERT INTO t VALUES (0, 0)")
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, 1), (2, 2)])
    assert cursor.lastrowid == 1


def test_returned_rows_are_discarded(table: sqlite3.Connection) -> None:
    cursor = table.executemany("INSERT INTO t VALUES (?, 0) RETURNING a", [(1,), (2,)])
    assert cursor.fetchall() == []
    assert cursor.rowcount == 2
    assert rows(table) == [(1,), (2,)]


def test_it_begins_one_transaction(table: sqlite3.Connection) -> None:
    states = []

    def parameter_sets() -> Iterator[tuple[int, int]]:
        for n in range(3):
            states.append(table.in_transaction)
            yield n, n

    assert not table.in_transaction
    table.executemany("INSERT INTO t VALUES (?, ?)", parameter_sets())
    assert states[1:] == [True, True]
    assert table.in_transaction
    table.rollback()
    assert rows(table) == []


def test_without_implicit_transactions_each_set_commits(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    other = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(a)")
    seen = []

    def parameter_sets() -> Iterator[tuple[int]]:
        for n in range(3):
            seen.append(other.execute("SELECT count(*) FROM t").fetchone()[0])
            yield (n,)

    connection.executemany("INSERT INTO t VALUES (?)", parameter_sets())
    assert seen == [0, 1, 2]
    assert not connection.in_transaction
    connection.close()
    other.close()


def test_an_error_in_the_middle_keeps_the_sets_before_it(table: sqlite3.Connection) -> None:
    cursor = table.cursor()
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        cursor.executemany("INSERT INTO t VALUES (?, 0)", [(1,), (2,), (1,), (3,)])
    assert cursor.rowcount == -1
    assert table.in_transaction
    assert rows(table) == [(1,), (2,)]
    table.rollback()
    assert rows(table) == []


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ((1, 2), sqlite3.ProgrammingError, "uses 1, and there are 2 supplied"),
        ((), sqlite3.ProgrammingError, "uses 1, and there are 0 supplied"),
        (7, sqlite3.ProgrammingError, "unsupported type"),
        ((object(),), sqlite3.ProgrammingError, "type 'object' is not supported"),
        ((2**63,), OverflowError, "too large"),
        (("\ud800",), UnicodeEncodeError, "surrogates"),
    ],
)
def test_a_bad_set_in_the_middle(
    table: sqlite3.Connection, bad: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        table.executemany("INSERT INTO t VALUES (?, 0)", [(1,), bad, (2,)])
    assert rows(table) == [(1,)]


def test_what_the_iterator_raises_comes_through(table: sqlite3.Connection) -> None:
    def parameter_sets() -> Iterator[tuple[int]]:
        yield (1,)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        table.executemany("INSERT INTO t VALUES (?, 0)", parameter_sets())
    assert rows(table) == [(1,)]
    assert table.executemany("INSERT INTO t VALUES (?, 0)", [(2,)]).rowcount == 1


@pytest.mark.parametrize("sql", ["SELECT ?", "BEGIN", "", "-- nothing"])
def test_only_data_modification_is_accepted(table: sqlite3.Connection, sql: str) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match="can only execute DML"):
        table.executemany(sql, [(1,)])


def test_what_is_no_iterable_is_refused(table: sqlite3.Connection) -> None:
    with pytest.raises(TypeError, match="not iterable"):
        table.executemany("INSERT INTO t VALUES (?, 0)", 42)
    with pytest.raises(TypeError):
        table.executemany("INSERT INTO t VALUES (?, 0)")


def test_rows_are_copied_from_another_cursor_of_the_connection(table: sqlite3.Connection) -> None:
    table.executemany("INSERT INTO t VALUES (?, ?)", [(n, n) for n in range(100)])
    table.execute("CREATE TABLE copy(a, b)")
    table.executemany("INSERT INTO copy VALUES (?, ?)", table.execute("SELECT * FROM t"))
    assert table.execute("SELECT count(*), sum(a) FROM copy").fetchone() == (100, 4950)


def test_a_set_that_looks_finds_those_before_it_executed(table: sqlite3.Connection) -> None:
    """Also in a list, of which many sets are taken at once."""
    found = []

    class Looking(list[int]):
        def __getitem__(self, index: object) -> object:
            found.append(rows(table))
            return super().__getitem__(index)  # type: ignore[index]

    table.executemany("INSERT INTO t VALUES (?, 0)", [(1,), (2,), Looking([3]), (4,)])
    assert found == [[(1,), (2,)]]
    assert rows(table) == [(1,), (2,), (3,), (4,)]


def test_the_iterator_may_use_the_connection(table: sqlite3.Connection) -> None:
    """It commits, executes the very same SQL on another cursor, and makes tables."""

    def parameter_sets() -> Iterator[tuple[int]]:
        yield (1,)
        table.execute("INSERT INTO t VALUES (?, 0)", (2,))
        yield (3,)
        table.commit()
        yield (4,)
        table.execute("CREATE TABLE u(a)")
        yield (5,)

    table.executemany("INSERT INTO t VALUES (?, 0)", parameter_sets())
    assert rows(table) == [(1,), (2,), (3,), (4,), (5,)]


_ITERATOR_ASKS_ITS_CURSOR = """
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t(a)")
cursor = connection.cursor()

def parameter_sets():
    yield (1,)
    for name in ("rowcount", "description", "lastrowid", "arraysize", "row_factory", "connection"):
        getattr(cursor, name)
    cursor.arraysize = 5
    cursor.row_factory = None
    yield (2,)

cursor.executemany("INSERT INTO t VALUES (?)", parameter_sets())
assert connection.execute("SELECT sum(a) FROM t").fetchone() == (3,)
"""


def test_the_iterator_may_ask_the_cursor_that_runs_it(child: Callable[..., str]) -> None:
    child(_ITERATOR_ASKS_ITS_CURSOR)


_ITERATOR_USES_ITS_CURSOR = """
import sys
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t(a)")
cursor = connection.cursor()
use = {
    "execute": lambda: cursor.execute("SELECT 1"),
    "executemany": lambda: cursor.executemany("INSERT INTO t VALUES (?)", [(9,)]),
    "executescript": lambda: cursor.executescript("SELECT 1"),
    "fetchone": lambda: cursor.fetchone(),
    "fetchmany": lambda: cursor.fetchmany(),
    "fetchall": lambda: cursor.fetchall(),
    "next": lambda: next(cursor),
    "close": lambda: cursor.close(),
}[sys.argv[1]]

def parameter_sets():
    yield (1,)
    use()

try:
    cursor.executemany("INSERT INTO t VALUES (?)", parameter_sets())
except sqlite3.ProgrammingError as error:
    assert "Recursive use of cursors" in str(error), error
else:
    sys.exit("the recursive use was not refused")
assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
assert cursor.execute("SELECT 5").fetchone() == (5,)
"""


@pytest.mark.parametrize(
    "use",
    ["execute", "executemany", "executescript", "fetchone", "fetchmany", "fetchall", "close"],
)
def test_the_iterator_cannot_use_the_cursor_that_runs_it(
    child: Callable[..., str], use: str
) -> None:
    child(_ITERATOR_USES_ITS_CURSOR, use)


_ITERATOR_CLOSES_THE_CONNECTION = """
import sys
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t(a)")

def parameter_sets():
    yield (1,)
    connection.close()
    yield (2,)

try:
    connection.executemany("INSERT INTO t VALUES (?)", parameter_sets())
except sqlite3.Error:
    pass
else:
    sys.exit("executed on a closed connection")
"""


def test_an_iterator_that_closes_the_connection_ends_in_an_error(
    child: Callable[..., str],
) -> None:
    child(_ITERATOR_CLOSES_THE_CONNECTION)


_ITERATOR_WAITS_FOR_A_THREAD = """
import queue, threading
from oxlite import sqlite3
connection = sqlite3.connect(":memory:", check_same_thread=False)
connection.executescript(
    "CREATE TABLE a(x); CREATE TABLE b(x); INSERT INTO a VALUES (1), (2), (3)"
)
handed_over = queue.Queue(1)

def produce():
    for row in connection.execute("SELECT x FROM a"):
        handed_over.put(row)
    handed_over.put(None)

threading.Thread(target=produce, daemon=True).start()
connection.executemany("INSERT INTO b VALUES (?)", iter(handed_over.get, None))
assert connection.execute("SELECT sum(x) FROM b").fetchone() == (6,)
"""


def test_the_iterator_may_wait_for_a_thread_that_uses_the_connection(
    child: Callable[..., str],
) -> None:
    """A producer reads rows in one thread, and the consumer writes them on the same connection."""
    child(_ITERATOR_WAITS_FOR_A_THREAD)
