"""Connections that share one page cache, which SQLite guards by a mutex of its own.

SQLite discourages it; what the standard library does with it must not be a deadlock here. The
programs run in processes of their own.
"""

from collections.abc import Callable

import pytest

_TOGETHER = """
import sys, threading, time
from oxlite import sqlite3

name = "file:shared?mode=memory&cache=shared"

def connect():
    return sqlite3.connect(name, uri=True, check_same_thread=False, timeout=0)

maker = connect()
maker.execute("CREATE TABLE t(a)")
maker.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(2000)])
maker.commit()
until = time.monotonic() + 1.5
failures = []
done = [0]

def worker(work):
    def run():
        connection = connect()
        connection.create_function("f", 1, lambda a: sum(range(10)))
        connection.execute("PRAGMA read_uncommitted = 1")
        while time.monotonic() < until:
            try:
                work(connection)
                done[0] += 1
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    failures.append(error)
        connection.close()
    return threading.Thread(target=run)

WORKS = {
    "read": lambda c: c.execute("SELECT a FROM t").fetchall(),
    "iterate": lambda c: [row for row in c.execute("SELECT a FROM t")],
    "call": lambda c: c.execute("SELECT f(a) FROM t WHERE f(a) >= 0").fetchall(),
    "write": lambda c: (c.execute("INSERT INTO t VALUES (1)"), c.rollback()),
}
threads = [worker(WORKS[name]) for name in sys.argv[1:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
assert done[0]
maker.close()
"""


@pytest.mark.parametrize(
    "works",
    [
        ["read", "read"],
        ["read", "write"],
        ["read", "call"],
        ["iterate", "call"],
        ["call", "write", "read"],
    ],
    ids="+".join,
)
def test_threads_with_connections_of_their_own(child: Callable[..., str], works: list[str]) -> None:
    child(_TOGETHER, *works, seconds=10)
