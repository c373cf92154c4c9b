"""What the tests of the drop-in driver share: connections, other threads, child processes.

Whatever may hang or abort the interpreter runs in a child process, which has a time limit and
prints every thread's stack when it is reached. A thread that hangs in native code could not be
stopped from Python.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite import sqlite3

NOBODY = 65534

_WITH_TIME_LIMIT = """
import faulthandler
faulthandler.dump_traceback_later({seconds}, exit=True)
"""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """A connection to a database in memory."""
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test may make a database file; none is there yet."""
    return tmp_path / "test.db"


@pytest.fixture
def existing(path: Path) -> Path:
    """A file with the table ``t(a)`` of one row, in a rollback journal mode."""
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    connection.close()
    return path


@pytest.fixture
def opened() -> Iterator[Callable[..., sqlite3.Connection]]:
    """``oxlite.connect``, closing what it opened after the test."""
    connections: list[sqlite3.Connection] = []

    def connect(*arguments: object, **options: object) -> sqlite3.Connection:
        connections.append(oxlite.connect(*arguments, **options))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()


@pytest.fixture
def in_thread() -> Iterator[Callable[..., Any]]:
    """Calls a function in another thread; returns or raises what it did there."""
    with ThreadPoolExecutor(1) as pool:

        def call(function: Callable[..., Any], *arguments: object) -> object:
            return pool.submit(function, *arguments).result(timeout=60)

        yield call


@pytest.fixture
def child() -> Callable[..., str]:
    """Runs a program in an interpreter of its own and returns what it printed.

    A status other than 0 fails the test with what the program wrote to its error output.
    """

    def run(source: str, *arguments: object, seconds: int = 15) -> str:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                _WITH_TIME_LIMIT.format(seconds=seconds) + source,
                *map(str, arguments),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            timeout=seconds + 30,
        )
        if done.returncode != 0:
            pytest.fail(f"the child ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    return run


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user of the machine can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


@pytest.fixture
def as_nobody(child: Callable[..., str]) -> Callable[..., str]:
    """Like ``child``, in a process that has given up root's rights, if it had them.

    The modules are imported first: an unprivileged user may not be allowed to read this Python.
    """

    def run(source: str, *arguments: object) -> str:
        drop = f"""
import logging, os, sys, traceback
from oxlite import sqlite3
import oxlite
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
"""
        return child(drop + source, *arguments)

    return run
