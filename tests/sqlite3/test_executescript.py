"""``executescript``: many statements, the commit before them, errors in the middle."""

import time
from pathlib import Path

import pytest

from oxlite import sqlite3


def test_every_statement_runs(connection: sqlite3.Connection) -> None:
    cursor = connection.cursor()
    assert (
        cursor.executescript(
            """
            -- a comment; with a semicolon
            CREATE TABLE t(a, b DEFAULT ';'); /* and ; another */
            INSERT INTO t(a) VALUES (1), (2);;
            CREATE TRIGGER more AFTER INSERT ON t BEGIN
                UPDATE t SET b = 'x; y' WHERE a = new.a;
            END;
            INSERT INTO t(a) VALUES (3)
            """
        )
        is cursor
    )
    assert connection.execute("SELECT a, b FROM t ORDER BY a").fetchall() == [
        (1, ";"),
        (2, ";"),
        (3, "x; y"),
    ]


@pytest.mark.parametrize("script", ["", " ", ";", ";;\n;", "-- only", "/* never closed"])
def test_a_script_of_nothing(connection: sqlite3.Connection, script: str) -> None:
    connection.executescript(script)


def test_rows_are_discarded(connection: sqlite3.Connection) -> None:
    cursor = connection.executescript("SELECT 1; SELECT 2")
    assert cursor.fetchall() == []


def test_the_open_transaction_is_committed_first(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(a)")
    connection.execute("INSERT INTO t VALUES (1)")
    assert connection.in_transaction
    connection.executescript("INSERT INTO t VALUES (2)")
    assert not connection.in_transaction
    other = sqlite3.connect(path)
    assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
    connection.close()
    other.close()


def test_it_begins_no_transaction_of_its_own(connection: sqlite3.Connection) -> None:
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    assert not connection.in_transaction
    connection.executescript("BEGIN; INSERT INTO t VALUES (2)")
    assert connection.in_transaction
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_an_error_in_the_middle_keeps_what_ran_before_it(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="syntax error") as caught:
        connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE nonsense; 1")
    assert caught.value.sqlite_errorname == "SQLITE_ERROR"
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
    with pytest.raises(sqlite3.IntegrityError):
        connection.executescript("CREATE TABLE u(a NOT NULL); INSERT INTO u VALUES (NULL); DROP t")
    assert connection.execute("SELECT count(*) FROM u").fetchone() == (0,)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (b"SELECT 1", TypeError),
        (None, TypeError),
        (1, TypeError),
        ("SELECT 1; \0 SELECT 2", ValueError),
        ("SELECT '\ud800'", UnicodeEncodeError),
    ],
)
def test_what_is_no_script(
    connection: sqlite3.Connection, script: str, error: type[Exception]
) -> None:
    connection.execute("CREATE TABLE t(a)")
    with pytest.raises(error):
        connection.executescript(script)


def test_a_refused_script_commits_nothing(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE t(a)")
    connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(ValueError, match="null character"):
        connection.executescript("SELECT 1; \0")
    assert connection.in_transaction


def test_the_time_of_a_script_grows_with_its_length_not_with_its_square() -> None:
    """Twice as many statements take about twice as long; four times would be quadratic.

    The long one is eight times the short one: linear is 8, quadratic is 64.
    """

    def seconds(statements: int) -> float:
        script = (
            "SELECT 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx';" * statements
        )
        connection = sqlite3.connect(":memory:")
        begun = time.thread_time()
        connection.executescript(script)
        elapsed = time.thread_time() - begun
        connection.close()
        return elapsed

    ratio = min(seconds(40_000) for _ in range(2)) / min(seconds(5_000) for _ in range(3))
    assert ratio < 24


REPEATED = "BEGIN; INSERT INTO t VALUES (1); -- a comment\n SELECT a FROM t; COMMIT;"


@pytest.mark.parametrize("cached_statements", [0, 1, 128])
def test_a_script_may_run_again_and_again(cached_statements: int) -> None:
    connection = sqlite3.connect(":memory:", cached_statements=cached_statements)
    connection.execute("CREATE TABLE t(a)")
    for _ in range(5):
        connection.executescript(REPEATED)
    connection.executescript("DROP TABLE t; CREATE TABLE t(a INTEGER PRIMARY KEY)")
    connection.executescript(REPEATED)
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.executescript(REPEATED)
    assert connection.in_transaction
    connection.rollback()
    connection.execute("DELETE FROM t")
    connection.executescript(REPEATED)
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
    connection.close()


def test_a_script_that_changes_the_schema_or_settings_may_run_again_and_again(
    connection: sqlite3.Connection,
) -> None:
    for number in range(4):
        connection.executescript("DROP TABLE IF EXISTS t; CREATE TABLE t(a); PRAGMA user_version=7")
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        assert connection.execute("PRAGMA user_version").fetchone() == (7,)
        connection.execute("PRAGMA user_version=0")
        connection.commit()


def test_a_repeated_script_asks_an_authorizer_that_is_set_later(
    connection: sqlite3.Connection,
) -> None:
    connection.execute("CREATE TABLE t(a)")
    for _ in range(3):
        connection.executescript(REPEATED)
    connection.set_authorizer(lambda action, *_: action == sqlite3.SQLITE_INSERT)
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        connection.executescript(REPEATED)


def test_an_authorizer_is_asked_each_time_a_script_is_run(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE t(a)")
    for _ in range(3):
        connection.executescript(REPEATED)
    answers = {"INSERT": sqlite3.SQLITE_OK}
    connection.set_authorizer(
        lambda action, *_: answers["INSERT"] if action == sqlite3.SQLITE_INSERT else 0
    )
    for _ in range(3):
        connection.executescript(REPEATED)
    answers["INSERT"] = sqlite3.SQLITE_DENY
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        connection.executescript(REPEATED)
    connection.rollback()
    connection.set_authorizer(None)
    connection.executescript(REPEATED)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (7,)


def test_a_function_called_by_a_repeated_script_may_run_none_itself(
    connection: sqlite3.Connection,
) -> None:
    refused: list[Exception] = []

    def run_again() -> None:
        try:
            connection.executescript("SELECT again()")
        except sqlite3.Error as error:
            refused.append(error)

    connection.create_function("again", 0, run_again)
    for _ in range(4):
        connection.executescript("SELECT again()")
    assert len(refused) == 4
