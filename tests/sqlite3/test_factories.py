"""``row_factory`` and ``text_factory``: who has one, and factories that raise, re-enter, close."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from oxlite import sqlite3

THREE = "SELECT column1 AS n FROM (VALUES (1), (2), (3))"
TEXTS = "SELECT column1 FROM (VALUES ('a'), ('b'), ('c'))"

FETCHES: dict[str, Callable[[sqlite3.Cursor], list[Any]]] = {
    "fetchone": lambda cursor: [cursor.fetchone(), cursor.fetchone(), cursor.fetchone()],
    "fetchmany": lambda cursor: cursor.fetchmany(100),
    "fetchall": lambda cursor: cursor.fetchall(),
    "iteration": lambda cursor: list(cursor),
}
fetching = pytest.mark.parametrize("fetch", FETCHES.values(), ids=FETCHES.keys())


@fetching
def test_the_factory_makes_every_row(
    connection: sqlite3.Connection, fetch: Callable[[sqlite3.Cursor], list[Any]]
) -> None:
    calls = []

    def factory(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> object:
        calls.append((cursor, row))
        return {cursor.description[0][0]: row[0]}

    connection.row_factory = factory
    cursor = connection.execute(THREE)
    assert fetch(cursor) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert calls == [(cursor, (1,)), (cursor, (2,)), (cursor, (3,))]
    assert all(type(row) is tuple for _, row in calls)


def test_a_cursor_takes_over_the_factory_when_it_is_made(connection: sqlite3.Connection) -> None:
    assert connection.row_factory is None
    before = connection.cursor()
    connection.row_factory = sqlite3.Row
    after = connection.cursor()
    connection.row_factory = None
    assert before.row_factory is None
    assert after.row_factory is sqlite3.Row
    assert type(before.execute("SELECT 1").fetchone()) is tuple
    assert type(after.execute("SELECT 1").fetchone()) is sqlite3.Row
    after.row_factory = lambda cursor, row: row[0]
    assert after.execute("SELECT 1").fetchone() == 1
    after.row_factory = None
    assert after.execute("SELECT 1").fetchone() == (1,)


def test_a_cursor_of_ones_own_does_not_take_it_over(connection: sqlite3.Connection) -> None:
    connection.row_factory = sqlite3.Row
    assert sqlite3.Cursor(connection).row_factory is None
    assert connection.cursor(sqlite3.Cursor).row_factory is sqlite3.Row


def test_the_factory_may_change_between_rows(connection: sqlite3.Connection) -> None:
    cursor = connection.execute(THREE)
    assert cursor.fetchone() == (1,)
    cursor.row_factory = lambda _, row: row[0]
    assert cursor.fetchone() == 2
    cursor.row_factory = None
    assert cursor.fetchone() == (3,)


@fetching
def test_a_row_factory_that_raises(
    connection: sqlite3.Connection, fetch: Callable[[sqlite3.Cursor], list[Any]]
) -> None:
    def factory(cursor: sqlite3.Cursor, row: tuple[int, ...]) -> object:
        return 6 // (row[0] - 2)

    connection.row_factory = factory
    cursor = connection.execute(THREE)
    with pytest.raises(ZeroDivisionError):
        fetch(cursor)
    assert cursor.fetchall() == [6]
    assert cursor.execute("SELECT 5").fetchone() == 2


@pytest.mark.parametrize("factory", [5, "text", object()])
def test_a_row_factory_that_cannot_be_called(
    connection: sqlite3.Connection, factory: object
) -> None:
    connection.row_factory = factory
    with pytest.raises(TypeError):
        connection.execute("SELECT 1").fetchone()


def test_a_row_factory_may_use_the_connection(connection: sqlite3.Connection) -> None:
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")

    def factory(cursor: sqlite3.Cursor, row: tuple[int, ...]) -> object:
        other = connection.cursor()
        other.row_factory = None
        return other.execute("SELECT sum(a) FROM t WHERE a <= ?", row).fetchone()[0]

    connection.row_factory = factory
    assert connection.execute("SELECT a FROM t ORDER BY a").fetchall() == [1, 3, 6]


def test_a_row_factory_may_fetch_from_its_own_cursor(connection: sqlite3.Connection) -> None:
    def factory(cursor: sqlite3.Cursor, row: tuple[int, ...]) -> object:
        if row[0] % 2 == 0:
            return row
        cursor.row_factory = None
        following = cursor.fetchone()
        cursor.row_factory = factory
        return (row, following)

    connection.row_factory = factory
    assert connection.execute(THREE).fetchall() == [((1,), (2,)), ((3,), None)]


def test_a_row_factory_may_execute_on_its_own_cursor(connection: sqlite3.Connection) -> None:
    def factory(cursor: sqlite3.Cursor, row: tuple[int, ...]) -> object:
        if row == (1,):
            cursor.execute("SELECT 7 UNION SELECT 8")
        return row[0]

    connection.row_factory = factory
    assert connection.execute(THREE).fetchall() == [1, 7, 8]


def test_a_row_factory_may_close_its_cursor() -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = lambda cursor, row: cursor.close() or row
    cursor = connection.execute(THREE)
    assert cursor.fetchone() == (1,)
    with pytest.raises(sqlite3.ProgrammingError, match="closed cursor"):
        cursor.fetchone()
    with pytest.raises(sqlite3.ProgrammingError, match="closed cursor"):
        connection.execute(THREE).fetchall()
    connection.close()


def test_a_row_factory_may_close_the_connection() -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = lambda cursor, row: connection.close() or row
    cursor = connection.execute(THREE)
    assert cursor.fetchone() == (1,)
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        cursor.fetchone()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.cursor()


def test_a_row_factory_may_drop_the_table_when_the_rows_are_read(
    connection: sqlite3.Connection,
) -> None:
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    connection.row_factory = lambda cursor, row: connection.executescript("DROP TABLE t") and row
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_str_is_the_default_text_factory(connection: sqlite3.Connection) -> None:
    assert connection.text_factory is str
    connection.text_factory = bytes
    assert connection.execute("SELECT 'é', x'01', 5").fetchone() == (b"\xc3\xa9", b"\1", 5)
    connection.text_factory = str
    assert connection.execute("SELECT 'é'").fetchone() == ("é",)


def test_the_text_factory_is_that_of_the_moment(connection: sqlite3.Connection) -> None:
    """Unlike the row factory it is asked of the connection at each fetch."""
    cursor = connection.execute(TEXTS)
    connection.text_factory = bytes
    assert cursor.fetchone() == (b"a",)
    connection.text_factory = lambda text: text * 2
    assert cursor.fetchone() == (b"bb",)
    connection.text_factory = str
    assert cursor.fetchone() == ("c",)


@pytest.mark.parametrize(
    ("factory", "value"),
    [
        (bytearray, bytearray(b"a\0\xc3\xa9")),
        (lambda text: text.decode("latin-1"), "a\0\xc3\xa9"),
        (lambda text: None, None),
        (len, 4),
        (type("Text", (str,), {"__new__": lambda cls, text: text.decode()}), "a\0é"),
    ],
)
def test_any_callable_makes_text(
    connection: sqlite3.Connection, factory: Callable[[bytes], object], value: object
) -> None:
    connection.text_factory = factory
    assert connection.execute("SELECT 'a' || char(0) || 'é', NULL, x'00'").fetchone() == (
        value,
        None,
        b"\0",
    )


def test_text_that_is_no_utf8(connection: sqlite3.Connection) -> None:
    sql = "SELECT 1, CAST(x'61ff' AS TEXT) AS bad"
    with pytest.raises(sqlite3.OperationalError, match=r"Could not decode.*'bad'.*'a"):
        connection.execute(sql).fetchone()
    connection.text_factory = bytes
    assert connection.execute(sql).fetchone() == (1, b"a\xff")
    connection.text_factory = lambda text: text.decode(errors="replace")
    assert connection.execute(sql).fetchone() == (1, "a\ufffd")


@fetching
def test_a_text_factory_that_raises(
    connection: sqlite3.Connection, fetch: Callable[[sqlite3.Cursor], list[Any]]
) -> None:
    def factory(text: bytes) -> str:
        raise ZeroDivisionError

    connection.text_factory = factory
    cursor = connection.execute(TEXTS)
    with pytest.raises(ZeroDivisionError):
        fetch(cursor)
    connection.text_factory = str
    assert cursor.execute("SELECT 'still works'").fetchone() == ("still works",)


def test_a_text_factory_may_use_the_connection(connection: sqlite3.Connection) -> None:
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)")

    def factory(text: bytes) -> object:
        return connection.execute("SELECT count(*) FROM t").fetchone()[0]

    connection.text_factory = factory
    assert connection.execute("SELECT 'x', 'y'").fetchone() == (2, 2)


_TEXT_FACTORY_USES = """
import sys
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
cursor = connection.cursor()
errors = []
use = {
    "description": lambda: cursor.description,
    "rowcount": lambda: cursor.rowcount,
    "lastrowid": lambda: cursor.lastrowid,
    "row_factory": lambda: cursor.row_factory,
    "arraysize": lambda: setattr(cursor, "arraysize", 3),
    "Row": lambda: sqlite3.Row(cursor, (1,)),
    "execute": lambda: cursor.execute("SELECT 1"),
    "executemany": lambda: cursor.executemany("INSERT INTO t VALUES (?)", [(9,)]),
    "executescript": lambda: cursor.executescript("SELECT 1"),
    "fetchone": lambda: cursor.fetchone(),
    "fetchmany": lambda: cursor.fetchmany(),
    "fetchall": lambda: cursor.fetchall(),
    "next": lambda: next(cursor),
    "close": lambda: cursor.close(),
    "close the connection": lambda: connection.close(),
    "rollback": lambda: connection.rollback(),
    "init": lambda: cursor.__init__(connection),
    "init the connection": lambda: connection.__init__(":memory:"),
}[sys.argv[1]]

def factory(text):
    use()
    return text.decode()

connection.text_factory = factory
cursor.execute("SELECT column1 FROM (VALUES ('a'), ('b'), ('c'))")
try:
    rows = [cursor.fetchone(), cursor.fetchone()]
except sqlite3.Error as error:
    print(type(error).__name__, error)
else:
    print(rows)
"""


@pytest.mark.parametrize(
    "use", ["description", "rowcount", "lastrowid", "row_factory", "arraysize", "Row", "rollback"]
)
def test_a_text_factory_may_ask_the_cursor_that_runs_it(
    child: Callable[..., str], use: str
) -> None:
    assert child(_TEXT_FACTORY_USES, use).strip() == "[('a',), ('b',)]"


@pytest.mark.parametrize(
    "use",
    [
        "execute",
        "executemany",
        "executescript",
        "fetchone",
        "fetchmany",
        "fetchall",
        "next",
        "close",
    ],
)
def test_a_text_factory_cannot_use_the_cursor_that_runs_it(
    child: Callable[..., str], use: str
) -> None:
    assert child(_TEXT_FACTORY_USES, use).startswith(
        "ProgrammingError Recursive use of cursors not allowed"
    )


@pytest.mark.parametrize("use", ["close the connection", "init", "init the connection"])
def test_what_a_text_factory_does_to_its_connection_never_crashes(
    child: Callable[..., str], use: str
) -> None:
    """Refused or done; either way the interpreter lives and the call comes back."""
    assert child(_TEXT_FACTORY_USES, use)


_FACTORIES_WITHOUT_END = """
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t(a)")

def rows(cursor, row):
    return connection.execute("SELECT 1").fetchone()

def texts(text):
    return connection.execute("SELECT 'x'").fetchone()

def sets():
    yield (1,)
    connection.executemany("INSERT INTO t VALUES (?)", sets())

def attempt(function):
    try:
        function()
    except RecursionError:
        return
    raise SystemExit("no end, and no error")

connection.row_factory = rows
attempt(lambda: connection.execute("SELECT 1").fetchone())
connection.row_factory = None
connection.text_factory = texts
attempt(lambda: connection.execute("SELECT 'x'").fetchall())
connection.text_factory = str
attempt(lambda: connection.executemany("INSERT INTO t VALUES (?)", sets()))
connection.rollback()
assert connection.execute("SELECT 'x'").fetchone() == ("x",)
"""


def test_factories_that_never_end_are_a_recursion_error(child: Callable[..., str]) -> None:
    child(_FACTORIES_WITHOUT_END)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="refused since Python 3.14")
def test_a_factory_can_be_deleted() -> None:
    """What is left is the default; the standard library crashes when it is used."""
    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor()
    connection.row_factory = cursor.row_factory = sqlite3.Row
    connection.text_factory = bytes
    del connection.row_factory, cursor.row_factory, connection.text_factory
    del connection.row_factory
    assert (connection.row_factory, cursor.row_factory) == (None, None)
    assert connection.text_factory is str
    assert connection.execute("SELECT 'a'").fetchall() == [("a",)]
    assert cursor.execute("SELECT 'a'").fetchall() == [("a",)]
