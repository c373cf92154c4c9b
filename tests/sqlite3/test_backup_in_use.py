"""The two connections of a backup, used by others between its steps.

SQLite lets the source be used. Of the target it says that nothing checks whether it is, and that
the backup may malfunction (https://sqlite.org/c3ref/backup_finish.html); the standard library
crashes.
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

class Enough(Exception):
    pass

def progress(*_):
    steps.append(None)
    try:
        exec(sys.argv[1])
    except sqlite3.Error as error:
        print(type(error).__name__)
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
    ],
)
def test_the_source(child: Callable[..., str], use: str) -> None:
    child(_USES, use)


@pytest.mark.xfail(strict=True, reason="crashes, as the standard library does")
@pytest.mark.parametrize(
    "use",
    [
        "target.execute('SELECT * FROM t').fetchall()",
        "target.execute('INSERT INTO t VALUES (1)')",
        "target.execute('CREATE TABLE u(a)')",
        "target.execute('VACUUM')",
        "target.blobopen('t', 'a', 1)",
        "target.serialize()",
    ],
)
def test_the_target(child: Callable[..., str], use: str) -> None:
    child(_USES, use)


@pytest.mark.parametrize(
    "use",
    [
        "target.close()",
        "target.rollback()",
        "target.deserialize(other.serialize())",
        "other.backup(target)",
        "target.interrupt()",
        "target.in_transaction",
    ],
)
def test_the_target_gently(child: Callable[..., str], use: str) -> None:
    child(_USES, use)
