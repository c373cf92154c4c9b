"""``oxlite.aio.Database``: what it has with its loops. What it promises beside: tests/database."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import ENDLESS, Run, background
from tests.wait import loop_until, until

import oxlite
from oxlite import sqlite3
from oxlite.aio import Connection, Database

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) SELECT i FROM n"


@pytest.fixture
def on(run: Run[Any], path: Path) -> Callable[..., None]:
    """Runs a coroutine function with a database that has a table, and is idle again at the end."""

    def on(
        main: Callable[[Database], Coroutine[Any, Any, None]],
        readers: int = 2,
        **options: object,
    ) -> None:
        async def opened() -> None:
            async with Database(path, readers=readers, **({"timeout": 30} | options)) as db:
                await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE)")
                await main(db)
                await loop_until(lambda: db.stats()[:4] == (readers, 0, 0, 0))

        run(opened)

    return on


On = Callable[..., None]


def test_a_connection_is_refused_after_its_block(on: On) -> None:
    async def main(db: Database) -> None:
        async with db.read() as reader:
            assert isinstance(reader, Connection)
        async with db.write() as writer:
            await writer.execute("INSERT INTO t (x) VALUES (2)")
        for kept in (reader, writer):
            with pytest.raises(sqlite3.ProgrammingError, match="given back at the end"):
                await kept.execute("SELECT 1")
            with pytest.raises(sqlite3.ProgrammingError, match="given back at the end"):
                _ = kept.in_transaction

    on(main)


def test_a_task_is_refused_the_readers_of_its_blocks_alone(run: Run[None], path: Path) -> None:
    """A stream that was left early gives its reader back a little later."""

    async def main() -> None:
        async with Database(path, readers=1, timeout=0.1) as db:
            rows = db.stream("SELECT 1 UNION ALL SELECT 2")
            await anext(rows)
            with pytest.raises(oxlite.PoolTimeout):
                await db.query("SELECT 1")
            await rows.aclose()
            await loop_until(lambda: not db.stats().readers_lent)
            for _ in range(3):
                async with db.read():
                    with pytest.raises(sqlite3.ProgrammingError, match="more than 1 readers"):
                        await db.query("SELECT 1")
                await loop_until(lambda: not db.stats().readers_lent)
                assert await db.query("SELECT 1") == [(1,)]
                await loop_until(lambda: not db.stats().readers_lent)

    run(main)


def test_the_loop_goes_on_while_a_long_result_is_made(on: On) -> None:
    async def main(db: Database) -> None:
        await db.query("SELECT 1")
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with background(count()):
            rows = await db.query(NUMBERS.format(200_000))
        assert len(rows) == 200_000
        assert rows[-1] == (200_000,)
        # It is made in pieces of 4000 values, between which the loop goes on.
        assert turns >= 50

    on(main)


def test_many_small_results_do_not_hurry_a_long_one(on: On, path: Path) -> None:
    # Each time something comes the loop is woken; the long one still goes on at one pace.
    async def main(db: Database) -> None:
        from oxlite.aio.loops import current

        loop, _ = current()
        turn, pieces, most = 0, 0, 0

        def step() -> None:
            nonlocal turn, pieces, most
            most = max(most, pieces)
            turn, pieces = turn + 1, 0
            loop.call_soon(step)

        def made(_: object, row: tuple[int]) -> tuple[int]:
            nonlocal pieces
            pieces += row[0] % 4000 == 1 and row[0] > 1
            return row

        def set_up(connection: sqlite3.Connection) -> None:
            connection.row_factory = made

        async with Database(path, readers=2, setup=set_up) as other:
            step()

            async def small() -> None:
                while True:
                    await other.query("SELECT 0")

            async with background(*(small() for _ in range(20))):
                rows = await other.query(NUMBERS.format(100_000))
        assert len(rows) == 100_000
        assert most <= 2

    on(main)


def test_the_loop_has_its_turns_while_many_results_come(on: On) -> None:
    async def main(db: Database) -> None:
        turn = 0
        turns_of_ends = []

        def take_a_turn() -> None:
            nonlocal turn
            turn += 1
            if len(turns_of_ends) < len(queries):
                loop.call_soon(take_a_turn)

        async def query(i: int) -> None:
            assert await db.query("SELECT ?", (i,)) == [(i,)]
            turns_of_ends.append(turn)

        loop = asyncio.get_running_loop()
        queries = [asyncio.create_task(query(i)) for i in range(100)]
        await asyncio.sleep(0)
        # The loop is kept until all are here, so they come to it at one time.
        until(lambda: not (db.stats().readers_waiting or db.stats().readers_lent))
        take_a_turn()
        await asyncio.gather(*queries)
        most = max(turns_of_ends.count(turn) for turn in turns_of_ends)
        assert most <= 8, turns_of_ends

    on(main)


def test_a_long_result_that_nobody_wants_is_not_made(on: On, path: Path) -> None:
    async def main(db: Database) -> None:
        made = 0

        def make(_: object, row: tuple[int]) -> tuple[int]:
            nonlocal made
            made += 1
            return row

        def set_up(connection: sqlite3.Connection) -> None:
            connection.row_factory = make

        async with Database(path, readers=2, setup=set_up) as other:
            query = asyncio.ensure_future(other.query(NUMBERS.format(200_000)))
            await loop_until(lambda: made)
            query.cancel()
            with pytest.raises(asyncio.CancelledError):
                await query
            await other.query("SELECT 1")
        assert made < 100_000

    on(main)


def test_waiting_for_queries_in_vain_counts_them(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with Database(path, readers=1, timeout=0.1) as db:
            async with background(db.query(ENDLESS)):
                await loop_until(lambda: db.stats().readers_lent)
                with pytest.raises(oxlite.PoolTimeout, match="by 1 running queries"):
                    await db.query("SELECT 1")
            # It is interrupted, and its thread sees that in its own time.
            await loop_until(lambda: not db.stats().readers_lent)
            assert await db.query("SELECT 1") == [(1,)]

    run(main)


def test_without_a_loop_nothing_is_done(path: Path) -> None:
    query = Database(path).query("SELECT 1")
    with pytest.raises(RuntimeError, match="no running event loop"):
        query.send(None)


def test_loops_in_several_threads_share_it(run: Run[Any], path: Path) -> None:
    db = Database(path, readers=2, timeout=60)
    errors: list[BaseException] = []

    async def begin() -> None:
        await db.execute("CREATE TABLE t (x)")

    async def use() -> None:
        async def one() -> None:
            for _ in range(10):
                await db.execute("INSERT INTO t VALUES (1)")
                async with db.write() as connection:
                    await connection.execute("INSERT INTO t VALUES (2)")
                assert await db.query_one("SELECT count(*) >= 2 FROM t") == (1,)
                async with db.read() as connection:
                    first = await connection.execute_fetchall("SELECT count(*) FROM t")
                    assert await connection.execute_fetchall("SELECT count(*) FROM t") == first

        await asyncio.gather(*(one() for _ in range(8)))

    def work() -> None:
        try:
            run(use)
        except BaseException as error:
            errors.append(error)

    run(begin)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)

    async def end() -> None:
        assert await db.query("SELECT count(*) FROM t") == [(640,)]
        await loop_until(lambda: db.stats()[:4] == (2, 0, 0, 0))
        await db.close()

    run(end)
    assert errors == []


def test_it_stays_where_it_was_made(
    run: Run[None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    db = Database("app.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")

    async def main() -> None:
        async with db:
            await db.execute("CREATE TABLE t (x)")

    run(main)
    assert (tmp_path / "app.db").exists()
