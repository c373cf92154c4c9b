"""``statement_timeout``: a statement that works or waits for too long is interrupted.

No test measures how exact it is. A statement that would run for ever ends, and one that does not
use its time up goes on; ``SOON`` is short for a person and long for a statement that does nothing.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

Opened = Callable[..., sqlite3.Connection]

SOON = 0.1
FOR_EVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
ROWS_AND_THEN_NONE = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT i FROM n WHERE i <= 3
"""
TIMEOUT = pytest.raises(
    oxlite.StatementTimeout,
    match=r"^the statement has used up its time \(statement_timeout\) and was interrupted$",
)


@pytest.fixture
def hasty(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose statements may work for ``SOON``, to a file with the table ``t(a)``."""
    connection = oxlite.connect(path, statement_timeout=SOON, isolation_level=None)
    connection.execute("CREATE TABLE t(a)")
    yield connection
    connection.close()


def test_the_exception(hasty: sqlite3.Connection) -> None:
    with TIMEOUT as caught:
        hasty.execute(FOR_EVER)
    assert isinstance(caught.value, sqlite3.OperationalError)
    assert (caught.value.sqlite_errorname, caught.value.sqlite_errorcode) == ("SQLITE_INTERRUPT", 9)
    assert hasty.execute("SELECT 'goes on'").fetchone() == ("goes on",)


@pytest.mark.parametrize(
    "act",
    [
        lambda c: c.execute(FOR_EVER),
        lambda c: c.executescript("SELECT 1;" + FOR_EVER),
        lambda c: c.executemany("INSERT INTO t SELECT * FROM (" + FOR_EVER + ") LIMIT ?", [(1,)]),
        lambda c: c.execute(ROWS_AND_THEN_NONE).fetchall(),
        lambda c: c.execute(ROWS_AND_THEN_NONE).fetchmany(9),
        lambda c: list(c.execute(ROWS_AND_THEN_NONE)),
        lambda c: c.execute("INSERT INTO t " + FOR_EVER),
        lambda c: c.execute("CREATE TABLE u AS " + FOR_EVER),
    ],
)  # fmt: skip
def test_whatever_runs_for_ever_ends(
    hasty: sqlite3.Connection, act: Callable[[sqlite3.Connection], object]
) -> None:
    with TIMEOUT:
        act(hasty)
    assert not hasty.in_transaction
    assert hasty.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_the_rows_before_it_are_good(hasty: sqlite3.Connection) -> None:
    cursor = hasty.execute(ROWS_AND_THEN_NONE)
    assert [cursor.fetchone(), cursor.fetchone()] == [(1,), (2,)]
    with TIMEOUT:
        cursor.fetchone()
    assert cursor.fetchone() is None


def test_the_time_between_two_fetches_does_not_count(hasty: sqlite3.Connection) -> None:
    cursor = hasty.execute("VALUES (1), (2), (3)")
    rows = [cursor.fetchone()]
    time.sleep(2 * SOON)
    rows += [cursor.fetchone()]
    time.sleep(2 * SOON)
    assert rows + cursor.fetchall() == [(1,), (2,), (3,)]


def test_the_time_in_code_of_the_applications_does_not_count(hasty: sqlite3.Connection) -> None:
    """Parameters are made, rows are converted, with nothing running."""

    def sets() -> Iterator[tuple[int]]:
        for i in range(3):
            time.sleep(SOON)
            yield (i,)

    hasty.executemany("INSERT INTO t VALUES (?)", sets())

    def slow(text: bytes) -> bytes:
        time.sleep(SOON)
        return text

    hasty.text_factory = slow
    assert hasty.execute("SELECT 'a' UNION ALL SELECT 'b'").fetchall() == [(b"a",), (b"b",)]


def test_the_stretches_of_one_statement_add_up(hasty: sqlite3.Connection) -> None:
    """Each row takes a part of the time, so the rows end before they are all read."""
    slow = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
        "SELECT count(*) FROM n"
    )
    rows = hasty.execute(
        f"WITH RECURSIVE r(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM r WHERE j < 1000000) "
        f"SELECT j, ({slow} WHERE j > 0) FROM r"
    )
    with TIMEOUT:
        for _ in rows:
            pass


def test_every_statement_has_its_own_time(hasty: sqlite3.Connection) -> None:
    for _ in range(3):
        with TIMEOUT:
            hasty.execute(FOR_EVER)
        assert hasty.execute("INSERT INTO t VALUES (1)").rowcount == 1


def test_in_a_transaction(hasty: sqlite3.Connection) -> None:
    """An interrupted INSERT ends the transaction, which is SQLite's way; a SELECT does not."""
    hasty.execute("BEGIN")
    hasty.execute("INSERT INTO t VALUES (1)")
    with TIMEOUT:
        hasty.execute(FOR_EVER)
    assert hasty.in_transaction
    with TIMEOUT:
        hasty.execute("INSERT INTO t " + FOR_EVER.replace("count(*)", "i"))
    assert not hasty.in_transaction
    assert hasty.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_waiting_for_a_lock_counts(hasty: sqlite3.Connection, path: Path, opened: Opened) -> None:
    other = opened(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with TIMEOUT:
        hasty.execute("INSERT INTO t VALUES (1)")
    other.execute("ROLLBACK")
    hasty.execute("INSERT INTO t VALUES (1)")


def test_waiting_by_a_handler_counts(path: Path, opened: Opened) -> None:
    other = opened(path, isolation_level=None)
    other.executescript("CREATE TABLE t(a); BEGIN IMMEDIATE")

    def again(calls: int) -> bool:
        time.sleep(0.01)
        return True

    patient = opened(path, busy_handler=again, statement_timeout=SOON)
    with TIMEOUT:
        patient.execute("INSERT INTO t VALUES (1)")


def test_waiting_for_the_schema_counts(path: Path, opened: Opened) -> None:
    """A rollback journal's exclusive lock keeps others even from preparing."""
    other = opened(path, profile="stock", isolation_level=None)
    hasty = opened(path, profile="stock", busy="fair", timeout=2, statement_timeout=SOON)
    other.executescript("CREATE TABLE t(a); BEGIN EXCLUSIVE")
    with TIMEOUT:
        hasty.execute("SELECT * FROM t")


def test_a_later_error_is_not_a_timeout(path: Path, opened: Opened) -> None:
    """The checkpoint gives up waiting for the reader, and says so in a row, not by an error."""
    writer = opened(path, timeout=0.2, statement_timeout=SOON, isolation_level=None)
    other = opened(path, isolation_level=None)
    writer.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    other.execute("BEGIN")
    other.execute("SELECT * FROM t").fetchall()
    writer.execute("INSERT INTO t VALUES (2)")
    writer.executescript("PRAGMA wal_checkpoint(TRUNCATE)")
    other.commit()
    other.execute("BEGIN IMMEDIATE")
    writer.statement_timeout = None
    with pytest.raises(sqlite3.OperationalError, match=r"^database is locked\b"):
        writer.execute("INSERT INTO t VALUES (3)")


def test_it_can_be_changed(connection: sqlite3.Connection) -> None:
    assert connection.statement_timeout is None
    connection.statement_timeout = SOON
    assert connection.statement_timeout == SOON
    with TIMEOUT:
        connection.execute(FOR_EVER)
    connection.statement_timeout = 3600
    connection.set_progress_handler(lambda: True, 100_000)
    with pytest.raises(sqlite3.OperationalError, match=r"^interrupted$") as caught:
        connection.execute(FOR_EVER)
    assert type(caught.value) is sqlite3.OperationalError
    connection.statement_timeout = None
    assert connection.statement_timeout is None


def test_a_statement_keeps_the_time_it_began_with(hasty: sqlite3.Connection) -> None:
    cursor = hasty.execute(ROWS_AND_THEN_NONE)
    hasty.statement_timeout = None
    with TIMEOUT:
        cursor.fetchall()


def test_beside_a_progress_handler_of_ones_own(hasty: sqlite3.Connection) -> None:
    calls: list[None] = []
    hasty.set_progress_handler(lambda: calls.append(None), 10_000_000)
    with TIMEOUT:
        hasty.execute(FOR_EVER)
    hasty.set_progress_handler(lambda: calls.append(None), 1)
    with TIMEOUT:
        hasty.execute(FOR_EVER)
    assert calls
    hasty.set_progress_handler(None, 0)
    with TIMEOUT:
        hasty.execute(FOR_EVER)


def test_inside_a_function(hasty: sqlite3.Connection) -> None:
    """A statement inside another one has no more time than that one has left."""
    caught: list[BaseException] = []

    def inner() -> None:
        try:
            hasty.execute(FOR_EVER)
        except sqlite3.Error as error:
            caught.append(error)

    hasty.create_function("inner", 0, inner)
    with TIMEOUT:
        hasty.execute("SELECT inner() FROM (" + ROWS_AND_THEN_NONE + ")").fetchall()
    assert {type(error) for error in caught} == {oxlite.StatementTimeout}
    assert hasty.execute("SELECT 1").fetchone() == (1,)


def test_an_interruption_is_no_timeout() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False, statement_timeout=60)
    over = threading.Event()

    def interrupt() -> None:
        while not over.wait(0.01):
            connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(sqlite3.OperationalError, match=r"^interrupted$") as caught:
            connection.execute(FOR_EVER)
    finally:
        over.set()
        thread.join()
        connection.close()
    assert type(caught.value) is sqlite3.OperationalError


def test_threads_that_share_a_connection(in_thread: Callable[..., Any]) -> None:
    """Waiting for another thread's statement does not count."""
    with contextlib.closing(
        sqlite3.connect(":memory:", check_same_thread=False, statement_timeout=SOON)
    ) as connection:
        begun = threading.Event()

        def hold() -> int:
            begun.set()
            time.sleep(3 * SOON)
            return 1

        connection.create_function("hold", 0, hold)
        thread = threading.Thread(target=lambda: connection.execute("SELECT hold()").fetchall())
        thread.start()
        begun.wait(10)
        assert connection.execute("SELECT 2").fetchone() == (2,)
        thread.join()


@pytest.mark.parametrize("timeout", [0, -1, -0.0, float("nan"), float("inf"), 1e300, 1e-30])
def test_a_value_that_is_no_time(
    connection: sqlite3.Connection, path: Path, timeout: float
) -> None:
    with pytest.raises(ValueError, match="statement_timeout must be a positive number of seconds"):
        oxlite.connect(path, statement_timeout=timeout)
    assert not path.exists()
    with pytest.raises(ValueError, match="statement_timeout must be a positive number of seconds"):
        connection.statement_timeout = timeout
    assert connection.statement_timeout is None


@pytest.mark.parametrize("timeout", ["1", b"1", [], object()])
def test_a_value_of_the_wrong_type(path: Path, timeout: Untyped) -> None:
    with pytest.raises(TypeError):
        oxlite.connect(path, statement_timeout=timeout)
    assert not path.exists()


@pytest.mark.parametrize("timeout", [1e15, 1e18, 5, True])
def test_a_long_time(timeout: float) -> None:
    with contextlib.closing(oxlite.connect(":memory:", statement_timeout=timeout)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.statement_timeout == timeout
