"""Cancelling at every point: who is cancelled goes on, and nothing is lost or kept."""

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import ENDLESS, Run, background
from tests.wait import loop_until

from oxlite import aio, sqlite3
from oxlite.aio import Database

On = Callable[..., None]
Use = Callable[[Database], Coroutine[Any, Any, object]]


@pytest.fixture
def on(run: Run[Any], path: Path) -> On:
    """Runs a coroutine function with a database of one reader, which must be idle at the end."""

    def on(
        main: Callable[[Database], Coroutine[Any, Any, None]],
        readers: int = 1,
        **options: object,
    ) -> None:
        async def opened() -> None:
            async with Database(path, readers=readers, **({"timeout": 30} | options)) as db:
                await db.execute("CREATE TABLE t (x)")
                await main(db)
                await loop_until(lambda: db.stats()[:4] == (readers, 0, 0, 0))
                assert await db.query("SELECT 1") == [(1,)]
                await db.execute("INSERT INTO t VALUES ('the last')")

        run(opened)

    return on


async def cancelled(task: "asyncio.Task[Any] | asyncio.Future[Any]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def read_block(db: Database) -> None:
    async with db.read() as connection:
        await connection.execute_fetchall("SELECT 1")


async def write_block(db: Database) -> None:
    async with db.write() as connection:
        await connection.execute("INSERT INTO t VALUES ('unwanted')")


async def stream(db: Database, sql: str = "SELECT 1") -> None:
    async for _ in db.stream(sql):
        pass


READS: dict[str, Use] = {
    "query": lambda db: db.query("SELECT 1"),
    "query_one": lambda db: db.query_one("SELECT 1"),
    "block": read_block,
    "stream": stream,
}

WRITES: dict[str, Use] = {
    "execute": lambda db: db.execute("INSERT INTO t VALUES ('unwanted')"),
    "executemany": lambda db: db.executemany("INSERT INTO t VALUES (?)", [("unwanted",)]),
    "from an iterator": lambda db: db.executemany(
        "INSERT INTO t VALUES (?)", (set_ for set_ in [("unwanted",)])
    ),
    "alone": lambda db: db.execute("CREATE TABLE unwanted (x)"),
    "block": write_block,
}


async def assert_nothing_unwanted(db: Database) -> None:
    assert await db.query("SELECT * FROM t WHERE x = 'unwanted'") == []
    assert await db.query("SELECT * FROM sqlite_schema WHERE name = 'unwanted'") == []


@pytest.mark.parametrize("kind", READS)
def test_a_read_that_waits_for_a_reader(on: On, kind: str) -> None:
    async def main(db: Database) -> None:
        async with db.read():
            tasks = [asyncio.ensure_future(READS[kind](db)) for _ in range(10)]
            await loop_until(lambda: db.stats().readers_waiting == 10)
            for task in tasks:
                await cancelled(task)
            assert db.stats().readers_waiting == 0

    on(main)


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_that_waits_for_the_writer(on: On, kind: str) -> None:
    async def main(db: Database) -> None:
        async with db.write():
            tasks = [asyncio.ensure_future(WRITES[kind](db)) for _ in range(10)]
            await loop_until(lambda: db.stats().writer_waiting == 10)
            for task in tasks:
                await cancelled(task)
            assert db.stats().writer_waiting == 0
        await assert_nothing_unwanted(db)

    on(main)


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_that_waits_for_the_lock(on: On, path: Path, kind: str) -> None:
    # The statement that has not got the lock has not begun, but for one that runs by itself.
    async def main(db: Database) -> None:
        async with aio.connect(path, isolation_level=None) as other:
            for busy in ("BEGIN IMMEDIATE",):
                await other.execute(busy)
                task = asyncio.ensure_future(WRITES[kind](db))
                await loop_until(lambda: db.stats().writer_waiting == 0)
                await asyncio.sleep(0.05)
                await cancelled(task)
                await other.execute("ROLLBACK")
        await db.execute("INSERT INTO t VALUES ('later')")
        if kind != "alone":
            await assert_nothing_unwanted(db)

    on(main)


def test_a_block_that_waits_for_the_lock_frees_the_writer(run: Run[Any], path: Path) -> None:
    async def main() -> None:
        db = Database(path, timeout=60)
        async with aio.connect(path, isolation_level=None) as other:
            await other.execute("BEGIN IMMEDIATE")
            task = asyncio.ensure_future(write_block(db))
            await asyncio.sleep(0.05)
            await cancelled(task)
            # It comes back though the lock is still held: the wait for it was broken off.
            await db.close(timeout=30)
            await other.execute("ROLLBACK")

    run(main)


LONG_READS: dict[str, Use] = {
    "query": lambda db: db.query(ENDLESS),
    "query_one": lambda db: db.query_one(ENDLESS),
    "stream": lambda db: stream(db, ENDLESS),
}


@pytest.mark.parametrize("kind", [*LONG_READS, "block", "function"])
def test_a_read_that_runs_is_interrupted(on: On, kind: str) -> None:
    async def block(db: Database) -> None:
        async with db.read() as connection:
            await connection.execute_fetchall(ENDLESS)

    async def function(db: Database) -> None:
        async with db.read() as connection:
            await connection.run_sync(lambda driver: driver.execute(ENDLESS).fetchall())

    async def main(db: Database) -> None:
        work = {**LONG_READS, "block": block, "function": function}[kind]
        for pause in (None, 0, 0.001, 0.01):
            task = asyncio.ensure_future(work(db))
            if pause is None:
                await loop_until(lambda: db.stats().readers_lent)
                await asyncio.sleep(0.05)
            else:
                await asyncio.sleep(pause)
            await cancelled(task)
            # The worker comes free, since there is one reader only.
            assert await db.query("SELECT 1") == [(1,)]

    on(main)


def test_an_interruption_at_any_moment_is_not_lost(on: On, seed: int) -> None:
    # SQLite forgets one that comes just before the statement begins.
    moments = random.Random(seed)

    async def main(db: Database) -> None:
        for _ in range(300):
            task = asyncio.ensure_future(db.query(ENDLESS))
            await asyncio.sleep(0)
            for _ in range(moments.randrange(2000)):
                pass
            await cancelled(task)
            assert await db.query("SELECT 1") == [(1,)]

    on(main)


def test_a_write_that_has_begun_goes_on(on: On) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly(value: int) -> int:
        begun.set()
        go_on.wait(30)
        return value

    def set_up(connection: sqlite3.Connection) -> None:
        connection.create_function("slowly", 1, slowly)

    async def alone(db: Database) -> None:
        await db.execute("CREATE TABLE u AS SELECT slowly(1) AS x")

    async def in_block(db: Database) -> None:
        async with db.write() as connection:
            await connection.execute("INSERT INTO t VALUES (slowly(7))")

    async def main(db: Database) -> None:
        works: dict[Any, bool] = {
            (lambda: db.execute("INSERT INTO t VALUES (slowly(7))")): True,
            (lambda: db.executemany("INSERT INTO t VALUES (slowly(?))", [(7,), (7,)])): True,
            (lambda: alone(db)): True,
            # Its transaction is not committed.
            (lambda: in_block(db)): False,
        }
        for work, is_there in works.items():
            begun.clear()
            go_on.clear()
            changes = await total(db)
            task = asyncio.ensure_future(work())
            await loop_until(begun.is_set)
            await cancelled(task)
            go_on.set()
            # The writer is usable, and is had when the other one has ended.
            await db.execute("INSERT INTO t VALUES ('after')")
            assert (await total(db) > changes + 1) == is_there

    async def total(db: Database) -> int:
        await db.execute("CREATE TABLE IF NOT EXISTS u (x)")
        (row,) = await db.query("SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM u)")
        await db.execute("DROP TABLE u")
        return int(row[0])

    on(main, setup=set_up)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("kind", ["read", "write"])
def test_inside_a_block(on: On, kind: str, times: int) -> None:
    async def main(db: Database) -> None:
        reached = asyncio.Event()

        async def work() -> None:
            async with getattr(db, kind)() as connection:
                if kind == "write":
                    await connection.execute("INSERT INTO t VALUES ('unwanted')")
                else:
                    await connection.execute("SELECT * FROM t")
                reached.set()
                await asyncio.sleep(60)

        for _ in range(10):
            reached.clear()
            task = asyncio.ensure_future(work())
            await reached.wait()
            for _ in range(times):
                task.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await task
        await assert_nothing_unwanted(db)

    on(main)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_while_a_connection_is_taken_or_given_back(on: On, kind: str) -> None:
    async def main(db: Database) -> None:
        async def work() -> None:
            async with getattr(db, kind)():
                pass

        for turns in range(60):
            task = asyncio.ensure_future(work())
            for _ in range(turns // 3):
                await asyncio.sleep(0)
            if turns % 3:
                await asyncio.sleep(0.0002 * (turns % 7))
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    on(main)


def test_timeouts_are_cancellations(on: On) -> None:
    async def main(db: Database) -> None:
        for limit in (0, 0.001, 0.02):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(limit):
                    await db.query(ENDLESS)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(db.query(ENDLESS), limit)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(limit):
                    await stream(db, ENDLESS)
            async with db.write():
                # Tasks of their own: since Python 3.12 wait_for makes none of a coroutine, and this
                # task has the writer.
                block = asyncio.ensure_future(write_block(db))
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(block, limit)
                insert = asyncio.ensure_future(db.execute("INSERT INTO t VALUES ('unwanted')"))
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(insert, limit)
        await assert_nothing_unwanted(db)

    on(main)


def test_a_group_that_fails_cancels_the_others(on: On) -> None:
    async def fail() -> None:
        await asyncio.sleep(0.01)
        raise LookupError

    async def main(db: Database) -> None:
        with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012
            async with asyncio.TaskGroup() as group:
                for _ in range(5):
                    group.create_task(db.query(ENDLESS))
                    group.create_task(stream(db, ENDLESS))
                group.create_task(fail())
        assert [type(error) for error in caught.value.exceptions] == [LookupError]

    on(main, readers=3)


def test_a_connection_stays_usable(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with aio.connect(path, isolation_level=None) as connection:
            await connection.execute("CREATE TABLE t (x)")
            for pause in (0, 0.001, 0.02) * 5:
                task = asyncio.ensure_future(connection.execute_fetchall(ENDLESS))
                queued = asyncio.ensure_future(connection.execute("INSERT INTO t VALUES (1)"))
                await asyncio.sleep(pause)
                await cancelled(queued)
                await cancelled(task)
                assert await connection.execute_fetchall("SELECT count(*) FROM t") == [(0,)]
            for count in range(20):
                cursor = connection.execute("INSERT INTO t VALUES (2)")
                task = asyncio.ensure_future(cursor)
                await asyncio.sleep(0.0005 * (count % 3))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await connection.execute("BEGIN")
            await connection.commit()

    run(main)


@pytest.mark.parametrize("pause", [0, 0.0005, 0.01])
def test_opening_and_closing_a_connection(run: Run[None], path: Path, pause: float) -> None:
    async def main() -> None:
        opened: list[sqlite3.Connection] = []

        class Noted(sqlite3.Connection):
            def __init__(self, *arguments: object, **options: object) -> None:
                super().__init__(*arguments, **options)
                opened.append(self)

        def are_closed() -> bool:
            for connection in opened:
                try:
                    connection.total_changes  # noqa: B018 - refused once it is closed
                except sqlite3.ProgrammingError:
                    continue
                return False
            return True

        async def use() -> None:
            async with aio.connect(path, factory=Noted) as connection:
                await connection.execute("SELECT 1")

        for _ in range(20):
            task = asyncio.ensure_future(use())
            await asyncio.sleep(pause)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
            await asyncio.gather(task, return_exceptions=True)
        await loop_until(are_closed)

    run(main)


def test_cancelling_the_close_does_not_undo_it(run: Run[None], path: Path) -> None:
    async def main() -> None:
        db = await Database(path, timeout=30)
        begun, end = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with db.read():
                begun.set()
                await end.wait()

        async with background(hold()) as (holder,):
            await begun.wait()
            closing = asyncio.ensure_future(db.close(30))
            await asyncio.sleep(0.01)
            await cancelled(closing)
            end.set()
            await holder
        await loop_until(lambda: not path.with_name("app.db-wal").exists())
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            await db.query("SELECT 1")

    run(main)


def test_at_random(on: On, seed: int) -> None:
    chance = random.Random(seed)

    async def main(db: Database) -> None:
        acknowledged: set[int] = set()
        withdrawn: set[int] = set()
        begun = iter(range(10**9))

        async def insert() -> None:
            number = next(begun)
            await db.execute("INSERT INTO t VALUES (?)", (number,))
            acknowledged.add(number)

        async def insert_in_block() -> None:
            number = next(begun)
            is_committing = False
            try:
                async with db.write() as connection:
                    await connection.execute("INSERT INTO t VALUES (?)", (number,))
                    await asyncio.sleep(0)
                    is_committing = True
                acknowledged.add(number)
            except asyncio.CancelledError:
                if not is_committing:
                    withdrawn.add(number)
                raise

        async def many() -> None:
            numbers = [next(begun) for _ in range(5)]
            await db.executemany("INSERT INTO t VALUES (?)", [(number,) for number in numbers])
            acknowledged.update(numbers)

        async def endless() -> None:
            async with asyncio.timeout(chance.random() * 0.01):
                await db.query(ENDLESS)

        async def some() -> None:
            async for _ in db.stream("SELECT x FROM t LIMIT 200", chunk_size=7):
                await asyncio.sleep(0)

        works = [insert, insert, insert_in_block, many, endless, some, lambda: read_block(db)]
        tasks: list[asyncio.Task[None]] = []
        for _ in range(600):
            task = asyncio.create_task(chance.choice(works)())
            tasks.append(task)
            if chance.random() < 0.6:
                victim = chance.choice(tasks[-10:])
                asyncio.get_running_loop().call_later(chance.random() * 0.01, victim.cancel)
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() * 0.003)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            assert outcome is None or isinstance(outcome, asyncio.CancelledError | TimeoutError)
        assert any(outcome is None for outcome in outcomes)
        await loop_until(lambda: db.stats()[:4] == (3, 0, 0, 0))
        async with db.write() as connection:  # what has begun has ended
            rows = await connection.execute_fetchall("SELECT x FROM t")
        there = [row[0] for row in rows]
        assert len(there) == len(set(there))
        assert acknowledged <= set(there)
        assert not withdrawn & set(there)

    on(main, readers=3)
