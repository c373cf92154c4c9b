"""Errors: PEP 249's tree, SQLite's codes and names on each, pickling, attributes."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from oxlite import sqlite3

TREE = {
    "Warning": Exception,
    "Error": Exception,
    "InterfaceError": sqlite3.Error,
    "DatabaseError": sqlite3.Error,
    "DataError": sqlite3.DatabaseError,
    "OperationalError": sqlite3.DatabaseError,
    "IntegrityError": sqlite3.DatabaseError,
    "InternalError": sqlite3.DatabaseError,
    "ProgrammingError": sqlite3.DatabaseError,
    "NotSupportedError": sqlite3.DatabaseError,
}

SCHEMA = """
    PRAGMA foreign_keys = ON;
    CREATE TABLE t(
        id INTEGER PRIMARY KEY, u UNIQUE, n NOT NULL DEFAULT 0,
        c CHECK (c < 10), f REFERENCES t(id)
    );
    CREATE TABLE strict(i INTEGER) STRICT;
    CREATE TABLE keyed(k PRIMARY KEY) WITHOUT ROWID;
    CREATE TRIGGER no AFTER DELETE ON t BEGIN SELECT RAISE(ABORT, 'not so'); END;
    CREATE VIEW v AS SELECT 1;
    INSERT INTO t(id, u) VALUES (1, 'x');
    INSERT INTO keyed VALUES ('k');
"""


@pytest.fixture
def table(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A connection with a schema full of constraints."""
    connection.executescript(SCHEMA)
    return connection


@pytest.mark.parametrize(("name", "base"), TREE.items())
def test_the_tree_is_that_of_pep_249(name: str, base: type[Exception]) -> None:
    error = getattr(sqlite3, name)
    assert error.__bases__ == (base,)
    assert (error.__module__, error.__qualname__) == ("oxlite.sqlite3", name)
    assert error.__doc__


@pytest.mark.parametrize("name", TREE)
def test_the_connection_carries_each_exception(connection: sqlite3.Connection, name: str) -> None:
    assert getattr(connection, name) is getattr(sqlite3, name)
    assert getattr(sqlite3.Connection, name) is getattr(sqlite3, name)


@pytest.mark.parametrize(
    ("sql", "error", "code", "name", "message"),
    [
        ("nonsense", "OperationalError", 1, "SQLITE_ERROR", 'near "nonsense": syntax error'),
        ("SELECT * FROM gone", "OperationalError", 1, "SQLITE_ERROR", "no such table: gone"),
        ("SELECT gone FROM t", "OperationalError", 1, "SQLITE_ERROR", "no such column: gone"),
        ("SELECT (", "OperationalError", 1, "SQLITE_ERROR", "incomplete input"),
        ("SELECT abs(-9223372036854775808)", "OperationalError", 1, "SQLITE_ERROR", "overflow"),
        ("COMMIT", "OperationalError", 1, "SQLITE_ERROR", "no transaction is active"),
        ("INSERT INTO v VALUES (1)", "OperationalError", 1, "SQLITE_ERROR", "because it is a view"),
        ("SELECT zeroblob(2000000000)", "DataError", 18, "SQLITE_TOOBIG", "too big"),
        (
            "INSERT INTO t(u) VALUES ('x')",
            "IntegrityError",
            2067,
            "SQLITE_CONSTRAINT_UNIQUE",
            "UNIQUE constraint failed: t.u",
        ),
        (
            "INSERT INTO t(n) VALUES (NULL)",
            "IntegrityError",
            1299,
            "SQLITE_CONSTRAINT_NOTNULL",
            "NOT NULL constraint failed: t.n",
        ),
        (
            "INSERT INTO t(c) VALUES (10)",
            "IntegrityError",
            275,
            "SQLITE_CONSTRAINT_CHECK",
            "CHECK constraint failed",
        ),
        (
            "INSERT INTO t(f) VALUES (99)",
            "IntegrityError",
            787,
            "SQLITE_CONSTRAINT_FOREIGNKEY",
            "FOREIGN KEY constraint failed",
        ),
        (
            "INSERT INTO t(id) VALUES (1)",
            "IntegrityError",
            1555,
            "SQLITE_CONSTRAINT_PRIMARYKEY",
            "UNIQUE constraint failed: t.id",
        ),
        (
            "INSERT INTO keyed VALUES ('k')",
            "IntegrityError",
            1555,
            "SQLITE_CONSTRAINT_PRIMARYKEY",
            "UNIQUE constraint failed: keyed.k",
        ),
        ("DELETE FROM t", "IntegrityError", 1811, "SQLITE_CONSTRAINT_TRIGGER", "not so"),
        (
            "INSERT INTO strict VALUES ('text')",
            "IntegrityError",
            3091,
            "SQLITE_CONSTRAINT_DATATYPE",
            "cannot store TEXT value in INTEGER column",
        ),
        (
            "INSERT INTO t(id) VALUES ('text')",
            "IntegrityError",
            20,
            "SQLITE_MISMATCH",
            "datatype mismatch",
        ),
        (
            "UPDATE sqlite_schema SET name = 'x'",
            "OperationalError",
            1,
            "SQLITE_ERROR",
            "may not be modified",
        ),
    ],
)
def test_an_error_of_sqlite_has_its_class_code_and_name(
    table: sqlite3.Connection, sql: str, error: str, code: int, name: str, message: str
) -> None:
    with pytest.raises(sqlite3.Error, match=message) as caught:
        table.execute(sql).fetchall()
    assert type(caught.value) is getattr(sqlite3, error)
    assert (caught.value.sqlite_errorcode, caught.value.sqlite_errorname) == (code, name)
    assert len(caught.value.args) == 1


def provoke(table: sqlite3.Connection) -> sqlite3.IntegrityError:
    with pytest.raises(sqlite3.IntegrityError) as caught:
        table.execute("INSERT INTO t(u) VALUES ('x')")
    return caught.value


def test_a_file_that_is_locked(path: Path) -> None:
    one, two = (sqlite3.connect(path, timeout=0, isolation_level=None) for _ in range(2))
    one.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="database is locked") as caught:
        two.execute("SELECT * FROM sqlite_schema")
    assert (caught.value.sqlite_errorcode, caught.value.sqlite_errorname) == (5, "SQLITE_BUSY")
    one.close()
    two.close()


def test_a_snapshot_that_is_too_old_to_write(path: Path) -> None:
    one, two = (sqlite3.connect(path, timeout=0, isolation_level=None) for _ in range(2))
    one.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t(a)")
    two.execute("BEGIN")
    two.execute("SELECT * FROM t").fetchall()
    one.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(sqlite3.OperationalError, match="database is locked") as caught:
        two.execute("INSERT INTO t VALUES (2)")
    assert (caught.value.sqlite_errorcode, caught.value.sqlite_errorname) == (
        517,
        "SQLITE_BUSY_SNAPSHOT",
    )
    one.close()
    two.close()


def test_a_database_that_may_only_be_read(path: Path) -> None:
    sqlite3.connect(path).executescript("CREATE TABLE t(a)")
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly") as caught:
        reader.execute("INSERT INTO t VALUES (1)")
    assert caught.value.sqlite_errorname == "SQLITE_READONLY"
    reader.close()


@pytest.mark.parametrize(
    "misuse",
    [
        lambda connection: connection.execute("SELECT ?"),
        lambda connection: connection.execute("SELECT 1; SELECT 2"),
        lambda connection: connection.executemany("SELECT 1", []),
    ],
    ids=["parameters", "two statements", "executemany"],
)
def test_an_error_that_sqlite_never_saw_has_no_code(
    connection: sqlite3.Connection, misuse: Callable[[sqlite3.Connection], object]
) -> None:
    with pytest.raises(sqlite3.ProgrammingError) as caught:
        misuse(connection)
    assert not hasattr(caught.value, "sqlite_errorcode")
    assert not hasattr(caught.value, "sqlite_errorname")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling(table: sqlite3.Connection, protocol: int) -> None:
    error = provoke(table)
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is sqlite3.IntegrityError
    assert str(again) == str(error)
    assert again.args == error.args
    assert again.sqlite_errorcode == 2067
    assert again.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
    assert again.__notes__ == ["a note"]


def test_an_error_can_be_copied(table: sqlite3.Connection) -> None:
    error = provoke(table)
    again = copy.copy(error)
    assert (type(again), again.args, again.sqlite_errorcode) == (type(error), error.args, 2067)


def test_each_error_has_attributes_of_its_own(table: sqlite3.Connection) -> None:
    first, second = provoke(table), provoke(table)
    first.sqlite_errorname = "changed"
    assert second.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
    assert first is not second


def test_users_may_raise_and_derive_them() -> None:
    class Mine(sqlite3.OperationalError):
        pass

    with pytest.raises(sqlite3.DatabaseError, match="of mine"):
        raise Mine("of mine")
    with pytest.raises(sqlite3.Warning):
        raise sqlite3.Warning


def test_pep_249_at_module_level() -> None:
    assert sqlite3.apilevel == "2.0"
    assert sqlite3.paramstyle == "qmark"
    assert sqlite3.threadsafety == 3
    assert sqlite3.sqlite_version_info >= (3, 54, 0)
    assert ".".join(map(str, sqlite3.sqlite_version_info)) == sqlite3.sqlite_version
    assert sqlite3.Binary is memoryview
    assert sqlite3.Date(2026, 1, 2).isoformat() == "2026-01-02"
    assert sqlite3.Time(3, 4, 5).isoformat() == "03:04:05"
    assert sqlite3.Timestamp(2026, 1, 2, 3, 4, 5).isoformat() == "2026-01-02T03:04:05"
    moment = sqlite3.TimestampFromTicks(1e9)
    assert moment.timestamp() == 1e9
    assert sqlite3.DateFromTicks(1e9) == moment.date()
    assert sqlite3.TimeFromTicks(1e9) == moment.time()
