"""Thousands of tasks that wait: none of them costs the loop more for the others that wait.

Nothing is timed. What is counted is the work of the loop's thread, in calls of functions, and how
many tasks go on in one turn of the loop.
"""

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.aio.loops import Run
from tests.wait import LIMIT_SECONDS, loop_until

from oxlite import LockedError, PoolTimeout
from oxlite.aio import Database, DatabaseError, ProgrammingError

T = TypeVar("T")

Wait = Callable[[Database], Coroutine[Any, Any, Any]]
End = Callable[[Database, list["asyncio.Task[Any]"]], Coroutine[Any, Any, None]]


async def write(db: Database) -> None:
    """Waits for the writer."""
    async with db.write():
        pass


async def read(db: Database) -> None:
    """Waits for a reader."""
    async with db.read():
        pass


async def execute(db: Database) -> None:
    """Waits for the writer, with a request."""
    await db.execute("INSERT INTO t VALUES (1)")


async def query(db: Database) -> None:
    """Waits for a reader, with a request."""
    await db.query("SELECT 1")


WAITS: list[Wait] = [write, read, execute, query]

FEW, MANY = 500, 2000


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """What comes of an attempt, made again when its time is up: a machine may be under load."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            try:
                return await attempt()
            except (LockedError, PoolTimeout):
                await asyncio.sleep(0.01)


@asynccontextmanager
async def in_use(path: Path, timeout: float) -> AsyncIterator[Database]:
    """A database all of whose connections are lent."""
    async with Database(path, readers=2, timeout=timeout) as db:
        await patiently(lambda: db.execute("CREATE TABLE IF NOT EXISTS t (x)"))
        async with AsyncExitStack() as stack:
            await patiently(lambda: stack.enter_async_context(db.write()))
            for _ in range(2):
                await patiently(lambda: stack.enter_async_context(db.read()))
            yield db


def waiting(db: Database) -> int:
    """How many wait."""
    statistics = db.stats()
    return statistics.readers_waiting + statistics.writer_waiting


def have_come(db: Database, tasks: list["asyncio.Task[Any]"]) -> bool:
    """Whether all wait, or have waited: the first may be gone before the last has come."""
    return waiting(db) + sum(task.done() for task in tasks) == len(tasks)


async def give_up_in_time(db: Database, tasks: list["asyncio.Task[Any]"]) -> None:
    """The time of all is up."""
    await asyncio.wait(tasks)


async def cancel(db: Database, tasks: list["asyncio.Task[Any]"]) -> None:
    """All are cancelled."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def close(db: Database, tasks: list["asyncio.Task[Any]"]) -> None:
    """The database is closed."""
    closing = asyncio.ensure_future(db.close(60))
    await asyncio.wait(tasks)
    closing.cancel()


ENDS: list[End] = [give_up_in_time, cancel, close]


async def outcome(wait: Wait, db: Database) -> type[BaseException] | None:
    """What a wait comes to."""
    try:
        await wait(db)
    except (LockedError, PoolTimeout, ProgrammingError) as error:
        return type(error)
    return None


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("wait", WAITS)
def test_the_work_grows_no_faster_than_the_waiters(path: Path, wait: Wait, end: End) -> None:
    def work(count: int) -> int:
        calls = 0

        def called(*_: object) -> None:
            nonlocal calls
            calls += 1

        async def main() -> None:
            async with in_use(path, 0.5 if end is give_up_in_time else 60) as db:
                sys.setprofile(called)
                tasks = [asyncio.create_task(outcome(wait, db)) for _ in range(count)]
                await loop_until(lambda: waiting(db) > 0)
                await end(db, tasks)
                sys.setprofile(None)
                if end is not close:
                    assert waiting(db) == 0
                if end is not cancel:
                    assert {task.result() for task in tasks} <= {
                        LockedError,
                        PoolTimeout,
                        ProgrammingError,
                    }

        try:
            asyncio.run(main())
        finally:
            sys.setprofile(None)
        return calls

    work(10)  # what is done once
    few, many = work(FEW), work(MANY)
    assert many < few * (MANY / FEW) * 1.5


@pytest.mark.parametrize("end", [give_up_in_time, close])
@pytest.mark.parametrize("wait", WAITS)
def test_the_loop_has_its_turns_while_many_go_away(
    run: Run[None], path: Path, wait: Wait, end: End
) -> None:
    async def main() -> None:
        async with in_use(path, 0.5 if end is give_up_in_time else 60) as db:
            tasks = [asyncio.create_task(outcome(wait, db)) for _ in range(MANY)]
            # On a machine under load the first may be gone before the last has come.
            await loop_until(lambda: waiting(db) > 0)
            gone_in_a_turn, gone = 0, sum(task.done() for task in tasks)
            ending = asyncio.create_task(end(db, tasks))
            while not ending.done():
                now_gone = sum(task.done() for task in tasks)
                gone_in_a_turn, gone = max(gone_in_a_turn, now_gone - gone), now_gone
                await asyncio.sleep(0)
            assert gone == MANY
            # A turn of this task is one of the loop's.
            assert gone_in_a_turn <= 16

    run(main)


def test_what_comes_for_others_does_not_wait_behind_them(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with Database(path, readers=1, timeout=1) as db, AsyncExitStack() as stack:
            await patiently(lambda: db.query("SELECT 1"))
            await patiently(lambda: stack.enter_async_context(db.write()))
            tasks = [asyncio.create_task(outcome(execute, db)) for _ in range(3 * MANY)]
            await loop_until(lambda: any(task.done() for task in tasks))
            assert await db.query("SELECT 1") == [(1,)]
            assert not all(task.done() for task in tasks)
            await asyncio.wait(tasks)
            assert {task.result() for task in tasks} == {LockedError}

    run(main)


@pytest.mark.parametrize("wait", WAITS)
def test_one_that_is_cancelled_is_gone_at_once(run: Run[None], path: Path, wait: Wait) -> None:
    async def main() -> None:
        async with in_use(path, 60) as db:
            tasks = [asyncio.create_task(outcome(wait, db)) for _ in range(9)]
            await loop_until(lambda: waiting(db) == 9)
            for left, task in zip(range(8, -1, -1), tasks[::2] + tasks[1::2], strict=True):
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
                assert waiting(db) == left

    run(main)


@pytest.mark.parametrize("wait", WAITS)
def test_what_is_still_being_opened_is_not_waited_for_beyond_the_timeout(
    run: Run[None], path: Path, wait: Wait
) -> None:
    # And nobody is told that others have it, also where no thread has come to it yet.
    async def main() -> None:
        opens = threading.Event()
        db = Database(path, readers=1, timeout=0.2, setup=lambda _: opens.wait(60))
        try:
            waits = [asyncio.ensure_future(wait(db)) for _ in range(3)]
            async with asyncio.timeout(30):
                errors = await asyncio.gather(*waits, return_exceptions=True)
            for error in errors:
                assert isinstance(error, LockedError | PoolTimeout), error
                assert "still being opened" in str(error)
            opens.set()
            await patiently(lambda: db.execute("CREATE TABLE t (x)"))
            await patiently(lambda: wait(db))
        finally:
            opens.set()
            await db.close()

    run(main)


def test_who_opens_it_waits_for_that_whatever_the_timeout(run: Run[None], path: Path) -> None:
    # As ``oxlite.Database``, which is open once it is made.
    async def main() -> None:
        begun, opens = threading.Event(), threading.Event()

        def set_up(_: object) -> None:
            begun.set()
            opens.wait(60)

        db = Database(path, readers=1, timeout=0, setup=set_up)
        opening = asyncio.ensure_future(db.open())
        await loop_until(begun.is_set)
        # Who writes meanwhile is told so; then its time would be up as well.
        with pytest.raises(LockedError, match="still being opened"):
            await db.execute("CREATE TABLE t (x)")
        await asyncio.sleep(0.2)
        assert not opening.done()
        opens.set()
        assert await opening is db
        await db.close()

    run(main)


async def bad_query(db: Database) -> None:
    """Fails as it is run."""
    await db.query("SELECT * FROM nothing")


async def bad_write(db: Database) -> None:
    """Fails as it is run."""
    await db.execute("INSERT INTO nothing VALUES (1)")


async def bad_in_block(db: Database) -> None:
    """Fails in a turn of a borrowed connection."""
    async with db.read() as connection:
        await connection.execute("SELECT * FROM nothing")


async def bad_fetch(db: Database) -> None:
    """Fails in a query of a borrowed connection."""
    async with db.write() as connection:
        await connection.execute_fetchall("SELECT * FROM nothing")


async def bad_commit(db: Database) -> None:
    """Fails at the end of its block."""
    async with db.write() as connection:
        await connection.rollback()


@pytest.mark.parametrize("fails", [bad_query, bad_write, bad_in_block, bad_fetch, bad_commit])
def test_what_a_failure_leaves_goes_without_the_collector(path: Path, fails: Wait) -> None:
    # A future keeps what it raises, and that by its traceback all frames that it has passed.
    async def main() -> None:
        async with Database(path, readers=1) as db:

            async def attempts(count: int) -> None:
                for _ in range(count):
                    with suppress(DatabaseError):
                        await fails(db)

            await attempts(1)
            gc.collect()
            gc.disable()
            try:
                await attempts(100)
                assert gc.collect() < 100
            finally:
                gc.enable()

    asyncio.run(main())


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("wait", WAITS)
def test_what_a_waiter_leaves_goes_without_the_collector(path: Path, wait: Wait, end: End) -> None:
    async def main() -> None:
        async with in_use(path, 0.2 if end is give_up_in_time else 60) as db:
            gc.collect()
            gc.disable()
            try:
                tasks = [asyncio.create_task(outcome(wait, db)) for _ in range(100)]
                await loop_until(partial(have_come, db, tasks))
                await end(db, tasks)
                del tasks
                assert gc.collect() < 100
            finally:
                gc.enable()

    asyncio.run(main())
