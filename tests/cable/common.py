"""What the tests of the cable share: waiting for the next message, and looking into the file."""

import asyncio
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.wait import LIMIT_SECONDS

from oxlite.cable import Cable


async def received(cable: Cable, channel: str) -> dict[str, Any]:
    """The next message, which is there or comes soon."""
    async with asyncio.timeout(LIMIT_SECONDS):
        return await cable.receive(channel)


async def is_nothing_there(cable: Cable, channel: str) -> bool:
    """Whether nothing is there; what is there has been committed before."""
    try:
        async with asyncio.timeout(0.2):
            await cable.receive(channel)
    except TimeoutError:
        return True
    return False


def rows(path: Path, sql: str) -> list[Any]:
    """What another program finds in the file."""
    with closing(sqlite3.connect(path)) as other:
        return other.execute(sql).fetchall()


def do(path: Path, *statements: str) -> None:
    """What another program does to the file."""
    with closing(sqlite3.connect(path, timeout=LIMIT_SECONDS)) as other, other:
        for statement in statements:
            other.execute(statement)


def wait_until_count(path: Path, table: str, count: int) -> None:
    """Wait until a table has so many rows."""
    ends = time.monotonic() + LIMIT_SECONDS
    while (found := rows(path, f"SELECT count(*) FROM {table}")) != [(count,)]:
        assert time.monotonic() < ends, f"{found} rows in {table}"
        time.sleep(0.01)


def stop(member: "subprocess.Popen[str]", path: Path) -> None:
    """Stop a process that has read all, and does not hold the write lock."""
    wait_until_count(path, "oxlite_cable_message", 0)
    time.sleep(0.1)
    member.send_signal(signal.SIGSTOP)
