"""Nothing is kept: descriptors, threads and memory are as they were, after however many loops."""

import asyncio
import contextlib
import gc
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import Run
from tests.wait import loop_until

from oxlite import aio
from oxlite.aio import Database

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

CYCLES = 200


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def workers() -> int:
    names = []
    for task in Path("/proc/self/task").iterdir():
        # A thread may end while it is looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names.append((task / "comm").read_text())
    return sum(name.startswith("oxlite-worker") for name in names)


def resident_kilobytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


@pytest.fixture
def grows() -> Callable[[], None]:
    """Fails if there is more than at the beginning, but for the few that are kept a while."""
    gc.collect()
    before = descriptors()

    def grows() -> None:
        gc.collect()
        assert descriptors() <= before + 6
        # They are used again, and end by themselves after a while.
        assert workers() <= 30

    return grows


def test_loops_come_and_go(run: Run[Any], path: Path, grows: Callable[[], None]) -> None:
    async def use() -> None:
        async with Database(path, readers=2, timeout=30) as db:
            await db.execute("CREATE TABLE IF NOT EXISTS t (x)")
            await db.execute("INSERT INTO t VALUES (1)")
            await db.query("SELECT * FROM t LIMIT 1")
        async with aio.connect(path) as connection:
            await connection.execute_fetchall("SELECT 1")

    for _ in range(CYCLES):
        run(use)
    grows()


def test_a_database_outlives_many_loops(
    run: Run[Any], path: Path, grows: Callable[[], None]
) -> None:
    db = Database(path, readers=2, timeout=30)

    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def use() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await db.execute("CREATE TABLE IF NOT EXISTS t (x)")
        async with db.read() as connection:
            await connection.execute("SELECT 1")
        await db.query("SELECT 1")

    for _ in range(CYCLES):
        run(use)
    gc.collect()
    assert sum(loop() is not None for loop in loops) <= 2
    # The thread that has answered puts its reader back after the answer.
    run(lambda: loop_until(lambda: not db.stats().readers_lent))
    run(db.close)
    grows()


def test_repeated_queries_need_no_more_memory(run: Run[Any], path: Path) -> None:
    async def main() -> None:
        async with Database(path, readers=2, timeout=30) as db:
            await db.execute("CREATE TABLE t (x)")
            await db.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,)] * 200)

            async def use() -> None:
                for _ in range(300):
                    await db.query("SELECT x FROM t")
                    await db.execute("UPDATE t SET x = x WHERE rowid = 1")
                    async with db.write() as connection:
                        await connection.execute_fetchall("SELECT x FROM t")
                    async for _ in db.stream("SELECT x FROM t"):
                        break

            await use()
            gc.collect()
            before = resident_kilobytes()
            await use()
            await use()
            gc.collect()
            # Each query holds 200 kB: a thousandth of what was asked for would be seen.
            assert resident_kilobytes() - before < 20_000

    run(main)
