"""What the tests of the asyncio face share: each runs on every kind of event loop.

A test is a coroutine function handed to ``run``. Whatever ends an interpreter, forks or is
signalled runs in a child process, which must end by itself and have nothing to say on its standard
error but what it is told to.
"""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import LOOPS, Child, Run


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run[Any]:
    """Runs a coroutine function on a loop of each kind."""
    module = {"uvloop": "uvloop", "anyio": "anyio"}.get(request.param)
    if module is not None:
        pytest.importorskip(module)
    return LOOPS[request.param]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test may make a database file; none is there yet."""
    return tmp_path / "app.db"


_PRELUDE = """
import asyncio, faulthandler, gc, os, signal, sys, threading, time
faulthandler.register(signal.SIGALRM, chain=True)  # its own timer is not made for forks
signal.alarm(60)
import oxlite.aio
from oxlite import sqlite3
from oxlite.aio import Database, connect

path = sys.argv[1]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)
"""


@pytest.fixture(params=["asyncio", "uvloop"])
def child(request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> Child:
    """Runs a script in a child process, on each kind of loop; returns what it prints."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    uses_uvloop = """
import uvloop
from asyncio import events
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
"""

    def run_child(script: str, *, status: int = 0, says: str | None = None) -> str:
        file = tmp_path / "script.py"
        prelude = _PRELUDE + (uses_uvloop if request.param == "uvloop" else "")
        file.write_text(prelude + textwrap.dedent(script))
        command = [sys.executable, "-W", "ignore::DeprecationWarning", str(file), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == status, done.stderr
        if says is None:
            assert done.stderr == ""
        else:
            assert says in done.stderr
            for noise in ("never retrieved", "was destroyed", "never awaited", "Exception ignored"):
                assert noise not in done.stderr, done.stderr
        return done.stdout

    return run_child
