"""A signal handler that raises, at any moment of a call: no reader is lost, nor the writer.

Ctrl-C in a console, a time limit by SIGALRM: the exception comes between any two steps of Python,
also while a connection is given back. Each script runs in a process of its own, with readers=1, so
that one that is lost is missed at once.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import oxlite

STORM = """
import random, signal, sys, traceback
import oxlite

class Late(Exception):
    pass

def raise_late(number, frame):
    raise Late

database = oxlite.Database(sys.argv[1], readers=1, timeout=20)

def query():
    database.query("SELECT a FROM t")

def query_one():
    database.query_one("SELECT a FROM t")

def read():
    with database.read() as connection:
        connection.execute("SELECT a FROM t").fetchall()

def write():
    with database.write() as connection:
        connection.execute("INSERT INTO t VALUES (1)")

def execute():
    database.execute("INSERT INTO t VALUES (1)")

def execute_alone():
    database.executemany("INSERT INTO t VALUES (?)", iter([(1,)]))

call = globals()[sys.argv[2]]
chance = random.Random(int(sys.argv[3]))
signal.signal(signal.SIGALRM, raise_late)
came = 0
for _ in range(400):
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00002, 0.0006))
        while True:
            call()
    except Late:
        came += 1
    # Whatever it met, everything is there at once.
    for _ in range(2):
        query()
        execute()
statistics = database.stats()
assert statistics.readers_lent == 0, statistics
with database.read(), database.write():
    pass
database.close()
print(came)
"""


@pytest.mark.parametrize(
    "call", ["query", "query_one", "read", "write", "execute", "execute_alone"]
)
def test_no_connection_is_lost(tmp_path: Path, call: str) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as database:
        database.execute("CREATE TABLE t(a)")
    done = subprocess.run(
        [sys.executable, "-c", STORM, str(path), call, "7"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout) == (0, "400\n"), done.stderr
