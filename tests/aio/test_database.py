"""``oxlite.aio.Database``: the readers and the writer of a file, for all tasks."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.aio.loops import ENDLESS, Run, background, until

import oxlite
from oxlite import sqlite3
from oxlite.aio import Connection, Database

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) SELECT i FROM n"


@pytest.fixture
def on(run: Run[Any], path: Path) -> Callable[..., None]:
    """Runs a coroutine function with a database that has a table, and is idle again at the end."""

    def on(main: Callable[[Database], Coroutine[Any, Any, None]], **options: object) -> None:
        async def opened() -> None:
            async with Database(path, **({"readers": 2, "timeout": 30} | options)) as db:
                await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE)")
                await main(db)
                await until(lambda: db.stats()[:4] == (db._reader_count, 0, 0, 0))

        run(opened)

    return on


On = Callable[..., None]


def test_a_write_answers_row_count_row_id_and_rows(on: On) -> None:
    async def main(db: Database) -> None:
        assert await db.execute("INSERT INTO t (x) VALUES (?)", ("a",)) == (1, 1, [])
        sql = "INSERT INTO t (x) VALUES (:b), ('c') RETURNING id, x"
        assert await db.execute(sql, {"b": "b"}) == (2, 3, [(2, "b"), (3, "c")])
        assert await db.execute("SELECT count(*) FROM t") == (-1, None, [(3,)])
        assert await db.execute("UPDATE t SET x = x || 'x'") == (3, None, [])
        assert await db.executemany("INSERT INTO t (x) VALUES (?)", [("d",), ("e",)]) == (2, 5, [])
        several = iter([("f",), ("g",)])
        assert await db.executemany("INSERT INTO t (x) VALUES (?)", several) == (2, 7, [])
        delete = "DELETE FROM t WHERE x = ?"
        assert await db.executemany(delete, iter([("f",), ("g",)])) == (2, None, [])
        sets = [(str(i),) for i in range(1001)]  # too many to be put together with others
        assert (await db.executemany("INSERT INTO t (x) VALUES (?)", sets)).rowcount == 1001
        assert await db.execute("SELECT 1; -- nothing more") == (-1, None, [(1,)])

    on(main)


class OnlySequence:
    """Parameters that only the driver can take, one after the other."""

    def __init__(self, *values: object) -> None:
        self._values = values

    def __len__(self) -> int:  # noqa: D105
        return len(self._values)

    def __getitem__(self, index: int) -> object:  # noqa: D105
        return self._values[index]


def test_parameters_are_as_for_the_driver(on: On) -> None:
    async def main(db: Database) -> None:
        await db.execute("CREATE TABLE u (x)")
        await db.execute("INSERT INTO t (x) VALUES (1)")
        # The row id is the same as that of the insert before, in another table.
        only = OnlySequence("only")
        assert await db.execute("INSERT INTO u VALUES (?)", only) == (1, 1, [])
        assert await db.execute("UPDATE u SET x = ?", only) == (1, None, [])
        assert await db.query("SELECT ?", only) == [("only",)]
        assert await db.query_one("SELECT ?", only) == ("only",)
        assert await db.query_one("SELECT x FROM t WHERE id = ?", OnlySequence(77)) is None
        assert await db.query("SELECT :a, :b", {"a": 1, "b": 2, "c": object()}) == [(1, 2)]
        every = [None, 1, 2**62, 0.5, "naïve", b"\0", bytearray(b"a"), memoryview(b"b"), True]
        (row,) = await db.query("SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?", every)
        assert row == (None, 1, 2**62, 0.5, "naïve", b"\0", b"a", b"b", 1)
        for bad, error in [
            ((), sqlite3.ProgrammingError),
            ((1, 2), sqlite3.ProgrammingError),
            ({"b": 1}, sqlite3.ProgrammingError),
            ((object(),), sqlite3.ProgrammingError),
            ((2**63,), OverflowError),
            (("\ud800",), UnicodeEncodeError),
            (7, sqlite3.ProgrammingError),
            (None, sqlite3.ProgrammingError),
        ]:
            for use in (db.query, db.query_one, db.execute):
                with pytest.raises(error):
                    await use("SELECT :a", bad)  # type: ignore[arg-type]
            with pytest.raises(error):
                await db.execute("INSERT INTO u VALUES (:a)", bad)
        with pytest.raises(TypeError):
            await db.query(1)  # type: ignore[arg-type]
        assert await db.query("SELECT count(*) FROM u") == [(1,)]

    on(main)


def test_adapters_and_converters_are_used(on: On) -> None:
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    sqlite3.register_adapter(Point, lambda point: f"point {point.x}")
    sqlite3.register_converter("aio_point", lambda text: Point(int(text.split()[1])))

    async def main(db: Database) -> None:
        await db.execute("CREATE TABLE u (p aio_point)")
        answer = await db.execute("INSERT INTO u VALUES (?) RETURNING p", (Point(3),))
        assert answer.rows[0][0].x == 3
        assert (await db.query_one("SELECT p FROM u"))[0].x == 3
        assert [row[0].x async for row in db.stream("SELECT p FROM u")] == [3]
        (row,) = await db.query("SELECT p FROM u WHERE p = ?", (Point(3),))
        assert row[0].x == 3

    on(main, detect_types=sqlite3.PARSE_DECLTYPES)
    del sqlite3.adapters[Point, sqlite3.PrepareProtocol]
    del sqlite3.converters["AIO_POINT"]


@pytest.mark.parametrize("text_factory", [str, bytes])
def test_every_connection_is_set_up(on: On, text_factory: type) -> None:
    seen = []

    def set_up(connection: oxlite.Connection) -> None:
        assert threading.current_thread() is not threading.main_thread()
        seen.append(connection)
        connection.create_function("twice", 1, lambda x: 2 * x)
        connection.row_factory = sqlite3.Row
        connection.text_factory = text_factory

    text = "a" if text_factory is str else b"a"

    async def main(db: Database) -> None:
        (row,) = await db.query("SELECT twice(3) AS n, 'a' AS a")
        assert (row["n"], row["a"]) == (6, text)
        assert (await db.query_one("SELECT 'a' AS a"))["a"] == text
        answer = await db.execute("INSERT INTO t (x) VALUES (twice(2)) RETURNING x, 'a' AS a")
        assert [tuple(row) for row in answer.rows] == [(4, text)]
        async with db.read() as first, db.read() as second:
            assert (await second.execute_fetchall("SELECT twice(4) AS n"))[0]["n"] == 8
            assert (await first.execute_fetchall("SELECT twice(4) AS n"))[0]["n"] == 8
        async for row in db.stream("SELECT 'a' AS a"):
            assert row["a"] == text

    on(main, setup=set_up)
    assert len(set(seen)) == 3


def test_a_set_up_that_fails_is_tried_again(run: Run[None], path: Path) -> None:
    fails = [True, False, False, True, False]

    def set_up(_: oxlite.Connection) -> None:
        if fails.pop():
            raise LookupError

    async def main() -> None:
        db = Database(path, readers=1, setup=set_up)
        await db.open()
        with pytest.raises(LookupError):
            await db.query("SELECT 1")
        assert await db.query("SELECT 1") == [(1,)]
        await db.close()
        fails[:] = [False, True]
        db = Database(path, readers=1, setup=set_up)
        with pytest.raises(LookupError):
            await db
        await (await db).close()

    run(main)


@pytest.mark.parametrize("raised", [LookupError, KeyboardInterrupt])
def test_what_a_function_raises_belongs_to_its_statement(
    on: On, raised: type[BaseException]
) -> None:
    def fail() -> None:
        raise raised("why")

    def set_up(connection: oxlite.Connection) -> None:
        connection.create_function("fail", 0, fail)

    async def main(db: Database) -> None:
        for use in (
            lambda: db.query("SELECT fail()"),
            lambda: db.query_one("SELECT fail()"),
            lambda: db.execute("INSERT INTO t (x) VALUES (fail())"),
            lambda: db.execute("SELECT fail()"),
        ):
            expected = sqlite3.OperationalError if raised is LookupError else raised
            with pytest.raises(expected):
                await use()
        # Nothing is left for others, whatever thread they come to.
        for _ in range(5):
            assert await db.query("SELECT 1") == [(1,)]
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                await db.query("SELECT * FROM missing")
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                await db.execute("INSERT INTO missing VALUES (1)")

    on(main, setup=set_up)


def test_reads_and_writes_in_blocks(on: On) -> None:
    async def main(db: Database) -> None:
        async with db.read() as reader:
            assert isinstance(reader, Connection)
            assert await reader.execute_fetchall("SELECT count(*) FROM t") == [(0,)]
            await db.execute("INSERT INTO t (x) VALUES (1)")
            assert await reader.execute_fetchall("SELECT count(*) FROM t") == [(0,)], "a snapshot"
            assert await db.query("SELECT count(*) FROM t") == [(1,)]
        async with db.write() as writer:
            assert writer.in_transaction
            await writer.execute("INSERT INTO t (x) VALUES (2)")
            assert await db.query("SELECT count(*) FROM t") == [(1,)]
        assert await db.query("SELECT count(*) FROM t") == [(2,)]
        with pytest.raises(LookupError):  # noqa: PT012
            async with db.write() as writer:
                await writer.execute("DELETE FROM t")
                raise LookupError
        assert await db.query("SELECT count(*) FROM t") == [(2,)]
        for kept in (reader, writer):
            with pytest.raises(sqlite3.ProgrammingError, match="given back at the end"):
                await kept.execute("SELECT 1")
            with pytest.raises(sqlite3.ProgrammingError, match="given back at the end"):
                _ = kept.in_transaction

    on(main)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "INSERT OR ROLLBACK INTO t VALUES (1, 1)"])
def test_a_block_whose_transaction_was_ended_says_so(on: On, end: str) -> None:
    async def main(db: Database) -> None:
        await db.execute("INSERT INTO t VALUES (1, 1)")

        async def write() -> None:
            async with db.write() as connection:
                with contextlib.suppress(sqlite3.IntegrityError):
                    await connection.execute(end)

        with pytest.raises(sqlite3.ProgrammingError, match=r"ended inside db\.write"):
            await write()
        await db.execute("INSERT INTO t VALUES (2, 2)")

    on(main)


def test_a_connection_that_comes_back_spoilt_is_replaced(on: On) -> None:
    async def main(db: Database) -> None:
        for spoil in ("close", "begin", "read", "return"):
            async with db.read() as connection:
                await connection.rollback()
                if spoil == "close":
                    await connection.close()
                elif spoil == "begin":
                    await connection.execute("BEGIN")
                elif spoil == "read":
                    kept = await connection.execute("SELECT 1 UNION ALL SELECT 2")
                    await kept.fetchone()
            assert await db.query("SELECT count(*) FROM t") == [(0,)]
        with pytest.raises(sqlite3.ProgrammingError):
            async with db.write() as connection:
                await connection.close()
        assert (await db.execute("INSERT INTO t (x) VALUES (1)")).rowcount == 1
        with pytest.raises(sqlite3.ProgrammingError, match="ended inside"):  # noqa: PT012
            async with db.write() as connection:
                await connection.commit()
                returned = await connection.execute("INSERT INTO t (x) VALUES (2), (3) RETURNING x")
        assert (await db.execute("DELETE FROM t WHERE x = 1")).rowcount == 1
        del returned

    on(main, readers=1)


def test_a_query_left_in_the_middle_keeps_no_snapshot(on: On) -> None:
    async def main(db: Database) -> None:
        await db.executemany("INSERT INTO t (x) VALUES (?)", [(i,) for i in range(100)])
        async with db.read() as connection:
            cursor = await connection.execute("SELECT x FROM t")
            assert await cursor.fetchone() == (0,)
        stream = db.stream("SELECT x FROM t", chunk_size=1)
        assert await anext(stream) == (0,)
        await stream.aclose()
        async with db.write() as connection:
            on_writer = await connection.execute("SELECT x FROM t")
            await on_writer.fetchone()
        await db.execute("DELETE FROM t")
        assert await db.query("SELECT x FROM t") == []
        await db.execute("INSERT INTO t (x) VALUES (1)")
        del cursor, on_writer

    on(main, readers=1)


@pytest.mark.parametrize(
    "sql",
    ["INSERT INTO t (x) VALUES (1)", "INSERT INTO t (x) VALUES (1) RETURNING x", "DELETE FROM t"],
)
def test_a_reader_does_not_write(on: On, sql: str) -> None:
    async def main(db: Database) -> None:
        async def in_block() -> None:
            async with db.read() as connection:
                await connection.execute(sql)

        async def in_stream() -> None:
            async for _ in db.stream(sql):
                pass

        for use in (lambda: db.query(sql), lambda: db.query_one(sql), in_block, in_stream):
            with pytest.raises(sqlite3.OperationalError) as caught:
                await use()
            assert "db.write()" in caught.value.__notes__[0]
        with pytest.raises(sqlite3.OperationalError, match="no such table") as caught:
            await db.query("SELECT * FROM missing")
        assert not getattr(caught.value, "__notes__", [])
        assert await db.query("SELECT * FROM t") == []

    on(main)


def test_a_failed_write_changes_nothing(on: On) -> None:
    async def main(db: Database) -> None:
        await db.execute("INSERT INTO t (x) VALUES (1)")
        with pytest.raises(sqlite3.IntegrityError):
            await db.execute("INSERT INTO t (x) VALUES (2), (1)")
        with pytest.raises(sqlite3.IntegrityError):
            await db.executemany("INSERT INTO t (x) VALUES (?)", [(2,), (1,)])
        with pytest.raises(ZeroDivisionError):
            await db.executemany("INSERT INTO t (x) VALUES (?)", ((1 / 0,) for _ in range(2)))
        with pytest.raises(sqlite3.ProgrammingError, match=r"needs db\.write"):
            await db.execute("BEGIN")
        with pytest.raises(sqlite3.OperationalError):
            await db.execute("COMMIT")
        assert await db.query("SELECT x FROM t") == [(1,)]

    on(main)


@pytest.mark.parametrize("durable_commit", ["group", "each", "shared"])
def test_writes_at_the_same_time_succeed_or_fail_as_if_alone(on: On, durable_commit: str) -> None:
    async def main(db: Database) -> None:
        await db.execute(
            "CREATE TABLE child (n, t REFERENCES t DEFERRABLE INITIALLY DEFERRED, CHECK (n < 1000))"
        )
        await db.execute("INSERT INTO t VALUES (1, 0)")

        async def outcome(sql: str, *parameters: object) -> str:
            try:
                answer = await db.execute(sql, parameters)
            except sqlite3.Error as error:
                return error.sqlite_errorname
            return f"{answer.rowcount}"

        kinds = [
            ("INSERT INTO t (x) VALUES (?)", "1"),
            ("INSERT INTO child VALUES (?, 1)", "1"),
            ("INSERT INTO child VALUES (?, 77777)", "SQLITE_CONSTRAINT_FOREIGNKEY"),
            ("INSERT INTO child VALUES (? + 1000, 1)", "SQLITE_CONSTRAINT_CHECK"),
            ("INSERT OR IGNORE INTO t VALUES (1, ?)", "0"),
            ("INSERT OR ROLLBACK INTO t VALUES (1, ?)", "SQLITE_CONSTRAINT_PRIMARYKEY"),
            ("INSERT OR FAIL INTO t VALUES (1, ?)", "SQLITE_CONSTRAINT_PRIMARYKEY"),
            ("INSERT INTO missing VALUES (?)", "SQLITE_ERROR"),
            ("UPDATE t SET x = 0 WHERE id = 1 AND ? IS NOT NULL", "1"),
        ]
        wanted = [(sql, i, expected) for i in range(1, 40) for sql, expected in kinds]
        outcomes = await asyncio.gather(*(outcome(sql, i) for sql, i, _ in wanted))
        assert outcomes == [expected for *_, expected in wanted]
        assert await db.query("SELECT count(*) FROM t") == [(40,)]
        assert await db.query("SELECT count(*) FROM child") == [(39,)]
        stats = db.stats()
        # What rolls all back makes each of its batch run alone, within the same batch.
        assert stats.batches <= stats.batched_writes
        if durable_commit == "each":
            assert stats.batches == stats.batched_writes

    on(main, durable_commit=durable_commit, profile="durable")


def test_writes_at_the_same_time_share_their_commits(on: On) -> None:
    async def main(db: Database) -> None:
        async with db.write():
            writes = [
                asyncio.ensure_future(db.execute("INSERT INTO t (x) VALUES (?)", (i,)))
                for i in range(100)
            ]
            await until(lambda: db.stats().writer_waiting == 100)
            before = db.stats()
        await asyncio.gather(*writes)
        after = db.stats()
        assert after.batched_writes - before.batched_writes == 100
        assert after.batches - before.batches < 50

    on(main)


def test_a_stream_fetches_no_more_than_is_asked_for(on: On) -> None:
    async def main(db: Database) -> None:
        made: list[int] = []

        def count(value: int) -> int:
            made.append(value)
            return value

        async with db.read() as connection:
            await connection.create_function("count_row", 1, count)
        rows = db.stream(
            NUMBERS.format(10_000).replace("SELECT i FROM", "SELECT count_row(i) FROM"),
            chunk_size=10,
        )
        assert await anext(rows) == (1,)
        await asyncio.sleep(0.01)
        assert len(made) <= 11
        assert db.stats().readers_lent == 1
        assert [(await anext(rows))[0] for _ in range(25)] == list(range(2, 27))
        assert len(made) <= 31
        await rows.aclose()
        await until(lambda: not db.stats().readers_lent)
        async with contextlib.aclosing(db.stream(NUMBERS.format(3))) as rows:
            assert [row async for row in rows] == [(1,), (2,), (3,)]
        with pytest.raises(ValueError, match="chunk_size must be at least 1, not 0"):
            await anext(db.stream("SELECT 1", chunk_size=0))
        assert [row async for row in db.stream("SELECT 1 WHERE ?", (0,))] == []
        with pytest.raises(LookupError):  # noqa: PT012
            async with contextlib.aclosing(db.stream(NUMBERS.format(3))) as rows:
                async for _ in rows:
                    raise LookupError

    on(main, readers=1)


def test_a_stream_that_is_dropped_gives_its_reader_back(on: On) -> None:
    async def main(db: Database) -> None:
        for _ in range(3):
            async for _ in db.stream(NUMBERS.format(1000), chunk_size=1):
                break
            assert await db.query("SELECT 1") == [(1,)]

    on(main, readers=1)


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


def test_many_small_results_do_not_hurry_a_long_one(on: On) -> None:
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

        async with Database(db._opener._path, readers=2, setup=set_up) as other:
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
        while db.stats().readers_waiting or db.stats().readers_lent:
            time.sleep(0.001)
        take_a_turn()
        await asyncio.gather(*queries)
        most = max(turns_of_ends.count(turn) for turn in turns_of_ends)
        assert most <= 8, turns_of_ends

    on(main)


def test_a_long_result_that_nobody_wants_is_not_made(on: On) -> None:
    async def main(db: Database) -> None:
        made = 0

        def make(_: object, row: tuple[int]) -> tuple[int]:
            nonlocal made
            made += 1
            return row

        def set_up(connection: sqlite3.Connection) -> None:
            connection.row_factory = make

        async with Database(db._opener._path, readers=2, setup=set_up) as other:
            query = asyncio.ensure_future(other.query(NUMBERS.format(200_000)))
            await until(lambda: made)
            query.cancel()
            with pytest.raises(asyncio.CancelledError):
                await query
            await other.query("SELECT 1")
        assert made < 100_000

    on(main)


@pytest.mark.parametrize("timeout", [0, 0.1])
def test_waiting_in_vain_names_the_task(run: Run[None], path: Path, timeout: float) -> None:
    async def main() -> None:
        async with Database(path, readers=1, timeout=timeout) as db:
            await db.execute("CREATE TABLE t (x)")
            for _ in range(20):  # what is free is had without waiting
                assert await db.query("SELECT 1") == [(1,)]
                async with db.read():
                    pass
                await db.execute("DELETE FROM t")
            begun, end = asyncio.Event(), asyncio.Event()

            async def hold() -> None:
                async with db.read(), db.write():
                    begun.set()
                    await end.wait()

            holder = asyncio.create_task(hold(), name="the holder")
            await begun.wait()

            async def block() -> None:
                async with db.read():
                    pass

            async def stream() -> None:
                async for _ in db.stream("SELECT 1"):
                    pass

            async def writing() -> None:
                async with db.write():
                    pass

            for use in (lambda: db.query("SELECT 1"), block, stream):
                with pytest.raises(oxlite.PoolTimeout, match=r"all 1 readers .*'the holder' for"):
                    await use()
            for use in (lambda: db.execute("DELETE FROM t"), writing, lambda: db.execute("VACUUM")):
                with pytest.raises(oxlite.LockedError, match="by task 'the holder' for") as caught:
                    await use()
                assert caught.value.sqlite_errorname == "SQLITE_BUSY"
            assert db.stats()[:4] == (0, 1, 0, 0)
            end.set()
            await holder
            assert await db.query("SELECT 1") == [(1,)]
            await db.execute("DELETE FROM t")

    run(main)


def test_waiting_for_queries_in_vain_counts_them(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with Database(path, readers=1, timeout=0.1) as db:
            async with background(db.query(ENDLESS)):
                await until(lambda: db.stats().readers_lent)
                with pytest.raises(oxlite.PoolTimeout, match="by 1 running queries"):
                    await db.query("SELECT 1")
            assert await db.query("SELECT 1") == [(1,)]

    run(main)


def test_a_lock_that_another_connection_has_is_named(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with Database(path, timeout=0.1) as db, oxlite.aio.connect(path) as other:
            await db.execute("CREATE TABLE t (x)")
            await other.execute("BEGIN IMMEDIATE")

            async def block() -> None:
                async with db.write():
                    pass

            for use in (lambda: db.execute("DELETE FROM t"), block):
                with pytest.raises(oxlite.LockedError, match="locked"):
                    await use()
            await other.rollback()
            await db.execute("DELETE FROM t")

    run(main)


def test_closing_refuses_further_use(run: Run[None], path: Path) -> None:
    async def main() -> None:
        db = await Database(path)
        await db.query("SELECT 1")
        await db.close()
        await db.close()

        async def block() -> None:
            async with db.read():
                pass

        async def stream() -> None:
            async for _ in db.stream("SELECT 1"):
                pass

        for use in (
            lambda: db.query("SELECT 1"),
            lambda: db.query_one("SELECT 1"),
            lambda: db.execute("DELETE FROM t"),
            lambda: db.execute("SELECT 1"),
            lambda: db.executemany("DELETE FROM t", []),
            block,
            stream,
            db.open,
        ):
            with pytest.raises(sqlite3.ProgrammingError, match="closed Database"):
                await use()
        assert not path.with_name("app.db-wal").exists(), "the last connection is closed"

    run(main)


def test_closing_waits_for_writes_and_sends_away_who_waits(run: Run[None], path: Path) -> None:
    async def main() -> None:
        db = await Database(path, readers=1, timeout=60)
        await db.execute("CREATE TABLE t (x)")
        begun, end = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with db.read(), db.write() as connection:
                begun.set()
                await end.wait()
                await connection.execute("INSERT INTO t VALUES (1)")

        async def block(kind: str) -> None:
            async with getattr(db, kind)():
                pass

        holder = asyncio.create_task(hold())
        await begun.wait()
        waiting = [
            asyncio.ensure_future(use)
            for use in (
                db.query("SELECT 1"),
                db.execute("INSERT INTO t VALUES (2)"),
                db.execute("VACUUM"),
                block("read"),
                block("write"),
            )
        ]
        await until(lambda: db.stats()[2:4] == (2, 3))
        closing = asyncio.ensure_future(db.close(timeout=60))
        for error in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(error, sqlite3.ProgrammingError)
            assert "closed Database" in str(error)
        end.set()
        await holder
        await closing
        async with Database(path) as again:
            assert await again.query("SELECT x FROM t") == [(1,)]

    run(main)


def test_closing_interrupts_in_the_end(run: Run[None], path: Path) -> None:
    async def main() -> None:
        for kind in ("query", "block", "stream", "execute"):
            db = await Database(path)

            async def block(db: Database = db) -> None:
                async with db.read() as connection:
                    await connection.execute(ENDLESS)

            async def stream(db: Database = db) -> None:
                async for _ in db.stream(ENDLESS):
                    pass

            works = {
                "query": db.query(ENDLESS),
                "block": block(),
                "stream": stream(),
                "execute": db.execute(ENDLESS),
            }
            reading = asyncio.ensure_future(works.pop(kind))
            for other in works.values():
                other.close()
            await asyncio.sleep(0.1)
            await db.close(timeout=0.05)
            with pytest.raises(sqlite3.OperationalError, match="interrupted"):
                await reading

    run(main)


def test_closing_tells_who_keeps_a_connection(run: Run[None], path: Path) -> None:
    async def main() -> None:
        db = Database(path)
        async with db.read() as connection:
            with pytest.raises(
                sqlite3.OperationalError, match=r"still in use after 0 s: readers by task"
            ):
                await db.close(timeout=0)
            assert await connection.execute_fetchall("SELECT 1") == [(1,)]
        assert not path.with_name("app.db-wal").exists(), "it was closed when it came back"

    run(main)


@pytest.mark.parametrize("bad", [":memory:", "", b":memory:"])
def test_a_database_in_memory_is_refused(bad: str | bytes) -> None:
    with pytest.raises(ValueError, match="needs a file"):
        Database(bad)


def test_bad_arguments_are_refused(run: Run[None], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="readers must be at least 1, not 0"):
        Database(tmp_path / "app.db", readers=0)
    with pytest.raises(TypeError, match="readrs"):
        Database(tmp_path / "app.db", readrs=1)  # type: ignore[call-arg]

    async def main() -> None:
        with pytest.raises(ValueError, match="unknown profile 'wab'; did you mean 'web'"):
            await Database(tmp_path / "app.db", profile="wab")
        assert not list(tmp_path.iterdir())
        with pytest.raises(sqlite3.OperationalError, match="unable to open"):
            async with Database(tmp_path / "missing" / "app.db"):
                pass

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
        await until(lambda: db.stats()[:4] == (2, 0, 0, 0))
        await db.close()

    run(end)
    assert errors == []


def test_the_planners_statistics_are_nobodys_error(on: On, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(db: Database) -> None:
        monkeypatch.setattr("oxlite.upkeep._LOOK_EVERY", 1)
        db._upkeep._until_look = 1
        for _ in range(50):
            await db.execute("INSERT INTO t (x) VALUES (hex(randomblob(16)))")
        await db.execute("CREATE INDEX i ON t (x)")
        db._upkeep._latest -= 10_000
        await db.execute("INSERT INTO t (x) VALUES (1)")
        assert not db._upkeep.is_due()
        # The writer is in use by another task: the write is acknowledged all the same.
        db._upkeep._latest -= 10_000
        async with db.write():
            write = asyncio.ensure_future(db.execute("INSERT INTO t (x) VALUES (2)"))
            await until(lambda: db.stats().writer_waiting)

            async def hold() -> None:
                async with db.write():
                    await write

            holder = asyncio.ensure_future(hold())
            await until(lambda: db.stats().writer_waiting == 2)
        assert (await write).rowcount == 1
        await holder

    on(main)


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


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_borrower_sets_ends_with_its_block(run: Run[None], path: Path, fails: bool) -> None:
    def set_up(connection: sqlite3.Connection) -> None:
        connection.row_factory = lambda cursor, row: [*row]

    async def main() -> None:
        async with Database(path, readers=1, setup=set_up) as db:
            await db.execute("CREATE TABLE t (x)")
            for borrow in (db.read, db.write):
                try:
                    async with borrow() as connection:
                        connection.row_factory = sqlite3.Row
                        connection.text_factory = bytes
                        connection.isolation_level = "EXCLUSIVE"
                        if fails:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    pass
                async with borrow() as again:
                    assert again.isolation_level is None
                    assert await again.execute_fetchall("SELECT 'a'") == [["a"]]
            assert await db.query("SELECT 'a'") == [["a"]]
            inserted = await db.execute("INSERT INTO t VALUES ('a') RETURNING x")
            assert inserted.rows == [["a"]]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                await db.query("INSERT INTO t VALUES ('b')")

    run(main)


def test_a_query_begins_and_ends_no_transaction(run: Run[None], path: Path) -> None:
    async def main() -> None:
        async with Database(path, readers=1) as db:
            for query in (db.query, db.query_one):
                for sql in ("BEGIN", "-- a\n/* b */ savepoint s"):
                    with pytest.raises(sqlite3.ProgrammingError, match=r"needs db\.read\(\)"):
                        await query(sql)
                for sql in ("COMMIT", "ROLLBACK"):
                    with pytest.raises(sqlite3.OperationalError):
                        await query(sql)
            assert await db.query("SELECT 1 WHERE 0") == []
            assert await db.query_one("SELECT 1 WHERE 0") is None

    run(main)
