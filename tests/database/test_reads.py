"""Queries, snapshots and streams: on readers, which cannot write."""

import contextlib
from pathlib import Path

import pytest
from tests.database.conftest import On
from tests.database.faces import Either, Face

from oxlite import sqlite3

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) SELECT i FROM n"


class OnlySequence:
    """Parameters that only the driver can take, one after the other."""

    def __init__(self, *values: object) -> None:
        self._values = values

    def __len__(self) -> int:  # noqa: D105
        return len(self._values)

    def __getitem__(self, index: int) -> object:  # noqa: D105
        return self._values[index]


def test_queries_see_what_was_written(on: On) -> None:
    async def case(db: Either) -> None:
        await db.execute("INSERT INTO t (x) VALUES ('a'), ('b')")
        assert await db.query("SELECT x FROM t WHERE x > ?", ("",)) == [("a",), ("b",)]
        assert await db.query_one("SELECT x FROM t WHERE x = :x", {"x": "b"}) == ("b",)
        assert await db.query_one("SELECT x FROM t WHERE x = 'c'") is None
        assert [row async for row in db.stream("SELECT x FROM t ORDER BY x")] == [("a",), ("b",)]

    on(case)


def test_parameters_are_as_for_the_driver(on: On) -> None:
    async def case(db: Either) -> None:
        await db.execute("CREATE TABLE u (x)")
        await db.execute("INSERT INTO t (x) VALUES (1)")
        # The row id is the same as that of the insert before, in another table.
        only = OnlySequence("only")
        assert await db.execute("INSERT INTO u VALUES (?)", only) == (1, 1, [])
        assert await db.execute("UPDATE u SET x = ?", only) == (1, None, [])
        assert await db.query("SELECT ?", only) == [("only",)]
        assert await db.query_one("SELECT ?", only) == ("only",)
        assert [row async for row in db.stream("SELECT ?", only)] == [("only",)]
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
            # Since Python 3.14 a parameter with a name takes nothing out of a sequence.
            statement = "SELECT :a" if isinstance(bad, dict) else "SELECT ?"
            for use in (db.query, db.query_one, db.execute):
                with pytest.raises(error):
                    await use(statement, bad)
            with pytest.raises(error):
                await anext(db.stream(statement, bad))
            with pytest.raises(error):
                await db.execute("INSERT INTO u VALUES (:a)", bad)
        with pytest.raises(TypeError):
            await db.query(1)
        assert await db.query("SELECT count(*) FROM u") == [(1,)]

    on(case)


def test_a_block_is_one_snapshot(on: On) -> None:
    async def case(db: Either) -> None:
        async with db.read() as connection:
            assert await connection.execute_fetchall("SELECT count(*) FROM t") == [(0,)]
            await db.execute("INSERT INTO t (x) VALUES (1)")
            assert await connection.execute_fetchall("SELECT count(*) FROM t") == [(0,)]
            assert await db.query("SELECT count(*) FROM t") == [(1,)], "another reader"
        assert await db.query("SELECT count(*) FROM t") == [(1,)]

    on(case)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (x) VALUES (1)",
        "INSERT INTO t (x) VALUES (1) RETURNING x",
        "DELETE FROM t",
        "CREATE TABLE u (x)",
    ],
)
def test_a_reader_does_not_write(on: On, sql: str) -> None:
    async def case(db: Either) -> None:
        async def in_block() -> None:
            async with db.read() as connection:
                await connection.execute(sql)

        async def in_stream() -> None:
            async for _ in db.stream(sql):
                pass

        for use in (lambda: db.query(sql), lambda: db.query_one(sql), in_block, in_stream):
            with pytest.raises(sqlite3.OperationalError) as caught:
                await use()
            assert caught.value.sqlite_errorname == "SQLITE_READONLY"
            assert "db.write()" in caught.value.__notes__[0]
        with pytest.raises(sqlite3.OperationalError, match="no such table") as caught:
            await db.query("SELECT * FROM missing")
        assert not getattr(caught.value, "__notes__", [])
        assert await db.query("SELECT name FROM sqlite_schema WHERE type = 'table'") == [("t",)]
        assert await db.query("SELECT * FROM t") == []

    on(case)


@pytest.mark.parametrize("sql", ["BEGIN", "-- a\n/* b */ savepoint s", "COMMIT", "ROLLBACK"])
def test_a_query_begins_and_ends_no_transaction(on: On, sql: str) -> None:
    async def case(db: Either) -> None:
        async def in_stream(sql: str) -> None:
            async for _ in db.stream(sql):
                pass

        for query in (db.query, db.query_one, in_stream):
            if sql in {"COMMIT", "ROLLBACK"}:
                with pytest.raises(sqlite3.OperationalError):
                    await query(sql)
            else:
                with pytest.raises(sqlite3.ProgrammingError, match=r"needs db\.read\(\)"):
                    await query(sql)
        assert await db.query("SELECT x FROM t") == []
        assert await db.query_one("SELECT x FROM t") is None
        assert [row async for row in db.stream("SELECT x FROM t")] == []

    on(case, readers=1)


def test_a_stream_fetches_no_more_than_is_asked_for(on: On, face: Face) -> None:
    made: list[int] = []

    def count(value: int) -> int:
        made.append(value)
        return value

    def set_up(connection: sqlite3.Connection) -> None:
        connection.create_function("count_row", 1, count)

    async def case(db: Either) -> None:
        rows = db.stream(
            NUMBERS.format(10_000).replace("SELECT i FROM", "SELECT count_row(i) FROM"),
            chunk_size=10,
        )
        assert await anext(rows) == (1,)
        await face.sleep(0.01)
        assert len(made) <= 11
        assert db.stats().readers_lent == 1
        assert [(await anext(rows))[0] for _ in range(25)] == list(range(2, 27))
        assert len(made) <= 31
        await rows.aclose()
        await face.until(lambda: not db.stats().readers_lent)
        async with contextlib.aclosing(db.stream(NUMBERS.format(3))) as rows:
            assert [row async for row in rows] == [(1,), (2,), (3,)]
        with pytest.raises(ValueError, match="chunk_size must be at least 1, not 0"):
            await anext(db.stream("SELECT 1", chunk_size=0))
        assert [row async for row in db.stream("SELECT 1 WHERE ?", (0,))] == []
        with pytest.raises(LookupError):  # noqa: PT012
            async with contextlib.aclosing(db.stream(NUMBERS.format(3))) as rows:
                async for _ in rows:
                    raise LookupError

    on(case, readers=1, setup=set_up)


def test_a_stream_is_one_snapshot(on: On) -> None:
    async def case(db: Either) -> None:
        await db.executemany("INSERT INTO t (x) VALUES (?)", [(i,) for i in range(100)])
        seen = []
        async for (x,) in db.stream("SELECT x FROM t ORDER BY id", chunk_size=7):
            if x == 3:
                await db.execute("DELETE FROM t")
            seen.append(x)
        assert seen == list(range(100))
        assert await db.query("SELECT * FROM t") == []

    on(case)


def test_a_stream_that_is_dropped_gives_its_reader_back(on: On) -> None:
    async def case(db: Either) -> None:
        for _ in range(3):
            async for _ in db.stream(NUMBERS.format(1000), chunk_size=1):
                break
            assert await db.query("SELECT 1") == [(1,)]

    on(case, readers=1)


def test_a_query_left_in_the_middle_keeps_no_snapshot(on: On, path: Path) -> None:
    async def case(db: Either) -> None:
        await db.executemany("INSERT INTO t (x) VALUES (?)", [(i,) for i in range(100)])
        async with db.read() as connection:
            reading = await connection.execute("SELECT x FROM t")
            assert await reading.fetchone() == (0,)
        stream = db.stream("SELECT x FROM t", chunk_size=1)
        assert await anext(stream) == (0,)
        await stream.aclose()
        async with db.write() as connection:
            on_writer = await connection.execute("SELECT x FROM t")
            assert await on_writer.fetchone() == (0,)
        other = sqlite3.connect(path)
        with other:
            other.execute("DELETE FROM t")
        other.close()
        assert await db.query("SELECT * FROM t") == []
        await db.execute("INSERT INTO t (x) VALUES (1)")
        with pytest.raises(sqlite3.ProgrammingError, match="ended inside"):  # noqa: PT012
            async with db.write() as connection:
                await connection.commit()
                returned = await connection.execute("INSERT INTO t (x) VALUES (2), (3) RETURNING x")
        assert (await db.execute("DELETE FROM t WHERE x = 1")).rowcount == 1
        del reading, on_writer, returned

    on(case, readers=1)


def test_a_connection_that_comes_back_spoilt_is_replaced(on: On) -> None:
    async def case(db: Either) -> None:
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

    on(case, readers=1)
