"""Databases that are looked after, and who writes to them meanwhile."""

import sqlite3 as stdlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import oxlite

__all__ = ["filled", "numbers", "python", "writing"]

WRITER = """
import sys, oxlite
with oxlite.Database(sys.argv[1]) as db:
    number = db.query_one("SELECT max(x) FROM t")[0]
    while True:
        number += 1
        db.execute("INSERT INTO t VALUES (?, zeroblob(200))", (number,))
        print(number, flush=True)
"""


def filled(path: Path, rows: int = 1000) -> Path:
    """A database with a table of numbers."""
    with closing(oxlite.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x INTEGER PRIMARY KEY, filling BLOB)")
        connection.executemany(
            "INSERT INTO t VALUES (?, zeroblob(200))", ((x,) for x in range(1, rows + 1))
        )
        connection.commit()
    return path


def numbers(path: Path) -> list[int]:
    """The numbers in it, as another SQLite reads them."""
    with closing(stdlib.connect(path)) as connection:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


@contextmanager
def writing(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that never pauses: what it prints is committed."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def python(script: str, *arguments: object, expected: int | None = 0) -> str:
    """Run a script in another process; what it prints, or its errors if it is to fail."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if expected is not None:
        assert done.returncode == expected, done.stderr
    return done.stdout if done.returncode == 0 else done.stderr
