"""``oxlite.aio.connect``: one connection, in the words of aiosqlite."""

import asyncio
import sqlite3 as standard
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import ENDLESS, Run, background
from tests.wait import loop_until

from oxlite import aio, sqlite3


def test_it_is_awaited_or_entered(run: Run[None], path: Path) -> None:
    async def main() -> None:
        opening = aio.connect(path)
        assert isinstance(opening, aio.Connection)
        connection = await opening
        assert connection is opening, "whoever keeps the one has the other"
        assert await connection is connection, "it is open"
        await connection.close()
        async with aio.connect(path) as connection:
            assert await connection.execute_fetchall("SELECT 1") == [(1,)]
        async with await aio.connect(path) as connection:
            assert await connection.execute_fetchall("SELECT 1") == [(1,)]

    run(main)


def test_statements_are_awaited_or_entered(run: Run[None]) -> None:
    async def main() -> None:
        async with aio.connect(":memory:") as connection:
            async with connection.execute("CREATE TABLE t (x)") as cursor:
                assert cursor.description is None
            cursor = await connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (3,)])
            assert cursor.rowcount == 3
            await connection.executescript("INSERT INTO t VALUES (4); INSERT INTO t VALUES (5);")
            async with connection.execute("SELECT x FROM t WHERE x > ?", (3,)) as cursor:
                assert cursor.description[0][0] == "x"
                assert await cursor.fetchone() == (4,)
                assert await cursor.fetchmany() == [(5,)]
                assert await cursor.fetchall() == []
                assert await cursor.fetchone() is None
            with pytest.raises(sqlite3.ProgrammingError):
                await cursor.fetchone()  # closed at the end of the block
            named = connection.execute("SELECT :a", {"a": 1})
            assert await (await named).fetchall() == [(1,)]

    run(main)


def test_a_statement_is_a_coroutine(run: Run[None]) -> None:
    async def main() -> None:
        async with aio.connect(":memory:") as connection:
            cursor = await asyncio.create_task(connection.execute("SELECT 1"))
            assert await cursor.fetchall() == [(1,)]
            async with asyncio.TaskGroup() as group:
                task = group.create_task(connection.execute_fetchall("SELECT 2"))
            assert task.result() == [(2,)]
            await asyncio.wait_for(connection.execute("SELECT 3"), 60)

    run(main)


def test_rows_are_fetched_and_row_ids_told_at_one_go(run: Run[None]) -> None:
    async def main() -> None:
        async with aio.connect(":memory:") as connection:
            await connection.execute("CREATE TABLE t (x)")
            assert await connection.execute_insert("INSERT INTO t VALUES (?)", (7,)) == (1,)
            async with connection.execute_insert("INSERT INTO t VALUES (8)") as row:
                assert row == (2,)
            assert await connection.execute_fetchall("SELECT x FROM t") == [(7,), (8,)]
            async with connection.execute_fetchall("SELECT x FROM t WHERE x = ?", [8]) as rows:
                assert rows == [(8,)]

    run(main)


@pytest.mark.parametrize("size", [1, 2, 64])
def test_a_cursor_is_an_iterator(run: Run[None], size: int) -> None:
    async def main() -> None:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 130) "
        async with aio.connect(":memory:", iter_chunk_size=size) as connection:
            async with connection.execute(numbers + "SELECT i FROM n") as cursor:
                assert [row async for row in cursor] == [(i,) for i in range(1, 131)]
            cursor = await connection.cursor()
            assert await cursor.execute(numbers + "SELECT i FROM n") is cursor
            async for (number,) in cursor:
                if number == 5:
                    break
            await cursor.close()

    run(main)


def test_a_cursor_is_the_drivers(run: Run[None]) -> None:
    async def main() -> None:
        async with aio.connect(":memory:") as connection, connection.cursor() as cursor:
            assert isinstance(cursor, aio.Cursor)
            assert isinstance(cursor.connection, sqlite3.Connection)
            assert cursor.lastrowid is None
            assert await cursor.execute("CREATE TABLE t (x)") is cursor
            assert await cursor.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)]) is cursor
            assert await cursor.executescript("INSERT INTO t VALUES (3)") is cursor
            assert (await cursor.execute("INSERT INTO t VALUES (4)")).lastrowid == 4
            assert cursor.rowcount == 1
            assert cursor.arraysize == 1
            cursor.arraysize = 2
            await cursor.execute("SELECT x FROM t")
            assert await cursor.fetchmany() == [(1,), (2,)]
            assert await cursor.fetchmany(1) == [(3,)]
            cursor.row_factory = sqlite3.Row
            assert cursor.row_factory is sqlite3.Row
            assert (await (await cursor.execute("SELECT 1 AS a")).fetchone())["a"] == 1

    run(main)


def test_factories_and_the_transaction_are_attributes(run: Run[None]) -> None:
    async def main() -> None:
        async with aio.connect(":memory:", isolation_level="DEFERRED") as connection:
            assert connection.row_factory is None
            assert connection.text_factory is str
            connection.row_factory, connection.text_factory = sqlite3.Row, bytes
            (row,) = await connection.execute_fetchall("SELECT 'a' AS a")
            assert row["a"] == b"a"
            assert connection.isolation_level == "DEFERRED"
            connection.isolation_level = None
            await connection.execute("CREATE TABLE t (x)")
            await connection.execute("INSERT INTO t VALUES (1)")
            assert not connection.in_transaction
            connection.isolation_level = "IMMEDIATE"
            await connection.execute("INSERT INTO t VALUES (2)")
            assert connection.in_transaction
            assert connection.total_changes == 2
            await connection.rollback()
            assert not connection.in_transaction
            await connection.execute("INSERT INTO t VALUES (3)")
            await connection.commit()
            rows = await connection.execute_fetchall("SELECT x FROM t")
            assert [tuple(row) for row in rows] == [(1,), (3,)]

    run(main)


def test_functions_of_pythons_are_called_elsewhere(run: Run[None]) -> None:
    class Sum:
        def __init__(self) -> None:
            self.sum = 0

        def step(self, value: int) -> None:
            self.sum += value

        def finalize(self) -> int:
            return self.sum

    async def main() -> None:
        threads = set()

        def twice(value: int) -> int:
            threads.add(threading.get_ident())
            return 2 * value

        async with aio.connect(":memory:") as connection:
            await connection.create_function("twice", 1, twice, deterministic=True)
            await connection.create_aggregate("plus", 1, Sum)
            await connection.create_collation("backwards", lambda a, b: (b > a) - (b < a))
            assert await connection.execute_fetchall("SELECT twice(3)") == [(6,)]
            await connection.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2);")
            assert await connection.execute_fetchall("SELECT plus(x) FROM t") == [(3,)]
            sql = "SELECT x FROM t ORDER BY CAST(x AS TEXT) COLLATE backwards"
            assert await connection.execute_fetchall(sql) == [(2,), (1,)]
            await connection.create_function("twice", 1, None)
            with pytest.raises(sqlite3.OperationalError, match="no such function"):
                await connection.execute_fetchall("SELECT twice(3)")
        assert threading.get_ident() not in threads

    run(main)


def test_handlers_are_set(run: Run[None]) -> None:
    async def main() -> None:
        traced: list[str] = []
        async with aio.connect(":memory:") as connection:
            await connection.set_trace_callback(traced.append)
            await connection.execute("SELECT 10")
            await connection.set_trace_callback(None)
            assert "SELECT 10" in traced
            await connection.set_progress_handler(lambda: 1, 1)
            with pytest.raises(sqlite3.OperationalError):
                await connection.execute("CREATE TABLE t (x)")
            await connection.set_progress_handler(None, 1)
            await connection.execute("CREATE TABLE t (x)")
            await connection.set_authorizer(lambda action, *_: int(action == 11))  # DROP TABLE
            with pytest.raises(sqlite3.DatabaseError):
                await connection.execute("DROP TABLE t")
            await connection.set_authorizer(None)
            await connection.execute("DROP TABLE t")

    run(main)


def test_extensions_are_loaded_where_that_is_allowed(run: Run[None]) -> None:
    sqlite_vec = pytest.importorskip("sqlite_vec")

    async def main() -> None:
        async with aio.connect(":memory:") as connection:
            with pytest.raises(sqlite3.OperationalError, match="not authorized"):
                await connection.load_extension(sqlite_vec.loadable_path())
            await connection.enable_load_extension(True)
            await connection.load_extension(sqlite_vec.loadable_path())
            await connection.enable_load_extension(False)
            assert await connection.execute_fetchall("SELECT vec_version() LIKE 'v%'") == [(1,)]

    run(main)


def test_it_is_copied_and_dumped(run: Run[None]) -> None:
    async def main() -> None:
        steps: list[tuple[int, int, int]] = []
        async with aio.connect(":memory:") as source, aio.connect(":memory:") as target:
            await source.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1), ('a');")
            await source.backup(target, pages=1, progress=lambda *step: steps.append(step))
            assert await target.execute_fetchall("SELECT x FROM t") == [(1,), ("a",)]
            assert len(steps) >= 2
            for other in (standard.connect(":memory:"), sqlite3.connect(":memory:")):
                other.close()
            drivers = sqlite3.connect(":memory:", check_same_thread=False)
            await source.backup(drivers)
            assert drivers.execute("SELECT count(*) FROM t").fetchone() == (2,)
            drivers.close()
            assert [line async for line in source.iterdump()] == [
                "BEGIN TRANSACTION;",
                "CREATE TABLE t (x);",
                'INSERT INTO "t" VALUES(1);',
                "INSERT INTO \"t\" VALUES('a');",
                "COMMIT;",
            ]
            assert len([line async for line in source.iterdump(filter="u")]) == 2

    run(main)


def test_what_runs_is_interrupted(run: Run[None]) -> None:
    async def main() -> None:
        async with aio.connect(":memory:") as connection:
            begun = threading.Event()
            await connection.create_function("begun", 0, begun.set)
            endless = ENDLESS.replace("SELECT 1", "SELECT begun() IS NULL", 1)
            async with background(connection.execute_fetchall(endless)) as (query,):
                await loop_until(begun.is_set)
                await connection.interrupt()
                with pytest.raises(sqlite3.OperationalError, match="interrupted"):
                    await query
            assert await connection.execute_fetchall("SELECT 1") == [(1,)]

    run(main)


def test_a_function_is_run_with_the_connection_in_its_turn(run: Run[None]) -> None:
    async def main() -> None:
        async with aio.connect(":memory:") as connection:

            def work(driver: sqlite3.Connection, first: int, *, second: int) -> object:
                driver.execute("CREATE TABLE t (x)")
                driver.executemany("INSERT INTO t VALUES (?)", [(first,), (second,)])
                return driver.execute("SELECT sum(x) FROM t").fetchone()

            before = connection.execute("SELECT 1")
            assert await connection.run_sync(work, 1, second=2) == (3,)
            await before

            async with background(
                *(connection.run_sync(lambda _, i=i: order.append(i)) for i in range(50))
            ) as tasks:
                order: list[int] = []
                await asyncio.gather(*tasks)
            assert order == list(range(50))

    run(main)


@pytest.mark.parametrize("raised", [StopIteration, StopAsyncIteration, LookupError, MemoryError])
def test_what_a_function_raises_reaches_whoever_waits(
    run: Run[None], raised: type[Exception]
) -> None:
    def fail(_: object) -> None:
        raise raised("why")

    async def main() -> None:
        async with aio.connect(":memory:") as connection:
            with pytest.raises(RuntimeError if raised is StopIteration else raised) as caught:
                await connection.run_sync(fail)
            if raised is StopIteration:
                assert isinstance(caught.value.__cause__, StopIteration)
            assert await connection.execute_fetchall("SELECT 1") == [(1,)]

    run(main)


def test_closed_and_unopened_connections_say_so(run: Run[None], path: Path) -> None:
    async def main() -> None:
        connection = aio.connect(path)
        with pytest.raises(sqlite3.ProgrammingError, match="no active connection"):
            await connection.execute("SELECT 1")
        await connection
        cursor = await connection.execute("SELECT 1")
        statement = connection.execute("SELECT 1")
        await connection.close()
        await connection.close()
        for use in (
            lambda: cursor.fetchall(),
            lambda: connection.execute("SELECT 1"),
            lambda: connection.commit(),
            lambda: connection.interrupt(),
            lambda: connection.run_sync(lambda _: None),
            lambda: statement,
            lambda: connection,
        ):
            with pytest.raises(sqlite3.ProgrammingError, match="Connection closed"):
                await use()
        # As aiosqlite has it.
        with pytest.raises(ValueError, match="Connection closed"):
            _ = connection.in_transaction
        with pytest.raises(ValueError, match="Connection closed"):
            async with connection:
                pass

    run(main)


def test_what_cannot_be_opened_says_why(run: Run[None], tmp_path: Path) -> None:
    async def main() -> None:
        for missing in (tmp_path / "missing" / "app.db", str(tmp_path / "missing" / "app.db")):
            with pytest.raises(sqlite3.OperationalError, match="unable to open database"):
                await aio.connect(missing)
            with pytest.raises(sqlite3.OperationalError, match="unable to open database"):
                async with aio.connect(missing):
                    pass
        with pytest.raises(ValueError, match="unknown profile 'wab'; did you mean 'web'"):
            await aio.connect(":memory:", profile="wab")
        with pytest.raises(TypeError, match="unexpected keyword argument 'tmeout'"):
            await aio.connect(":memory:", tmeout=1)  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="iter_chunk_size must be at least 1"):
            aio.connect(":memory:", iter_chunk_size=0)

    run(main)


def test_closing_waits_for_what_was_asked_before(run: Run[None], path: Path) -> None:
    async def main() -> None:
        connection = await aio.connect(path, isolation_level=None)
        await connection.execute("CREATE TABLE t (x)")
        writes = [
            asyncio.ensure_future(connection.execute("INSERT INTO t VALUES (?)", (i,)))
            for i in range(100)
        ]
        await asyncio.sleep(0)
        await connection.close()
        await asyncio.gather(*writes)
        async with aio.connect(path) as connection:
            assert await connection.execute_fetchall("SELECT count(*) FROM t") == [(100,)]

    run(main)


def test_it_can_be_stopped_without_waiting(run: Run[None], path: Path) -> None:
    connection = aio.connect(path)

    async def main() -> None:
        await connection
        stopped = await aio.connect(path)
        future = stopped.stop()
        assert future is not None
        await future
        again = stopped.stop()
        assert again is not None
        await again

    run(main)
    assert connection.stop() is None
    assert connection.stop() is None


def test_one_that_nobody_closes_is_closed_with_a_warning(run: Run[None], path: Path) -> None:
    async def main() -> None:
        closed = threading.Event()

        class Watched(sqlite3.Connection):
            def close(self) -> None:
                super().close()
                closed.set()

        connection = await aio.connect(path, factory=Watched)
        kept = [connection]
        del connection
        with pytest.warns(ResourceWarning, match="was deleted before being closed"):
            kept.clear()
        await loop_until(closed.is_set)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            aio.connect(path)
            connection = await aio.connect(path)
            await connection.close()
            del connection

    run(main)


def test_two_tasks_may_open_it(run: Run[None], path: Path) -> None:
    async def main() -> None:
        connection = aio.connect(path)

        async def opened() -> aio.Connection:
            return await connection

        assert await asyncio.gather(*(opened() for _ in range(5))) == [connection] * 5
        assert await connection.execute_fetchall("SELECT 1") == [(1,)]
        await connection.close()

    run(main)


def test_many_tasks_use_one_connection(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with aio.connect(path, isolation_level=None) as connection:
            await connection.execute("CREATE TABLE t (x INTEGER PRIMARY KEY)")

            async def use(number: int) -> None:
                for i in range(5):
                    key = 5 * number + i
                    await connection.execute("INSERT INTO t VALUES (?)", (key,))
                    async with connection.execute("SELECT x FROM t WHERE x = ?", (key,)) as cursor:
                        assert [row async for row in cursor] == [(key,)]

            await asyncio.gather(*(use(number) for number in range(100)))
            assert await connection.execute_fetchall("SELECT count(*) FROM t") == [(500,)]

    run(main)


def test_many_connections_wait_for_one_that_has_the_lock(run: Run[None], path: Path) -> None:
    # Each waits in a thread: were those limited, the one that commits would wait behind the others.
    async def main() -> None:
        async with aio.connect(path, timeout=60, isolation_level=None) as holder:
            await holder.execute("CREATE TABLE t (x)")
            await holder.execute("BEGIN IMMEDIATE")
            others = await asyncio.gather(
                *(
                    aio.connect(path, timeout=60, isolation_level=None).__aenter__()
                    for _ in range(199)
                )
            )
            inserts = [
                asyncio.ensure_future(other.execute("INSERT INTO t VALUES (1)")) for other in others
            ]
            await asyncio.sleep(0.05)
            await holder.execute("INSERT INTO t VALUES (2)")
            assert not any(insert.done() for insert in inserts)
            await holder.commit()
            await asyncio.gather(*inserts)
            await asyncio.gather(*(other.close() for other in others))
            assert await holder.execute_fetchall("SELECT count(*) FROM t") == [(200,)]

    run(main)


def test_it_outlives_its_loop(run: Run[Any], path: Path) -> None:
    async def begin() -> tuple[aio.Connection, aio.Cursor]:
        connection = await aio.connect(path)
        return connection, await connection.execute("SELECT 1 UNION SELECT 2")

    connection, cursor = run(begin)

    async def go_on() -> None:
        assert await cursor.fetchall() == [(1,), (2,)]
        assert await connection.execute_fetchall("SELECT 3") == [(3,)]
        await connection.close()

    run(go_on)


def test_loops_in_several_threads_share_it(run: Run[Any], path: Path) -> None:
    errors: list[BaseException] = []

    async def begin() -> aio.Connection:
        connection = await aio.connect(path, isolation_level=None)
        await connection.execute("CREATE TABLE t (x)")
        return connection

    connection = run(begin)

    async def use() -> None:
        for i in range(50):
            await connection.execute("INSERT INTO t VALUES (?)", (i,))

    def work() -> None:
        try:
            run(use)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    async def end() -> None:
        assert await connection.execute_fetchall("SELECT count(*) FROM t") == [(200,)]
        await connection.close()

    run(end)
    assert errors == []
