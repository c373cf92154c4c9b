"""The two connections of a backup, used by others between its steps.

SQLite lets the source be used. Of the target it says that nothing checks whether it is, and that
the backup may malfunction (https://sqlite.org/c3ref/backup_finish.html); the standard library
crashes. Here it is the backup's alone until that is finished.
"""

from collections.abc import Callable

import pytest

_USES = """
import sys
from oxlite import sqlite3

source, target, other = (sqlite3.connect(":memory:", isolation_level=None) for _ in range(3))
for connection in (source, target, other):
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (zeroblob(900))", [()] * 50)
steps = []
prepared = {}
exec(sys.argv[2], globals(), prepared)

class Enough(Exception):
    pass

def progress(*_):
    steps.append(None)
    try:
        exec(sys.argv[1], {**globals(), **prepared})
    except sqlite3.Error as error:
        print(type(error).__name__, error)
    prepared.clear()
    if len(steps) > 30:
        raise Enough

try:
    source.backup(target, pages=3, progress=progress, sleep=0)
    assert target.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
except Enough:
    pass
for connection in (source, target, other):
    connection.execute("SELECT 'goes on'").fetchall()
    connection.close()
"""


@pytest.mark.parametrize(
    "use",
    [
        "source.execute('SELECT count(*) FROM t').fetchall()",
        "source.execute('INSERT INTO t VALUES (1)')",
        "source.execute('CREATE TABLE IF NOT EXISTS u(a)')",
        "source.execute('VACUUM')",
        "source.serialize()",
        "source.backup(other)",
        "source.deserialize(other.serialize())",
        "source.close()",
        "other.backup(source)",
    ],
)
def test_the_source(child: Callable[..., str], use: str) -> None:
    child(_USES, use, "")


@pytest.mark.parametrize(
    "use",
    [
        "target.execute('SELECT * FROM t').fetchall()",
        "target.execute('INSERT INTO t VALUES (1)')",
        "target.execute('CREATE TABLE u(a)')",
        "target.execute('VACUUM')",
        "target.blobopen('t', 'a', 1)",
        "target.serialize()",
        "target.close()",
        "target.rollback()",
        "target.deserialize(other.serialize())",
        "target.backup(other)",
        "other.backup(target)",
    ],
)
def test_the_target(child: Callable[..., str], use: str) -> None:
    printed = child(_USES, use, "")
    refused = "OperationalError This connection is the target of a backup, and cannot be used"
    assert printed.startswith(refused)


@pytest.mark.parametrize(
    "use", ["target.interrupt()", "target.__init__(':memory:')", "target.in_transaction"]
)
def test_the_target_gently(child: Callable[..., str], use: str) -> None:
    assert child(_USES, use, "") == ""


@pytest.mark.parametrize(
    "prepared",
    [
        "held = target.execute('SELECT 1 UNION SELECT 2')",
        "target.execute('CREATE TEMP TABLE u(a)')\n"
        "held = target.execute('INSERT INTO u VALUES (1), (2) RETURNING a')",
        "target.execute('CREATE TEMP TABLE u AS SELECT zeroblob(9) AS a')\n"
        "held = target.blobopen('u', 'a', 1, name='temp')",
        "held = target('SELECT 1')",
        "held = target.create_session(); held.attach()",
    ],
)
def test_what_is_of_the_target_and_goes(child: Callable[..., str], prepared: str) -> None:
    """It is let go by the first progress, and really goes when the backup is finished."""
    assert child(_USES, "pass", prepared) == ""


def test_the_target_is_not_in_the_middle_of_a_call(child: Callable[..., str]) -> None:
    source = """
from oxlite import sqlite3
source, target = (sqlite3.connect(":memory:") for _ in range(2))
source.execute("CREATE TABLE t(a)")
target.execute("CREATE TEMP TABLE own AS SELECT 1 AS a UNION SELECT 2")
refused = []

def copy(a):
    try:
        source.backup(target)
    except sqlite3.Error as error:
        refused.append(str(error))
    return a

target.create_function("copy", 1, copy)
assert target.execute("SELECT copy(a) FROM own").fetchall() == [(1,), (2,)]
assert len(refused) == 2 and "from inside a callback" in refused[0], refused
"""
    child(source)


def test_a_thread_that_uses_the_target_is_refused_only_meanwhile(child: Callable[..., str]) -> None:
    source = """
import threading
from oxlite import sqlite3
source, target = (sqlite3.connect(":memory:", check_same_thread=False) for _ in range(2))
source.execute("CREATE TABLE t(a)")
source.executemany("INSERT INTO t VALUES (zeroblob(900))", [()] * 500)
source.commit()
begun, over = threading.Event(), threading.Event()
outcomes = {"used": 0, "refused": 0}

def use():
    while not over.is_set():
        try:
            target.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            outcomes["used"] += 1
        except sqlite3.OperationalError as error:
            if "target of a backup" in str(error):
                outcomes["refused"] += 1
                begun.set()

thread = threading.Thread(target=use)
thread.start()
while not begun.is_set():
    try:
        source.backup(target, pages=1, progress=lambda *_: begun.wait(10), sleep=0)
    except sqlite3.OperationalError as error:
        assert "in use" in str(error), error
over.set()
thread.join()
assert outcomes["refused"], outcomes
assert target.execute("SELECT count(*) FROM t").fetchall() == [(500,)]
"""
    child(source)
