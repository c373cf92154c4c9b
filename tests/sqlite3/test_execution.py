"""Executing one statement and fetching its rows: values, description, row counts, iteration."""

import sqlite3 as standard_library
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from oxlite import sqlite3


@pytest.fixture
def numbers(connection: sqlite3.Connection) -> sqlite3.Cursor:
    """A cursor over the rows 1 to 5."""
    return connection.execute(
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 5) SELECT n FROM c"
    )


@pytest.fixture
def table(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A connection with the table ``t(id INTEGER PRIMARY KEY, name)`` of three rows."""
    connection.executescript(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name);"
        "INSERT INTO t(name) VALUES ('a'), ('b'), ('c')"
    )
    return connection


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("NULL", None),
        ("1", 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
        ("1.5", 1.5),
        ("9e999", float("inf")),
        ("''", ""),
        ("'é€𐍈'", "é€𐍈"),
        ("'a' || char(0) || 'b'", "a\0b"),
        ("x''", b""),
        ("x'00ff'", b"\0\xff"),
    ],
)
def test_each_storage_class_has_its_python_type(
    connection: sqlite3.Connection, sql: str, value: object
) -> None:
    (found,) = connection.execute(f"SELECT {sql}").fetchone()
    assert found == value
    assert type(found) is type(value)


def test_execute_returns_its_cursor(connection: sqlite3.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.execute("SELECT 1") is cursor
    assert cursor.connection is connection


def test_fetchone_ends_with_none_and_stays_there(numbers: sqlite3.Cursor) -> None:
    assert [numbers.fetchone() for _ in range(7)] == [(1,), (2,), (3,), (4,), (5,), None, None]


def test_fetchmany_takes_arraysize_rows_by_default(numbers: sqlite3.Cursor) -> None:
    assert numbers.arraysize == 1
    assert numbers.fetchmany() == [(1,)]
    numbers.arraysize = 2
    assert numbers.fetchmany() == [(2,), (3,)]
    assert numbers.fetchmany(100) == [(4,), (5,)]
    assert numbers.fetchmany(100) == []


def test_fetchmany_takes_its_size_by_name(numbers: sqlite3.Cursor) -> None:
    assert numbers.fetchmany(size=3) == [(1,), (2,), (3,)]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="refused since Python 3.14")
def test_fetchmany_of_a_negative_size_has_no_limit(numbers: sqlite3.Cursor) -> None:
    assert len(numbers.fetchmany(-1)) == 5


@pytest.mark.parametrize("size", [None, "2", 1.0, 2**31, 2**70, True, 0])
def test_fetchmany_takes_what_the_standard_library_takes(size: object) -> None:
    def outcome(module: ModuleType) -> object:
        cursor = module.connect(":memory:").execute("SELECT 1 UNION SELECT 2")
        try:
            return cursor.fetchmany(size)
        except (TypeError, OverflowError) as error:
            return type(error), str(error)

    assert outcome(sqlite3) == outcome(standard_library)


def test_fetchall_returns_what_remains(numbers: sqlite3.Cursor) -> None:
    numbers.fetchone()
    assert numbers.fetchall() == [(2,), (3,), (4,), (5,)]
    assert numbers.fetchall() == []


def test_the_ways_to_fetch_may_be_mixed(numbers: sqlite3.Cursor) -> None:
    assert next(numbers) == (1,)
    assert numbers.fetchone() == (2,)
    assert numbers.fetchmany(2) == [(3,), (4,)]
    assert list(numbers) == [(5,)]


def test_a_cursor_is_its_own_iterator(numbers: sqlite3.Cursor) -> None:
    assert iter(numbers) is numbers
    assert isinstance(numbers, Iterator)
    assert [n for (n,) in numbers] == [1, 2, 3, 4, 5]
    with pytest.raises(StopIteration):
        next(numbers)


def test_a_fresh_cursor_has_nothing_to_give(connection: sqlite3.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.fetchone() is None
    assert cursor.fetchmany(3) == []
    assert cursor.fetchall() == []
    assert list(cursor) == []
    assert (cursor.description, cursor.rowcount, cursor.lastrowid) == (None, -1, None)


def test_the_rows_of_an_earlier_statement_are_gone(table: sqlite3.Connection) -> None:
    cursor = table.execute("SELECT id FROM t")
    cursor.execute("SELECT name FROM t")
    assert cursor.fetchall() == [("a",), ("b",), ("c",)]
    cursor.execute("SELECT id FROM t")
    cursor.execute("UPDATE t SET name = name")
    assert cursor.fetchone() is None


def test_a_failed_execution_leaves_no_rows_behind(table: sqlite3.Connection) -> None:
    cursor = table.execute("SELECT id FROM t")
    with pytest.raises(sqlite3.OperationalError, match="nonsense"):
        cursor.execute("SELECT nonsense FROM t")
    assert cursor.fetchall() == []
    assert cursor.rowcount == -1


def test_the_description_names_the_columns(table: sqlite3.Connection) -> None:
    cursor = table.execute("SELECT id, name AS label, 1 + 1, count(*) FROM t")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["id", "label", "1 + 1", "count(*)"]
    assert all(column[1:] == (None,) * 6 for column in cursor.description)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT id FROM t WHERE 0", ["id"]),
        ("PRAGMA user_version", ["user_version"]),
        ("VALUES (1, 2)", ["column1", "column2"]),
        ("EXPLAIN QUERY PLAN SELECT 1", ["id", "parent", "notused", "detail"]),
        ("INSERT INTO t(name) VALUES ('d') RETURNING id, name AS n", ["id", "n"]),
        ("UPDATE t SET name = 'x' WHERE 0 RETURNING id", ["id"]),
        ("INSERT INTO t(name) VALUES ('d')", None),
        ("CREATE TABLE u(a)", None),
        ("BEGIN", None),
        ("", None),
    ],
)
def test_which_statements_have_a_description(
    table: sqlite3.Connection, sql: str, names: list[str] | None
) -> None:
    cursor = table.cursor()
    cursor.execute("SELECT 1 AS earlier")
    description = cursor.execute(sql).description
    assert (None if description is None else [column[0] for column in description]) == names


def test_many_columns(connection: sqlite3.Connection) -> None:
    columns = ", ".join(f"{n} AS c{n}" for n in range(2000))
    cursor = connection.execute(f"SELECT {columns}")
    assert cursor.fetchone() == tuple(range(2000))
    assert cursor.description is not None
    assert cursor.description[1999][0] == "c1999"


@pytest.mark.parametrize(
    ("sql", "rowcount"),
    [
        ("INSERT INTO t(name) VALUES ('d'), ('e')", 2),
        ("UPDATE t SET name = 'x'", 3),
        ("UPDATE t SET name = 'x' WHERE 0", 0),
        ("DELETE FROM t", 3),
        ("DELETE FROM t WHERE id > 1", 2),
        ("REPLACE INTO t VALUES (1, 'x')", 1),
        ("INSERT OR IGNORE INTO t VALUES (1, 'x')", 0),
        ("  -- why\n /* what */ update t SET name = 'x'", 3),
        ("SELECT * FROM t", -1),
        ("CREATE TABLE u AS SELECT * FROM t", -1),
        ("WITH w AS (SELECT 1) UPDATE t SET name = 'x'", -1),
        ("PRAGMA user_version", -1),
    ],
)
def test_the_row_count_of(table: sqlite3.Connection, sql: str, rowcount: int) -> None:
    assert table.execute(sql).rowcount == rowcount


def test_the_row_count_does_not_count_what_triggers_do(table: sqlite3.Connection) -> None:
    table.executescript(
        "CREATE TABLE log(a);"
        "CREATE TRIGGER more AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (1), (2); END"
    )
    assert table.execute("UPDATE t SET name = 'x'").rowcount == 3


def test_lastrowid_is_that_of_the_latest_insert(table: sqlite3.Connection) -> None:
    cursor = table.cursor()
    cursor.execute("INSERT INTO t(name) VALUES ('d')")
    assert cursor.lastrowid == 4
    cursor.execute("INSERT INTO t VALUES (-7, 'e')")
    assert cursor.lastrowid == -7
    cursor.execute("INSERT OR IGNORE INTO t VALUES (1, 'f')")
    assert cursor.lastrowid == -7
    cursor.execute("UPDATE t SET name = 'x'")
    assert cursor.lastrowid == -7
    with pytest.raises(sqlite3.IntegrityError):
        cursor.execute("INSERT INTO t VALUES (1, 'g')")
    assert cursor.lastrowid == -7
    cursor.execute("INSERT INTO t VALUES (9223372036854775807, 'h')")
    assert cursor.lastrowid == 2**63 - 1


def test_total_changes_counts_every_change(table: sqlite3.Connection) -> None:
    before = table.total_changes
    table.execute("UPDATE t SET name = 'x'")
    table.execute("DELETE FROM t WHERE id = 1")
    assert table.total_changes == before + 4


def test_returning_gives_rows_and_counts_at_the_end(table: sqlite3.Connection) -> None:
    cursor = table.execute("UPDATE t SET name = upper(name) RETURNING id, name")
    assert cursor.fetchall() == [(1, "A"), (2, "B"), (3, "C")]
    assert cursor.rowcount == 3
    table.commit()
    assert table.execute("SELECT name FROM t").fetchall() == [("A",), ("B",), ("C",)]


def test_returning_changes_everything_whatever_is_fetched(table: sqlite3.Connection) -> None:
    table.execute("DELETE FROM t RETURNING id").fetchone()
    table.commit()
    assert table.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_returning_outside_a_transaction_commits_when_it_ends(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    other = sqlite3.connect(path, timeout=0)
    connection.execute("CREATE TABLE t(a)")
    cursor = connection.execute("INSERT INTO t VALUES (1), (2) RETURNING a")
    assert cursor.fetchall() == [(1,), (2,)]
    assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
    connection.execute("INSERT INTO t VALUES (3), (4) RETURNING a").close()
    assert other.execute("SELECT count(*) FROM t").fetchone() == (4,)
    connection.execute("INSERT INTO t VALUES (5), (6) RETURNING a")
    assert other.execute("SELECT count(*) FROM t").fetchone() == (6,)
    connection.close()
    other.close()


def test_sizes_of_inputs_and_outputs_are_accepted_and_ignored(
    connection: sqlite3.Connection,
) -> None:
    cursor = connection.cursor()
    cursor.setinputsizes([1, 2])
    cursor.setoutputsize(1)
    cursor.setoutputsize(1, 2)
    assert cursor.execute("SELECT 'text'").fetchone() == ("text",)


def test_the_connection_executes_through_a_plain_cursor() -> None:
    """As the standard library, whatever a subclass's own ``cursor()`` gives."""

    class Cursor(sqlite3.Cursor):
        pass

    class Connection(sqlite3.Connection):
        def cursor(self) -> sqlite3.Cursor:
            return super().cursor(Cursor)

    connection = sqlite3.connect(":memory:", factory=Connection)
    assert isinstance(connection, Connection)
    assert type(connection.cursor()) is Cursor
    assert type(connection.execute("SELECT 1")) is sqlite3.Cursor
    assert type(connection.executescript("SELECT 1")) is sqlite3.Cursor
    connection.close()


def test_a_cursor_factory_must_return_a_cursor(connection: sqlite3.Connection) -> None:
    class Cursor(sqlite3.Cursor):
        pass

    assert type(connection.cursor(Cursor)) is Cursor
    assert type(connection.cursor(factory=lambda owner: Cursor(owner))) is Cursor
    for factory in (lambda owner: None, lambda owner: object(), str):
        with pytest.raises(TypeError, match="factory must return a cursor"):
            connection.cursor(factory)


def test_executing_inside_a_cursor_that_is_read(table: sqlite3.Connection) -> None:
    """The rows of one cursor are read while others work on the same connection."""
    seen = []
    for (identity,) in table.execute("SELECT id FROM t ORDER BY id"):
        (name,) = table.execute("SELECT name FROM t WHERE id = ?", (identity,)).fetchone()
        table.execute("UPDATE t SET name = ? WHERE id = ?", (name * 2, identity))
        seen.append(name)
    assert seen == ["a", "b", "c"]
    assert table.execute("SELECT group_concat(name) FROM t").fetchone() == ("aa,bb,cc",)


def test_an_error_in_the_middle_of_the_rows_is_raised_at_its_row(
    connection: sqlite3.Connection,
) -> None:
    """SQLite is one row ahead, so the error takes the row before it, as in the standard library."""
    cursor = connection.execute(
        "SELECT abs(column1) FROM (VALUES (1), (2), (3), (-9223372036854775808), (5))"
    )
    assert [cursor.fetchone(), cursor.fetchone()] == [(1,), (2,)]
    with pytest.raises(sqlite3.OperationalError, match="integer overflow"):
        cursor.fetchone()
    assert cursor.fetchone() is None
