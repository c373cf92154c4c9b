"""A call has one timeout, whatever it waits for: the writer or a reader, and then a lock.

The writer comes back late in the call's time, and another process lets the file's lock go only when
that time is over, though within a second one: who counted anew for the lock would succeed. So what
is asserted is the outcome, not how long it took.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import oxlite
import oxlite.aio
from oxlite import sqlite3

TIMEOUT = 2.0
BACK_AFTER = 1.6
"""When the writer comes back."""
FREE_AFTER = 3.4
"""When the lock of the file is free: within BACK_AFTER + TIMEOUT."""

HOLD = """
import sys, sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute(sys.argv[2])
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
print("free", flush=True)
sys.stdin.readline()
"""


class Holder:
    """Another program that has a lock of the file."""

    def __init__(self, path: Path, sql: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path), sql],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.expect("held")

    def expect(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"

    def say(self) -> None:
        """Have it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with an empty table ``t(a)``."""
    path = tmp_path / "app.db"
    connection = oxlite.connect(path)
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    return path


@pytest.fixture
def holding(path: Path) -> Iterator[Callable[[str], Holder]]:
    """Has another program take a lock with a statement."""
    holders: list[Holder] = []

    def hold(sql: str) -> Holder:
        holders.append(Holder(path, sql))
        return holders[-1]

    yield hold
    for holder in holders:
        holder.end()


def write_block(database: oxlite.Database) -> None:
    with database.write() as connection:
        connection.execute("INSERT INTO t VALUES (1)")


def execute_together(database: oxlite.Database) -> None:
    database.execute("INSERT INTO t VALUES (1)")


def execute_alone(database: oxlite.Database) -> None:
    database.execute("CREATE TABLE u(a)")


def executemany_alone(database: oxlite.Database) -> None:
    database.executemany("INSERT INTO t VALUES (?)", iter([(1,)]))


def keeping_the_writer_alone() -> AbstractContextManager[object]:
    """Around a block that rolls back at once: it keeps the writer, and no lock."""
    return pytest.raises(sqlite3.ProgrammingError, match="ended inside")


@pytest.mark.parametrize("write", [write_block, execute_together, execute_alone, executemany_alone])
def test_a_thread_waits_for_the_writer_and_the_lock_together(
    path: Path, holding: Callable[[str], Holder], write: Callable[[oxlite.Database], None]
) -> None:
    with oxlite.Database(path, timeout=TIMEOUT) as database:
        is_lent, comes_back = threading.Event(), threading.Event()

        def keep() -> None:
            with keeping_the_writer_alone(), database.write() as connection:
                connection.rollback()
                is_lent.set()
                comes_back.wait(60)

        keeper = threading.Thread(target=keep)
        keeper.start()
        assert is_lent.wait(60)
        outsider = holding("BEGIN IMMEDIATE")
        threading.Timer(BACK_AFTER, comes_back.set).start()
        threading.Timer(FREE_AFTER, outsider.say).start()
        with pytest.raises(oxlite.LockedError):
            write(database)
        keeper.join()
        outsider.expect("free")
        # The next call has its own time, in full, though it has to wait as well.
        outsider = holding("BEGIN IMMEDIATE")
        threading.Timer(TIMEOUT / 4, outsider.say).start()
        write(database)


def test_a_call_that_had_the_writer_alone_leaves_no_hurry(
    path: Path, holding: Callable[[str], Holder]
) -> None:
    """When what was left of its time is over, the next write has its own in full."""
    with oxlite.Database(path, timeout=TIMEOUT) as database:
        execute_alone(database)
        time.sleep(1.1 * TIMEOUT)
        outsider = holding("BEGIN IMMEDIATE")
        threading.Timer(TIMEOUT / 10, outsider.say).start()
        execute_together(database)


def test_a_task_waits_for_the_writer_and_the_lock_together(
    path: Path, holding: Callable[[str], Holder]
) -> None:
    async def aio_write_block(database: oxlite.aio.Database) -> None:
        async with database.write() as connection:
            await connection.execute("INSERT INTO t VALUES (1)")

    async def aio_execute(database: oxlite.aio.Database) -> None:
        await database.execute("INSERT INTO t VALUES (1)")

    async def aio_execute_alone(database: oxlite.aio.Database) -> None:
        await database.execute("CREATE TABLE IF NOT EXISTS u(a)")

    async def aio_executemany(database: oxlite.aio.Database) -> None:
        await database.executemany("INSERT INTO t VALUES (?)", iter([(1,)]))

    calls = [aio_write_block, aio_execute, aio_execute_alone, aio_executemany]

    async def run() -> None:
        loop = asyncio.get_running_loop()
        async with oxlite.aio.Database(path, timeout=TIMEOUT) as database:
            is_lent, comes_back = asyncio.Event(), asyncio.Event()

            async def keep() -> None:
                with keeping_the_writer_alone():
                    async with database.write() as connection:
                        await connection.rollback()
                        is_lent.set()
                        await comes_back.wait()

            keeper = asyncio.create_task(keep())
            await is_lent.wait()
            outsider = holding("BEGIN IMMEDIATE")
            loop.call_later(BACK_AFTER, comes_back.set)
            threading.Timer(FREE_AFTER, outsider.say).start()
            outcomes = await asyncio.gather(
                *(call(database) for call in calls), return_exceptions=True
            )
            assert [type(outcome) for outcome in outcomes] == [oxlite.LockedError] * len(calls)
            await keeper
            await asyncio.to_thread(outsider.expect, "free")
            for call in calls:
                outsider = holding("BEGIN IMMEDIATE")
                threading.Timer(TIMEOUT / 4, outsider.say).start()
                await call(database)

    asyncio.run(run())


def test_a_loan_that_nobody_came_for_leaves_no_hurry(
    path: Path, holding: Callable[[str], Holder]
) -> None:
    """Lent while the loop was busy, and cancelled: the next write has its time in full."""

    async def run() -> None:
        async with oxlite.aio.Database(path, timeout=TIMEOUT / 4) as database:
            for _ in range(5):
                wish = asyncio.create_task(database.write().__aenter__())
                await asyncio.sleep(0)
                time.sleep(0.05)  # the writer is lent meanwhile
                wish.cancel()
                await asyncio.gather(wish, return_exceptions=True)
            await asyncio.sleep(TIMEOUT / 2)  # what was left of their time is over
            outsider = holding("BEGIN IMMEDIATE")
            threading.Timer(TIMEOUT / 16, outsider.say).start()
            await database.execute("INSERT INTO t VALUES (1)")

    asyncio.run(run())


def read_query(database: oxlite.Database) -> None:
    database.query("SELECT * FROM t")


def read_one(database: oxlite.Database) -> None:
    database.query_one("SELECT * FROM t")


@pytest.mark.parametrize("read", [read_query, read_one])
def test_a_thread_waits_for_a_reader_and_the_lock_together(
    path: Path, holding: Callable[[str], Holder], read: Callable[[oxlite.Database], None]
) -> None:
    """In a rollback journal a reader waits for whoever has the file for himself."""
    journal = {"pragmas": {"journal_mode": "DELETE"}}
    with oxlite.Database(path, readers=1, timeout=TIMEOUT, **journal) as database:
        is_lent, comes_back = threading.Event(), threading.Event()

        def keep() -> None:
            with database.read():
                is_lent.set()
                comes_back.wait(60)

        keeper = threading.Thread(target=keep)
        keeper.start()
        assert is_lent.wait(60)
        outsider = holding("BEGIN EXCLUSIVE")
        threading.Timer(BACK_AFTER, comes_back.set).start()
        threading.Timer(FREE_AFTER, outsider.say).start()
        with pytest.raises(oxlite.LockedError):
            read(database)
        keeper.join()
        outsider.expect("free")
        outsider = holding("BEGIN EXCLUSIVE")
        threading.Timer(TIMEOUT / 4, outsider.say).start()
        read(database)
