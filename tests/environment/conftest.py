"""Databases in the states a report may meet, and connections of every driver."""

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Connection = Any  # of any driver


def _stdlib(path: Path) -> Connection:
    return sqlite3.connect(path, isolation_level=None)


def _apsw(path: Path) -> Connection:
    return pytest.importorskip("apsw").Connection(os.fspath(path))


def _oxlite(path: Path) -> Connection:
    from oxlite import sqlite3 as oxlite_sqlite3

    return oxlite_sqlite3.connect(path, isolation_level=None)


@pytest.fixture(params=[_stdlib, _apsw, _oxlite], ids=["stdlib", "apsw", "oxlite"])
def open_connection(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Connection]]:
    """Opens with each driver in turn, in its autocommit mode; closes at the end."""
    opened = []

    def opener(path: Path) -> Connection:
        opened.append(request.param(path))
        return opened[-1]

    yield opener
    for connection in opened:
        connection.close()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A small database in rollback mode with nothing beside it."""
    path = tmp_path / "app.db"
    make(path, "CREATE TABLE t(x); INSERT INTO t VALUES (1);")
    return path


@pytest.fixture
def wal_database(tmp_path: Path) -> Path:
    """A database in WAL mode, closed cleanly: nothing is beside it."""
    path = tmp_path / "wal.db"
    make(path, "PRAGMA journal_mode=WAL; CREATE TABLE t(x);")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["wal.db"]
    return path


@pytest.fixture
def crashed_wal_database(wal_database: Path) -> Path:
    """A WAL database whose last writer died: a log with a commit is beside it."""
    crash_after(wal_database, "INSERT INTO t VALUES (2)")
    assert wal_database.with_name("wal.db-wal").stat().st_size > 0
    return wal_database


@pytest.fixture
def hot_journal_database(database: Path) -> Path:
    """A rollback-mode database whose last writer died with part of its pages written."""
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 2000)"
    crash_after(
        database,
        "PRAGMA cache_size=1; BEGIN IMMEDIATE; UPDATE t SET x = 2;"
        f" INSERT INTO t {rows} SELECT randomblob(500) FROM n",
    )
    assert database.with_name("app.db-journal").stat().st_size > 0
    return database


@pytest.fixture
def fingerprint() -> Callable[[Path], dict[str, tuple[int, str]]]:
    """The files of a database's directory with their times of change and contents."""

    def taken(database: Path) -> dict[str, tuple[int, str]]:
        return {
            # The shared memory is only an index of the log, and its locks are written by readers.
            file.name: (0, "") if file.name.endswith("-shm") else _state(file)
            for file in database.parent.iterdir()
        }

    return taken


def _state(file: Path) -> tuple[int, str]:
    return file.stat().st_mtime_ns, hashlib.sha256(file.read_bytes()).hexdigest()


def make(path: Path, script: str) -> None:
    """Run a script on a database and close it."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def crash_after(path: Path, script: str) -> None:
    """Run a script in a process that then ends without closing anything."""
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        " c.executescript(sys.argv[2]) if ';' in sys.argv[2] else c.execute(sys.argv[2]);"
        " os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, os.fspath(path), script], check=True)
