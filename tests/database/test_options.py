"""How a ``Database`` is made, and what its connections are like."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.database.conftest import On
from tests.database.faces import Either, Face

import oxlite
from oxlite import sqlite3


@pytest.mark.parametrize("text_factory", [str, bytes])
def test_every_connection_is_set_up(on: On, face: Face, text_factory: type) -> None:
    seen = []

    def set_up(connection: oxlite.Connection) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        assert is_main == (face.who == "thread")
        seen.append(connection)
        connection.create_function("twice", 1, lambda x: 2 * x)
        connection.execute("ATTACH ':memory:' AS other")
        connection.row_factory = sqlite3.Row
        connection.text_factory = text_factory

    text = "a" if text_factory is str else b"a"

    async def case(db: Either) -> None:
        (row,) = await db.query("SELECT twice(3) AS n, 'a' AS a")
        assert (row["n"], row["a"]) == (6, text)
        assert (await db.query_one("SELECT 'a' AS a"))["a"] == text
        answer = await db.execute("INSERT INTO t (x) VALUES (twice(2)) RETURNING x, 'a' AS a")
        assert [tuple(row) for row in answer.rows] == [(4, text)]
        await db.execute("CREATE TABLE other.u AS SELECT twice(4) AS n")
        async with db.read() as first, db.read() as second:
            assert (await second.execute_fetchall("SELECT twice(4) AS n"))[0]["n"] == 8
            assert (await first.execute_fetchall("SELECT twice(4) AS n"))[0]["n"] == 8
        async for row in db.stream("SELECT 'a' AS a"):
            assert row["a"] == text

    on(case, setup=set_up)
    assert len(set(seen)) == 3


def test_a_row_factory_makes_all_rows(on: On, face: Face, path: Path) -> None:
    async def case(db: Either) -> None:
        await db.execute("INSERT INTO t (x) VALUES (5)")
        assert (await db.query("SELECT x FROM t"))[0]["x"] == 5
        assert (await db.query_one("SELECT x FROM t"))["x"] == 5
        assert [row["x"] async for row in db.stream("SELECT x FROM t")] == [5]
        returned = await db.execute("INSERT INTO t (x) VALUES (6) RETURNING x")
        assert returned.rows[0]["x"] == 6
        for block in (db.read, db.write):
            async with block() as connection:
                assert (await connection.execute_fetchall("SELECT x FROM t"))[0]["x"] == 5
                connection.row_factory = None
            async with block() as connection:
                assert (await connection.execute_fetchall("SELECT x FROM t"))[0]["x"] == 5

    on(case, readers=1, row_factory=sqlite3.Row)

    def set_up(connection: oxlite.Connection) -> None:
        assert connection.row_factory is sqlite3.Row
        connection.row_factory = None

    async def later() -> None:
        async with face.opened(path, row_factory=sqlite3.Row, setup=set_up) as db:
            assert await db.query("SELECT x FROM t") == [(5,), (6,)]

    face.run(later)


@pytest.mark.parametrize("profile", ["web", "stock"])
@pytest.mark.parametrize("busy", [None, "none", "backoff", "fair", "gate"])
def test_a_lock_is_waited_for_as_is_said(
    on: On, path: Path, profile: str, busy: str | None
) -> None:
    async def case(db: Either) -> None:
        async with db.read() as reader, db.write() as writer:
            for connection in (reader, writer):
                assert await connection.run_sync(lambda c: c.busy) == (busy or "gate")
        if busy == "none":
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                await db.execute("INSERT INTO t (x) VALUES (1)")  # with 60 s of time
            other.close()
        await db.execute("INSERT INTO t (x) VALUES (1)")

    on(case, profile=profile, timeout=60, **({} if busy is None else {"busy": busy}))


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_borrower_sets_ends_with_its_block(on: On, fails: bool) -> None:
    def set_up(connection: sqlite3.Connection) -> None:
        connection.row_factory = lambda cursor, row: [*row]

    async def case(db: Either) -> None:
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
        inserted = await db.execute("INSERT INTO t (x) VALUES ('a') RETURNING x")
        assert inserted.rows == [["a"]]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await db.query("INSERT INTO t (x) VALUES ('b')")

    on(case, readers=1, setup=set_up)


def test_a_set_up_that_fails_is_tried_again(face: Face, path: Path) -> None:
    fails = [False, True, False, True]

    def set_up(_: oxlite.Connection) -> None:
        if fails.pop():
            raise LookupError

    async def main() -> None:
        with pytest.raises(LookupError):
            await face.open(path, readers=1, setup=set_up)
        async with face.opened(path, readers=1, setup=set_up) as db:
            with pytest.raises(LookupError):
                await db.query("SELECT 1")
            assert await db.query("SELECT 1") == [(1,)]

    face.run(main)
    assert fails == []


@pytest.mark.parametrize("raised", [LookupError, KeyboardInterrupt])
def test_what_a_function_raises_belongs_to_its_statement(
    on: On, raised: type[BaseException]
) -> None:
    def fail() -> None:
        raise raised("why")

    def set_up(connection: oxlite.Connection) -> None:
        connection.create_function("fail", 0, fail)

    async def case(db: Either) -> None:
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

    on(case, setup=set_up)


def test_adapters_and_converters_are_used(on: On) -> None:
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    sqlite3.register_adapter(Point, lambda point: f"point {point.x}")
    sqlite3.register_converter("contract_point", lambda text: Point(int(text.split()[1])))

    async def case(db: Either) -> None:
        await db.execute("CREATE TABLE u (p contract_point)")
        answer = await db.execute("INSERT INTO u VALUES (?) RETURNING p", (Point(3),))
        assert answer.rows[0][0].x == 3
        assert (await db.query_one("SELECT p FROM u"))[0].x == 3
        assert [row[0].x async for row in db.stream("SELECT p FROM u")] == [3]
        (row,) = await db.query("SELECT p FROM u WHERE p = ?", (Point(3),))
        assert row[0].x == 3

    on(case, detect_types=sqlite3.PARSE_DECLTYPES)
    del sqlite3.adapters[Point, sqlite3.PrepareProtocol]
    del sqlite3.converters["CONTRACT_POINT"]


@pytest.mark.parametrize("profile", ["stock", "durable"])
def test_any_profile_will_do(on: On, profile: str) -> None:
    async def case(db: Either) -> None:
        assert await db.query("SELECT * FROM t") == []
        assert db.stats().admissions == 1

    on(case, profile=profile)


@pytest.mark.parametrize("bad", [":memory:", "", b":memory:"])
def test_a_database_in_memory_is_refused(face: Face, bad: str | bytes) -> None:
    with pytest.raises(ValueError, match="needs a file"):
        face.database(bad)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"readers": 0}, ValueError, "readers must be at least 1, not 0"),
        ({"readrs": 1}, TypeError, "readrs"),
        ({"durable_commit": "some"}, ValueError, "durable_commit|durable commit"),
        ({"profile": "wab"}, ValueError, "unknown profile 'wab'; did you mean 'web'"),
        ({"busy": "fare"}, ValueError, "unknown busy policy 'fare'; did you mean 'fair'"),
        ({"journal": "kep"}, ValueError, "did you mean 'keep'"),
        ({"pragmas": {"synchronos": 1}}, ValueError, "did you mean 'synchronous'"),
        ({"statement_timeout": 0}, ValueError, "statement_timeout"),
        ({"timeout": float("nan")}, ValueError, "NaN"),
    ],
)
def test_bad_arguments_touch_no_file(
    face: Face, tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    async def main() -> None:
        with pytest.raises(error, match=message):
            await face.open(tmp_path / "app.db", **options)

    face.run(main)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_opened_is_told_at_once(face: Face, tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(sqlite3.OperationalError, match="unable to open"):
            await face.open(tmp_path / "missing" / "app.db")

    face.run(main)


def test_it_stays_where_it_was_made(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with face.opened("app.db") as db:
            (tmp_path / "elsewhere").mkdir()
            monkeypatch.chdir("elsewhere")
            await db.execute("CREATE TABLE t (x)")
            assert await db.query("SELECT * FROM t") == []

    face.run(main)
    assert (tmp_path / "app.db").exists()


PathOf = Callable[[Path], object]


@pytest.mark.parametrize("path_of", [str, lambda path: str(path).encode(), lambda path: path])
def test_a_path_is_text_or_bytes_or_a_path(face: Face, path: Path, path_of: PathOf) -> None:
    async def main() -> None:
        async with face.opened(path_of(path)) as db:
            await db.execute("CREATE TABLE t (x)")

    face.run(main)
    assert path.exists()


@pytest.mark.parametrize("name", ["setup", "row_factory"])
def test_what_is_no_function_is_refused_before_there_is_a_file(
    face: Face, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "new.db"
    with pytest.raises(TypeError, match=f"{name} takes a function, not int"):
        face.database(path, **{name: 3})
    assert not path.exists()
