"""``Connection.interrupt``: of statements, of waits for a lock, at any moment, from any thread."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oxlite import sqlite3

Opened = Callable[..., sqlite3.Connection]


def wait_on(calls: int) -> bool:
    time.sleep(0.01)
    return True


INTERRUPTED = pytest.raises(sqlite3.OperationalError, match=r"^interrupted$")


@contextlib.contextmanager
def interrupting(connection: sqlite3.Connection) -> Iterator[None]:
    """Another thread interrupts again and again: it does nothing until something runs."""
    over = threading.Event()

    def interrupt() -> None:
        while not over.wait(0.01):
            connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def locked(path: Path, opened: Opened) -> sqlite3.Connection:
    """Holds the write lock of a file with the table ``t(a)``."""
    connection = opened(path, isolation_level=None)
    connection.executescript("CREATE TABLE t(a); BEGIN IMMEDIATE")
    return connection


@pytest.mark.parametrize(
    "options",
    [{"busy": "fair"}, {"busy_handler": wait_on}],
    ids=["fair", "handler"],
)
@pytest.mark.parametrize(
    "act",
    [
        lambda c: c.execute("INSERT INTO t VALUES (1)"),
        lambda c: c.execute("BEGIN IMMEDIATE"),
        lambda c: c.executemany("INSERT INTO t VALUES (?)", [(1,)]),
        lambda c: c.executescript("INSERT INTO t VALUES (1)"),
        lambda c: c.execute("INSERT INTO t VALUES (1) RETURNING a").fetchall(),
    ],
    ids=["insert", "begin", "executemany", "executescript", "returning"],
)
def test_a_wait_for_a_lock_ends(
    locked: sqlite3.Connection,
    path: Path,
    opened: Opened,
    options: dict[str, object],
    act: Callable[[sqlite3.Connection], object],
) -> None:
    """Far before its timeout, which is longer than a test may take."""
    connection = opened(path, timeout=3600, check_same_thread=False, **options)
    with INTERRUPTED as caught, interrupting(connection):
        act(connection)
    assert type(caught.value) is sqlite3.OperationalError
    assert (caught.value.sqlite_errorname, caught.value.sqlite_errorcode) == ("SQLITE_INTERRUPT", 9)
    assert not connection.in_transaction
    locked.execute("COMMIT")
    act(connection)


def test_a_wait_of_commit_ends(path: Path, opened: Opened) -> None:
    """In a rollback journal a reader keeps the writer from committing."""
    writer = opened(path, profile="stock", busy="fair", timeout=3600, check_same_thread=False)
    reader = opened(path, profile="stock", isolation_level=None)
    writer.execute("CREATE TABLE t(a)")
    writer.execute("INSERT INTO t VALUES (1)")
    writer.commit()
    writer.execute("INSERT INTO t VALUES (2)")
    reader.execute("BEGIN")
    assert reader.execute("SELECT a FROM t").fetchall() == [(1,)]
    with INTERRUPTED, interrupting(writer):
        writer.commit()
    assert writer.in_transaction
    reader.execute("COMMIT")
    writer.commit()
    assert reader.execute("SELECT a FROM t").fetchall() == [(1,), (2,)]


def test_when_nothing_runs_nothing_happens(
    locked: sqlite3.Connection, path: Path, opened: Opened
) -> None:
    connection = opened(path, busy="fair", timeout=0.05)
    for sql in ("SELECT count(*) FROM t", "INSERT INTO t VALUES (1)"):
        connection.interrupt()
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute(sql)
    connection.interrupt()
    with pytest.raises(sqlite3.OperationalError, match=r"^database is locked$"):
        connection.execute("INSERT INTO t VALUES (1)")
    connection.interrupt()
    assert connection.execute("SELECT count(*) FROM t -- prepared anew").fetchone() == (0,)


def test_between_two_fetches(connection: sqlite3.Connection) -> None:
    """The statement stands in the middle of its rows, so it is interrupted when it goes on."""
    cursor = connection.execute("VALUES (1), (2), (3)")
    other = connection.execute("VALUES (4), (5), (6)")
    assert cursor.fetchone() == (1,)
    connection.interrupt()
    with INTERRUPTED:
        cursor.fetchall()
    with INTERRUPTED:
        other.fetchall()
    assert connection.execute("VALUES (7)").fetchall() == [(7,)]


def test_from_inside_a_function(connection: sqlite3.Connection) -> None:
    connection.create_function("stop", 0, connection.interrupt)
    with INTERRUPTED:
        connection.execute("SELECT stop() FROM (VALUES (1), (2), (3))").fetchall()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_connection_that_is_not_open() -> None:
    with pytest.raises(sqlite3.ProgrammingError, match=r"__init__ not called"):
        sqlite3.Connection.__new__(sqlite3.Connection).interrupt()
    connection = sqlite3.connect(":memory:")
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.interrupt()


def test_while_it_is_being_closed(path: Path) -> None:
    """Neither a crash nor a hang: it comes too early, or too late."""
    for _ in range(50):
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.execute("CREATE TABLE IF NOT EXISTS t(a)")
        begun = threading.Event()

        def interrupt(
            connection: sqlite3.Connection = connection, begun: threading.Event = begun
        ) -> None:
            with contextlib.suppress(sqlite3.ProgrammingError):
                while True:
                    connection.interrupt()
                    begun.set()

        thread = threading.Thread(target=interrupt)
        thread.start()
        begun.wait(10)
        connection.close()
        thread.join()


_AT_ANY_MOMENT = """
import random, sys, threading, time
import oxlite
from oxlite import sqlite3

sys.setswitchinterval(1e-5)
path, seed = sys.argv[1], int(sys.argv[2])
options = {"statement_timeout": 30} if seed % 2 else {}
connection = oxlite.connect(path, check_same_thread=False, **options)
connection.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, a)")
connection.create_function("plus_one", 1, lambda a: a + 1)
until = time.monotonic() + 2
failures, interrupted, done = [], [0], [0]
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
COUNT += "SELECT i FROM n"

def going_on():
    return time.monotonic() < until and not failures

def worker(work):
    def run():
        round = 0
        while going_on():
            round += 1
            try:
                work(round)
                done[0] += 1
            except sqlite3.OperationalError as error:
                # Interrupted while it was prepared, a table-valued function says so in its way.
                if "vtable constructor failed" in str(error):
                    continue
                if (str(error), error.sqlite_errorname) != ("interrupted", "SQLITE_INTERRUPT"):
                    failures.append(repr(error))
                interrupted[0] += 1
            except BaseException as error:
                failures.append(repr(error))
    return threading.Thread(target=run)

def read(round):
    rows = connection.execute(COUNT % 2000).fetchall()
    assert rows == [(i,) for i in range(1, 2001)]

def iterate(round):
    expected = 0
    for (i,) in connection.execute(COUNT % 100):
        expected += 1
        assert i == expected
    assert expected == 100

def call(round):
    sql = "SELECT sum(plus_one(value)) FROM json_each('[1, 2, 3]')"
    assert connection.execute(sql).fetchone() == (9,)

def write(round):
    # All of one statement or nothing, whenever it is interrupted.
    sql = "INSERT INTO t(a) SELECT ? FROM (" + COUNT % 10 + ")"
    connection.execute(sql, (round,))
    connection.commit()

def roll_back(round):
    connection.rollback()

def interrupt():
    pause = random.Random(seed)
    while going_on():
        connection.interrupt()
        time.sleep(pause.choice([0, 0, 1e-4, 1e-3, 5e-3]))

threads = [worker(work) for work in (read, iterate, call, write, roll_back)]
threads.append(threading.Thread(target=interrupt))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
assert interrupted[0] and done[0], (interrupted, done)
connection.rollback()
assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
parts = "SELECT count(*) FROM t GROUP BY a HAVING count(*) <> 10"
assert connection.execute(parts).fetchall() == []
connection.execute("INSERT INTO t(a) VALUES ('goes on')")
connection.commit()
connection.close()
"""


@pytest.mark.parametrize("seed", range(4))
def test_at_any_moment(child: Callable[..., str], path: Path, seed: int) -> None:
    """A statement gives all of its rows, or is interrupted; then the connection goes on."""
    child(_AT_ANY_MOMENT, path, seed, seconds=60)


def test_a_wait_ends_for_each_of_many_connections(
    locked: sqlite3.Connection, path: Path, opened: Opened
) -> None:
    connections = [opened(path, timeout=3600, check_same_thread=False) for _ in range(8)]
    outcomes: list[str] = []

    def wait(connection: sqlite3.Connection) -> None:
        try:
            connection.execute("INSERT INTO t VALUES (1)")
        except sqlite3.OperationalError as error:
            outcomes.append(str(error))

    with contextlib.ExitStack() as stack:
        threads = [threading.Thread(target=wait, args=(one,)) for one in connections]
        for thread in threads:
            thread.start()
        for connection in connections:
            stack.enter_context(interrupting(connection))
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert outcomes == ["interrupted"] * 8
