"""Threads: who may use a connection, one connection and one cursor under many threads."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxlite import sqlite3

THREADS = 8

Call = Callable[[sqlite3.Connection, sqlite3.Cursor], object]

# What a thread other than the owner may not do.
REFUSED: dict[str, Call] = {
    "Connection.cursor": lambda connection, cursor: connection.cursor(),
    "Connection.execute": lambda connection, cursor: connection.execute("SELECT 1"),
    "Connection.executemany": lambda connection, cursor: connection.executemany(
        "INSERT INTO t VALUES (?)", []
    ),
    "Connection.executescript": lambda connection, cursor: connection.executescript(""),
    "Connection.commit": lambda connection, cursor: connection.commit(),
    "Connection.rollback": lambda connection, cursor: connection.rollback(),
    "Connection.close": lambda connection, cursor: connection.close(),
    "Connection.__exit__": lambda connection, cursor: connection.__exit__(None, None, None),
    "Connection.isolation_level": lambda connection, cursor: setattr(
        connection, "isolation_level", None
    ),
    "Cursor": lambda connection, cursor: sqlite3.Cursor(connection),
    "Cursor.execute": lambda connection, cursor: cursor.execute("SELECT 1"),
    "Cursor.executemany": lambda connection, cursor: cursor.executemany("DELETE FROM t", []),
    "Cursor.executescript": lambda connection, cursor: cursor.executescript(""),
    "Cursor.fetchone": lambda connection, cursor: cursor.fetchone(),
    "Cursor.fetchmany": lambda connection, cursor: cursor.fetchmany(),
    "Cursor.fetchall": lambda connection, cursor: cursor.fetchall(),
    "Cursor.__next__": lambda connection, cursor: next(cursor),
    "Cursor.close": lambda connection, cursor: cursor.close(),
}

# What any thread may do.
ALLOWED: dict[str, Call] = {
    "Connection.interrupt": lambda connection, cursor: connection.interrupt(),
    "Connection.in_transaction": lambda connection, cursor: connection.in_transaction,
    "Connection.total_changes": lambda connection, cursor: connection.total_changes,
    "Connection.row_factory": lambda connection, cursor: connection.row_factory,
    "Connection.isolation_level": lambda connection, cursor: connection.isolation_level,
    "Cursor.description": lambda connection, cursor: cursor.description,
    "Cursor.rowcount": lambda connection, cursor: cursor.rowcount,
    "Cursor.lastrowid": lambda connection, cursor: cursor.lastrowid,
    "Cursor.connection": lambda connection, cursor: cursor.connection,
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_another_thread_is_refused(
    connection: sqlite3.Connection, in_thread: Callable[..., Any], call: Call
) -> None:
    connection.execute("CREATE TABLE t(a)")
    connection.execute("INSERT INTO t VALUES (1)")
    cursor = connection.execute("SELECT 1 UNION SELECT 2")
    with pytest.raises(
        sqlite3.ProgrammingError,
        match=r"^SQLite objects created in a thread can only be used in that same thread\. "
        r"The object was created in thread id \d+ and this is thread id \d+\.$",
    ) as caught:
        in_thread(call, connection, cursor)
    assert f"created in thread id {threading.get_ident()} " in str(caught.value)
    assert connection.in_transaction
    assert cursor.fetchall() == [(1,), (2,)]


@pytest.mark.parametrize("call", ALLOWED.values(), ids=ALLOWED.keys())
def test_another_thread_may(
    connection: sqlite3.Connection, in_thread: Callable[..., Any], call: Call
) -> None:
    in_thread(call, connection, connection.execute("SELECT 1"))


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_the_check_can_be_turned_off(in_thread: Callable[..., Any], call: Call) -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE t(a)")
    cursor = connection.execute("SELECT 1 UNION SELECT 2")
    in_thread(call, connection, cursor)
    connection.close()


def test_the_check_counts_from_the_latest_init(in_thread: Callable[..., Any]) -> None:
    connection = in_thread(sqlite3.connect, ":memory:")
    with pytest.raises(sqlite3.ProgrammingError, match="same thread"):
        connection.execute("SELECT 1")
    connection.__init__(":memory:")
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.close()


def together(*functions: Callable[[], object]) -> None:
    """Runs each function in a thread of its own; raises what the first one raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(functions))

    def run(function: Callable[[], object]) -> None:
        try:
            barrier.wait(30)
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("cached_statements", [0, 2, 128])
def test_many_threads_write_and_read_through_one_connection(
    path: Path, cached_statements: int
) -> None:
    connection = sqlite3.connect(
        path, check_same_thread=False, cached_statements=cached_statements, isolation_level=None
    )
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
        "CREATE TABLE t(thread, n, text, PRIMARY KEY (thread, n))"
    )

    def work(thread: int) -> None:
        for n in range(150):
            text = f"{thread}/{n}" * 5
            connection.execute("INSERT INTO t VALUES (?, ?, ?)", (thread, n, text))
            row = connection.execute(
                "SELECT thread, n, text FROM t WHERE thread = ? AND n = ?", (thread, n)
            ).fetchone()
            assert row == (thread, n, text)
            if n % 10 == 0:
                mine = connection.execute(
                    "SELECT n, text FROM t WHERE thread = ? ORDER BY n", (thread,)
                )
                assert mine.fetchmany(5) == [(m, f"{thread}/{m}" * 5) for m in range(n + 1)][:5]
                assert [m for m, _ in mine] == list(range(n + 1))[5:]

    together(*(lambda thread=thread: work(thread) for thread in range(THREADS)))
    assert connection.execute("SELECT count(*), count(DISTINCT text) FROM t").fetchone() == (
        150 * THREADS,
        150 * THREADS,
    )
    assert connection.total_changes == 150 * THREADS
    connection.close()


def test_many_threads_use_one_cursor() -> None:
    """A thread may get the row of another, never half a row, and never an error."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    cursor = connection.cursor()
    rows = 0

    def work(thread: int) -> None:
        nonlocal rows
        for n in range(400):
            cursor.execute("SELECT ?1, -?1, 'text ' || ?1 UNION ALL SELECT 0, 0, 'text 0'", (n,))
            for row in (cursor.fetchone(), *cursor.fetchmany(5)):
                if row is not None:
                    rows += 1
                    number, negated, text = row
                    assert negated == -number
                    assert text == f"text {number}"

    together(*(lambda thread=thread: work(thread) for thread in range(THREADS)))
    assert rows > 0
    connection.close()


def test_one_cursor_is_waited_for_while_an_adapter_runs() -> None:
    """The connection is unlocked meanwhile, and the cursor is the other thread's."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    cursor = connection.cursor()

    class Slow:
        """Adapted with the GIL let go in between."""

        def __conform__(self, protocol: object) -> int:
            """Let others come."""
            time.sleep(0.001)
            return 1

    def work() -> None:
        for _ in range(50):
            cursor.execute("SELECT ?", (Slow(),))

    together(*([work] * THREADS))
    connection.close()


def test_a_cursor_is_not_waited_for_by_its_own_execution() -> None:
    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor()

    class Recursive:
        """Adapted by the cursor that it is bound for."""

        def __conform__(self, protocol: object) -> int:
            """Use it."""
            cursor.execute("SELECT 1")
            return 1

    with pytest.raises(sqlite3.ProgrammingError, match="Recursive use of cursors"):
        cursor.execute("SELECT ?", (Recursive(),))
    connection.close()


def test_threads_share_out_the_rows_of_one_cursor() -> None:
    """Each row goes to exactly one of the threads that fetch."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    cursor = connection.execute(
        "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c LIMIT 4000) SELECT n FROM c"
    )
    taken: list[list[int]] = [[] for _ in range(THREADS)]

    def work(mine: list[int]) -> None:
        while batch := cursor.fetchmany(7):
            mine.extend(n for (n,) in batch)

    together(*(lambda mine=mine: work(mine) for mine in taken))
    assert all(mine == sorted(mine) for mine in taken)
    assert sorted(n for mine in taken for n in mine) == list(range(4000))
    connection.close()


def test_threads_that_look_at_a_cursor_disturb_nobody() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    cursor = connection.cursor()
    done = threading.Event()

    def work() -> None:
        try:
            for _ in range(1000):
                cursor.execute("SELECT 1 AS n UNION SELECT 2")
                cursor.fetchall()
        finally:
            done.set()

    def look() -> None:
        while not done.is_set():
            assert cursor.rowcount == -1
            assert cursor.description is None or cursor.description[0][0] == "n"
            assert cursor.lastrowid in {None, 0}
            assert cursor.row_factory is None

    together(work, work, *([look] * 6))
    connection.close()


def test_executemany_of_threads_on_one_connection() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE t(thread, n)")

    def work(thread: int) -> None:
        for start in range(0, 500, 50):
            cursor = connection.executemany(
                "INSERT INTO t VALUES (?, ?)", ((thread, start + n) for n in range(50))
            )
            assert cursor.rowcount == 50

    together(*(lambda thread=thread: work(thread) for thread in range(THREADS)))
    connection.commit()
    assert connection.execute(
        "SELECT thread, count(DISTINCT n) FROM t GROUP BY thread"
    ).fetchall() == [(thread, 500) for thread in range(THREADS)]
    connection.close()


_CLOSING_UNDER_THREADS = """
import sys, threading
from oxlite import sqlite3

for _ in range(60):
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
    barrier = threading.Barrier(6)
    unexpected = []

    def use():
        barrier.wait(30)
        try:
            while True:
                cursor = connection.execute("SELECT a FROM t")
                cursor.fetchone()
                connection.execute("INSERT INTO t VALUES (4)")
                connection.rollback()
                cursor.description, cursor.rowcount
        except sqlite3.ProgrammingError as error:
            if "closed database" not in str(error):
                unexpected.append(error)
        except BaseException as error:
            unexpected.append(error)

    def close():
        barrier.wait(30)
        connection.close()

    threads = [threading.Thread(target=use) for _ in range(5)] + [threading.Thread(target=close)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if unexpected:
        sys.exit(repr(unexpected))
"""


def test_a_connection_may_be_closed_under_threads_that_use_it(child: Callable[..., str]) -> None:
    child(_CLOSING_UNDER_THREADS, seconds=40)


_DROPPING_IN_THREADS = """
import gc, queue, threading
from oxlite import sqlite3

connection = sqlite3.connect(":memory:", check_same_thread=False)
connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
cursors = queue.SimpleQueue()

def drop():
    while (cursor := cursors.get()) is not None:
        del cursor

droppers = [threading.Thread(target=drop) for _ in range(4)]
for dropper in droppers:
    dropper.start()
for n in range(4000):
    cursors.put(connection.execute("SELECT a FROM t WHERE a > ?", (n % 3,)))
    connection.execute("SELECT max(a) FROM t").fetchone()
for dropper in droppers:
    cursors.put(None)
for dropper in droppers:
    dropper.join()
connection.execute("DROP TABLE t")  # fails while any statement is still in mid-step
connection.close()
"""


def test_cursors_may_be_dropped_in_other_threads(child: Callable[..., str]) -> None:
    child(_DROPPING_IN_THREADS, seconds=40)


_DROPPING_THE_CONNECTION_IN_A_THREAD = """
import sys, threading
from oxlite import sqlite3

for _ in range(200):
    holder = [sqlite3.connect(sys.argv[1])]
    holder[0].execute("CREATE TABLE IF NOT EXISTS t(a)")
    holder.append(holder[0].execute("INSERT INTO t VALUES (1), (2) RETURNING a"))
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
check = sqlite3.connect(sys.argv[1], timeout=0)
check.execute("BEGIN EXCLUSIVE")
assert check.execute("SELECT count(*) FROM t").fetchone() == (0,)
"""


def test_a_connection_may_be_dropped_in_another_thread(
    child: Callable[..., str], path: Path
) -> None:
    """Whoever drops it, its transaction is rolled back and its locks are gone."""
    child(_DROPPING_THE_CONNECTION_IN_A_THREAD, path, seconds=40)
