"""``busy_handler``: waiting for a lock in one's own way."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

Opened = Callable[..., sqlite3.Connection]


@pytest.fixture
def holder(path: Path, opened: Opened) -> sqlite3.Connection:
    """A connection that holds the write lock of a file with the table ``t(a)``."""
    connection = opened(path, isolation_level=None)
    connection.executescript("CREATE TABLE t(a); BEGIN IMMEDIATE")
    return connection


def write(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO t VALUES (1)")


def test_it_is_told_how_often_it_was_asked(
    holder: sqlite3.Connection, path: Path, opened: Opened
) -> None:
    asked: list[int] = []

    def handler(calls: int) -> bool:
        asked.append(calls)
        return calls < 3

    connection = opened(path, busy_handler=handler)
    assert connection.busy == "handler"
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match=r"^database is locked$") as caught:
            write(connection)
        assert caught.value.sqlite_errorname == "SQLITE_BUSY"
    assert asked == [0, 1, 2, 3] * 2


def test_it_goes_on_when_the_lock_is_free(
    holder: sqlite3.Connection, path: Path, opened: Opened
) -> None:
    def handler(calls: int) -> bool:
        if calls == 2:
            holder.execute("COMMIT")
        return True

    connection = opened(path, busy_handler=handler)
    write(connection)
    connection.commit()
    assert holder.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_the_timeout_does_not_limit_it(
    holder: sqlite3.Connection, path: Path, opened: Opened
) -> None:
    asked: list[int] = []

    def handler(calls: int) -> bool:
        asked.append(calls)
        return calls < 50

    connection = opened(path, busy_handler=handler, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write(connection)
    assert asked == list(range(51))


@pytest.mark.parametrize("answer", [False, 0, None, "", [], 0.0])
def test_a_false_answer_ends_the_wait(
    holder: sqlite3.Connection, path: Path, opened: Opened, answer: object
) -> None:
    connection = opened(path, busy_handler=lambda calls: answer)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write(connection)


@pytest.mark.parametrize("wrong", [lambda calls: 1 / 0, lambda: True])
def test_an_exception_ends_the_wait(
    holder: sqlite3.Connection,
    path: Path,
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Untyped,
) -> None:
    """It is shown if that was asked for."""
    shown: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: shown.append(args.exc_type))
    connection = opened(path, busy_handler=wrong)
    sqlite3.enable_callback_tracebacks(True)
    try:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            write(connection)
    finally:
        sqlite3.enable_callback_tracebacks(False)
    assert shown in ([ZeroDivisionError], [TypeError])


def test_an_answer_without_a_truth_ends_the_wait(
    holder: sqlite3.Connection, path: Path, opened: Opened
) -> None:
    class Neither:
        def __bool__(self) -> bool:
            raise ZeroDivisionError

    connection = opened(path, busy_handler=lambda calls: Neither())
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write(connection)


def test_it_cannot_use_the_connection(
    holder: sqlite3.Connection, path: Path, opened: Opened
) -> None:
    errors: list[str] = []

    def handler(calls: int) -> bool:
        for act in (lambda: connection.execute("SELECT 1"), connection.close, connection.rollback):
            try:
                act()
            except sqlite3.ProgrammingError as error:
                errors.append(str(error))
        return False

    connection = opened(path, busy_handler=handler)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write(connection)
    assert len(errors) == 3
    assert set(errors) == {"A callback of this kind cannot use the connection that calls it."}


def test_it_may_interrupt_the_connection(
    holder: sqlite3.Connection, path: Path, opened: Opened
) -> None:

    def handler(calls: int) -> bool:
        connection.interrupt()
        return True

    connection = opened(path, busy_handler=handler)
    with pytest.raises(sqlite3.OperationalError, match=r"^interrupted$") as caught:
        write(connection)
    assert caught.value.sqlite_errorname == "SQLITE_INTERRUPT"
    holder.execute("COMMIT")
    write(connection)


def test_the_gil_is_free_while_it_sleeps(
    holder: sqlite3.Connection, path: Path, opened: Opened, in_thread: Callable[..., Any]
) -> None:
    """The thread that holds the lock gets its turn, and ends the wait."""

    def handler(calls: int) -> bool:
        if calls == 0:
            in_thread(time.sleep, 0.01)
            in_thread(lambda: shared.execute("COMMIT"))
        time.sleep(0.001)
        return calls < 5000

    holder.execute("COMMIT")
    shared = opened(path, check_same_thread=False, isolation_level=None)
    shared.execute("BEGIN IMMEDIATE")
    connection = opened(path, busy_handler=handler)
    write(connection)


def test_it_is_asked_while_opening_too(path: Path, opened: Opened) -> None:
    """Turning the file to WAL needs a lock."""
    other = opened(path, profile="stock", isolation_level=None)
    other.executescript("CREATE TABLE t(a); BEGIN EXCLUSIVE")
    asked: list[int] = []

    def handler(calls: int) -> bool:
        asked.append(calls)
        if calls == 3:
            other.execute("COMMIT")
        return True

    connection = opened(path, busy_handler=handler)
    assert asked == [0, 1, 2, 3]
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_it_excludes_a_policy_by_name(path: Path) -> None:
    with pytest.raises(ValueError, match="busy and busy_handler exclude one another"):
        oxlite.connect(path, busy="fair", busy_handler=lambda calls: False)
    assert not path.exists()


def test_it_must_be_callable(path: Path) -> None:
    with pytest.raises(TypeError):
        oxlite.connect(path, busy_handler=3)  # type: ignore[arg-type]
    assert not path.exists()


def test_of_the_drop_in_face_too(holder: sqlite3.Connection, path: Path) -> None:
    asked: list[int] = []
    connection = sqlite3.connect(path, busy_handler=asked.append)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write(connection)
    connection.close()
    assert asked == [0]
