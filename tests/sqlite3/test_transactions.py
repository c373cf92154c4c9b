"""Transactions: isolation levels, the implicit BEGIN, commit, rollback, the context manager."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from oxlite import sqlite3

LEVELS = ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"]


@pytest.fixture
def table(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file with the table ``t(a UNIQUE)``, in a rollback journal mode."""
    connection = sqlite3.connect(path, timeout=0)
    connection.execute("CREATE TABLE t(a UNIQUE)")
    yield connection
    connection.close()


@pytest.fixture
def other(path: Path, table: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Another connection to the same file, without implicit transactions."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    yield connection
    connection.close()


def count(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(*) FROM t").fetchone()[0]


def may(connection: sqlite3.Connection, sql: str) -> bool:
    """Whether the connection gets the lock that ``sql`` needs; it is given back."""
    try:
        connection.execute(sql).fetchall()
    except sqlite3.OperationalError as error:
        assert error.sqlite_errorname == "SQLITE_BUSY"  # noqa: PT017
        return False
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    return True


def test_the_default_level_is_the_empty_string() -> None:
    connection = sqlite3.connect(":memory:")
    assert connection.isolation_level == ""
    connection.close()


@pytest.mark.parametrize("level", [*LEVELS, "deferred", "Immediate", None])
def test_a_level_is_reported_as_sqlite_spells_it(level: str | None) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=level)
    spelt = None if level is None else level.upper()
    assert connection.isolation_level == spelt
    connection.isolation_level = None
    assert connection.isolation_level is None
    connection.isolation_level = level
    assert connection.isolation_level == spelt
    connection.close()


@pytest.mark.parametrize(
    "level", ["NONE", "BEGIN", "IMMEDIATE ", "DEFERRED; DROP TABLE t", "DÉFERRED"]
)
def test_an_unknown_level_is_refused(connection: sqlite3.Connection, level: str) -> None:
    with pytest.raises(ValueError, match="isolation_level string must be"):
        sqlite3.connect(":memory:", isolation_level=level)
    with pytest.raises(ValueError, match="isolation_level string must be"):
        connection.isolation_level = level
    assert connection.isolation_level == ""


@pytest.mark.parametrize("level", [1, b"", 0.5, object(), ()])
def test_a_level_of_the_wrong_type_is_refused(
    connection: sqlite3.Connection, level: object
) -> None:
    with pytest.raises(TypeError):
        sqlite3.connect(":memory:", isolation_level=level)
    with pytest.raises(TypeError):
        connection.isolation_level = level
    with pytest.raises(AttributeError):
        del connection.isolation_level
    assert connection.isolation_level == ""


@pytest.mark.parametrize(
    ("sql", "begins"),
    [
        ("INSERT INTO t VALUES (1)", True),
        ("  insert or ignore into t values (1)", True),
        ("/* c */ -- d\n UPDATE t SET a = a", True),
        ("DELETE FROM t WHERE 0", True),
        ("REPLACE INTO t VALUES (1)", True),
        ("INSERT INTO t VALUES (1) RETURNING a", True),
        ("SELECT * FROM t", False),
        ("CREATE TABLE u(a)", False),
        ("DROP TABLE t", False),
        ("PRAGMA user_version = 7", False),
        ("WITH w AS (SELECT 1) INSERT INTO t SELECT * FROM w", False),
        ("EXPLAIN INSERT INTO t VALUES (1)", False),
        ("ANALYZE", False),
        ("VACUUM", False),
        ("", False),
    ],
)
def test_only_data_modification_begins_a_transaction(
    table: sqlite3.Connection, sql: str, begins: bool
) -> None:
    table.execute(sql)
    assert table.in_transaction is begins


def test_without_a_level_nothing_begins_by_itself(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    other.execute("INSERT INTO t VALUES (1)")
    assert not other.in_transaction
    assert count(table) == 1
    other.execute("BEGIN")
    assert other.in_transaction
    other.execute("INSERT INTO t VALUES (2)")
    other.rollback()
    assert not other.in_transaction
    assert count(table) == 1


def test_commit_and_rollback(table: sqlite3.Connection, other: sqlite3.Connection) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    assert count(other) == 0
    table.commit()
    assert count(other) == 1
    table.execute("INSERT INTO t VALUES (2)")
    table.rollback()
    assert count(table) == 1
    table.execute("INSERT INTO t VALUES (2)")
    table.commit()
    assert count(other) == 2


def test_commit_and_rollback_without_a_transaction_do_nothing(table: sqlite3.Connection) -> None:
    for _ in range(3):
        table.commit()
        table.rollback()
    assert not table.in_transaction


def test_an_open_transaction_is_not_begun_again(table: sqlite3.Connection) -> None:
    table.execute("BEGIN IMMEDIATE")
    table.execute("INSERT INTO t VALUES (1)")
    table.execute("SAVEPOINT s")
    table.execute("INSERT INTO t VALUES (2)")
    table.execute("ROLLBACK TO s")
    table.execute("RELEASE s")
    table.commit()
    assert count(table) == 1


@pytest.mark.parametrize(
    ("level", "beside_a_writer", "beside_a_reader"),
    [
        ("", True, True),
        ("DEFERRED", True, True),
        ("IMMEDIATE", False, True),
        ("EXCLUSIVE", False, False),
    ],
)
def test_which_locks_the_implicit_begin_takes(
    table: sqlite3.Connection,
    other: sqlite3.Connection,
    level: str,
    beside_a_writer: bool,
    beside_a_reader: bool,
) -> None:
    """Told by whether the transaction is open although its first statement failed."""
    table.isolation_level = level
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        table.execute("INSERT INTO t VALUES (1)")
    assert table.in_transaction is beside_a_writer
    table.rollback()
    other.execute("ROLLBACK")
    other.execute("BEGIN")
    other.execute("SELECT * FROM t").fetchall()
    with contextlib.suppress(sqlite3.OperationalError):
        table.execute("INSERT INTO t VALUES (1)")
    assert table.in_transaction is beside_a_reader


def test_reading_takes_no_write_lock(table: sqlite3.Connection, other: sqlite3.Connection) -> None:
    table.isolation_level = "IMMEDIATE"
    assert table.execute("SELECT * FROM t").fetchall() == []
    assert not table.in_transaction
    assert may(other, "BEGIN EXCLUSIVE")


def test_going_over_to_no_level_commits(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    table.isolation_level = None
    assert not table.in_transaction
    assert count(other) == 1


@pytest.mark.parametrize("level", LEVELS)
def test_going_over_to_another_level_leaves_the_transaction_open(
    table: sqlite3.Connection, other: sqlite3.Connection, level: str
) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    table.isolation_level = level
    assert table.in_transaction
    assert count(other) == 0
    table.commit()
    assert count(other) == 1


def test_going_over_to_no_level_may_fail_to_commit(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    reading = other.execute("SELECT column1 FROM (VALUES (1), (2)) LEFT JOIN t")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        table.isolation_level = None
    assert table.isolation_level is None  # as in the standard library
    assert table.in_transaction
    reading.close()
    table.isolation_level = None
    assert count(other) == 1


def test_commit_leaves_unread_rows_readable(table: sqlite3.Connection) -> None:
    table.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(5)])
    cursor = table.execute("SELECT a FROM t ORDER BY a")
    assert cursor.fetchone() == (0,)
    table.commit()
    assert cursor.fetchall() == [(1,), (2,), (3,), (4,)]


def test_rollback_with_unread_rows(table: sqlite3.Connection) -> None:
    table.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(5)])
    table.commit()
    table.execute("INSERT INTO t VALUES (99)")
    cursor = table.execute("SELECT a FROM t ORDER BY a")
    assert cursor.fetchone() == (0,)
    table.rollback()
    assert cursor.fetchall() == [(1,), (2,), (3,), (4,)]
    assert count(table) == 5


def test_rollback_of_a_table_that_is_being_read(table: sqlite3.Connection) -> None:
    """The schema changes under the cursor: an error, neither rows of nothing nor a crash."""
    table.execute("BEGIN")
    table.execute("CREATE TABLE u AS SELECT column1 AS a FROM (VALUES (1), (2), (3))")
    cursor = table.execute("SELECT a FROM u")
    table.rollback()
    with pytest.raises(sqlite3.OperationalError):
        cursor.fetchall()
    assert cursor.fetchall() == []


def test_a_statement_that_fails_leaves_the_transaction_open(table: sqlite3.Connection) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError):
        table.execute("INSERT INTO t VALUES (1)")
    assert table.in_transaction
    table.commit()
    assert count(table) == 1


def test_a_statement_may_end_the_transaction_by_failing(table: sqlite3.Connection) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError):
        table.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
    assert not table.in_transaction
    assert count(table) == 0
    table.execute("INSERT INTO t VALUES (2)")
    assert table.in_transaction


def test_the_context_manager_commits(table: sqlite3.Connection, other: sqlite3.Connection) -> None:
    with table as entered:
        assert entered is table
        table.execute("INSERT INTO t VALUES (1)")
    assert not table.in_transaction
    assert count(other) == 1
    assert count(table) == 1  # it is still open


def test_the_context_manager_rolls_back_what_raised(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    def leave_early() -> None:
        with table:
            table.execute("INSERT INTO t VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        leave_early()
    assert not table.in_transaction
    assert count(other) == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_context_manager_rolls_back_for_any_exception(
    table: sqlite3.Connection, error: type[BaseException]
) -> None:
    def leave_early() -> None:
        with table:
            table.execute("INSERT INTO t VALUES (1)")
            raise error

    with pytest.raises(error):
        leave_early()
    assert not table.in_transaction
    assert count(table) == 0


def test_a_commit_that_fails_at_the_end_of_the_block_is_rolled_back(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    table.executescript(
        "PRAGMA foreign_keys = ON;"
        "CREATE TABLE child(a REFERENCES t(a) DEFERRABLE INITIALLY DEFERRED)"
    )
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY") as caught, table:
        table.execute("INSERT INTO child VALUES (1)")
    assert caught.value.sqlite_errorname == "SQLITE_CONSTRAINT_FOREIGNKEY"
    assert not table.in_transaction
    assert may(other, "BEGIN EXCLUSIVE")
    assert table.execute("SELECT count(*) FROM child").fetchone() == (0,)


def test_a_plain_commit_that_fails_leaves_the_transaction_to_be_mended(
    table: sqlite3.Connection,
) -> None:
    table.executescript(
        "PRAGMA foreign_keys = ON;"
        "CREATE TABLE child(a REFERENCES t(a) DEFERRABLE INITIALLY DEFERRED)"
    )
    table.execute("INSERT INTO child VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError):
        table.commit()
    assert table.in_transaction
    table.execute("INSERT INTO t VALUES (1)")
    table.commit()
    assert table.execute("SELECT count(*) FROM child").fetchone() == (1,)


def test_a_commit_that_meets_a_reader_can_be_repeated(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    reading = other.execute("SELECT column1 FROM (VALUES (1), (2)) LEFT JOIN t")
    with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
        table.commit()
    assert caught.value.sqlite_errorname == "SQLITE_BUSY"
    assert table.in_transaction
    reading.fetchall()
    table.commit()
    assert count(other) == 1


def test_nested_blocks_share_the_transaction(table: sqlite3.Connection) -> None:
    with table:
        table.execute("INSERT INTO t VALUES (1)")
        with table:
            table.execute("INSERT INTO t VALUES (2)")
        assert not table.in_transaction
    assert count(table) == 2


def test_closing_rolls_back(path: Path, table: sqlite3.Connection) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    table.close()
    again = sqlite3.connect(path)
    assert count(again) == 0
    again.close()


def test_dropping_the_last_reference_rolls_back(
    path: Path, table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    dropped = sqlite3.connect(path)
    cursor = dropped.execute("INSERT INTO t VALUES (1)")
    del dropped
    assert not may(other, "BEGIN IMMEDIATE")
    del cursor
    assert may(other, "BEGIN EXCLUSIVE")
    assert count(other) == 0


def test_reads_can_be_ended_in_the_middle_of_their_rows(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    table.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (3,)])
    table.commit()
    first, second, whole = (table.execute("SELECT a FROM t ORDER BY a") for _ in range(3))
    assert whole.fetchall() == [(1,), (2,), (3,)]
    assert first.fetchone() == (1,)
    assert not may(other, "BEGIN EXCLUSIVE")
    assert table.end_reads()
    assert may(other, "BEGIN EXCLUSIVE")
    for cursor in (first, second):
        for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, cursor.__next__):
            with pytest.raises(sqlite3.OperationalError, match="run it again") as caught:
                fetch()
            assert caught.value.sqlite_errorname == "SQLITE_ABORT"
    assert whole.fetchall() == []
    assert first.execute("SELECT max(a) FROM t").fetchall() == [(3,)]
    writing = table.execute("INSERT INTO t VALUES (4), (5) RETURNING a")
    assert not table.end_reads()
    assert writing.fetchall() == [(4,), (5,)]


def test_the_state_of_a_connection_is_told_while_another_thread_works_with_it() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    works, told = threading.Event(), threading.Event()

    def wait() -> bool:
        works.set()
        return told.wait(30)

    connection.create_function("wait", 0, wait)
    connection.executescript("CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES (1), (2)")
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(connection.execute("SELECT wait()").fetchone())
    )
    thread.start()
    assert works.wait(30)
    assert connection.in_transaction
    assert connection.total_changes == 2
    told.set()
    thread.join()
    assert answers == [(1,)]
    connection.close()
