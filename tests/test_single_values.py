"""A scalar of numpy's or ctypes', at the production doors: the number that it is, not its bytes.

The drop-in module stores what the standard library stores: ``tests/sqlite3/test_types.py``.
"""

import array
import asyncio
import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest
import sqlalchemy

import oxlite
import oxlite.aio

Door = Callable[[Path, object], object]


def by_connection(path: Path, value: object) -> object:
    connection = oxlite.connect(path)
    try:
        return connection.execute("SELECT ?", (value,)).fetchone()[0]
    finally:
        connection.close()


def by_name(path: Path, value: object) -> object:
    connection = oxlite.connect(path)
    try:
        return connection.execute("SELECT :value", {"value": value}).fetchone()[0]
    finally:
        connection.close()


def by_many(path: Path, value: object) -> object:
    connection = oxlite.connect(path)
    try:
        connection.execute("CREATE TABLE t(a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,)])
        return connection.execute("SELECT a FROM t").fetchone()[0]
    finally:
        connection.close()


def by_function(path: Path, value: object) -> object:
    connection = oxlite.connect(path)
    try:
        connection.create_function("f", 0, lambda: value)
        return connection.execute("SELECT f()").fetchone()[0]
    except oxlite.sqlite3.OperationalError as error:
        # What a function raises is an error of SQL's.
        raise oxlite.sqlite3.ProgrammingError(str(error)) from error
    finally:
        connection.close()


def by_database(path: Path, value: object) -> object:
    with oxlite.Database(path) as database:
        database.execute("CREATE TABLE t(a, b)")
        database.execute("INSERT INTO t VALUES (?, 1)", (value,))
        database.executemany("INSERT INTO t VALUES (:a, 2)", [{"a": value}])
        (one,), (two,) = database.query("SELECT a FROM t WHERE a IS ? ORDER BY b", (value,))
        assert one == two
        return one


def by_event_loop(path: Path, value: object) -> object:
    async def ask() -> object:
        async with oxlite.aio.Database(path) as database:
            await database.execute("CREATE TABLE t(a)")
            await database.execute("INSERT INTO t VALUES (?)", (value,))
            rows = await database.query("SELECT a FROM t WHERE a IS ?", (value,))
        async with oxlite.aio.connect(path) as connection:
            cursor = await connection.execute("SELECT a FROM t WHERE a IS ?", (value,))
            assert await cursor.fetchall() == rows
        return rows[0][0]

    return asyncio.run(ask())


def by_sqlalchemy(path: Path, value: object) -> object:
    engine = sqlalchemy.create_engine(f"sqlite+oxlite:///{path}")
    try:
        with engine.connect() as connection:
            return connection.execute(sqlalchemy.text("SELECT :value"), {"value": value}).scalar()
    except sqlalchemy.exc.ProgrammingError as error:
        raise error.orig or error from error
    finally:
        engine.dispose()


DOORS = [
    by_connection,
    by_name,
    by_many,
    by_function,
    by_database,
    by_event_loop,
    by_sqlalchemy,
]


@pytest.fixture(params=DOORS, ids=lambda door: door.__name__)
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[object], object]]:
    """Binds a value at one of the doors, and reads it back."""
    counter = iter(range(100))

    def through(value: object) -> object:
        return request.param(tmp_path / f"{next(counter)}.db", value)

    return through


def test_a_number_is_stored_as_that_number(door: Callable[[object], object]) -> None:
    for value, expected in [
        (numpy.int64(-5), -5),
        (numpy.uint8(200), 200),
        (numpy.uint64(7), 7),
        (numpy.bool_(True), 1),
        (numpy.float32(0.5), 0.5),
        (numpy.float16(0.25), 0.25),
        (numpy.float64(1.5), 1.5),
        (numpy.array(3), 3),
        (ctypes.c_int(-1), -1),
        (ctypes.c_double(2.5), 2.5),
        (ctypes.c_bool(True), 1),
    ]:
        found = door(value)
        assert found == expected
        assert type(found) in {int, float}


@pytest.mark.parametrize(
    "value",
    [
        numpy.datetime64("2020-01-01"),
        numpy.timedelta64(1, "D"),
        numpy.complex128(1),
        numpy.longdouble(1),
        numpy.void(b"ab"),
        numpy.zeros(1, dtype="i4,f8")[0],
        ctypes.c_char(b"a"),
        ctypes.c_void_p(1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_number_of_sqlite_is_refused(tmp_path: Path, value: object) -> None:
    text = r"no number that SQLite has.*bind value\.item\(\), str\(value\) or bytes\(value\)"
    for number, door in enumerate(DOORS):
        if door is by_function:
            continue  # SQLite tells its own text alone, as of any exception in a function
        with pytest.raises(oxlite.sqlite3.ProgrammingError, match=text):
            door(tmp_path / f"{number}.db", value)
    with pytest.raises(oxlite.sqlite3.ProgrammingError, match="raised exception"):
        by_function(tmp_path / "function.db", value)


def test_a_number_beyond_64_bits_overflows(tmp_path: Path) -> None:
    with pytest.raises(OverflowError, match="too large to convert to SQLite INTEGER"):
        by_connection(tmp_path / "t.db", numpy.uint64(2**63))


def test_bytes_are_bytes(door: Callable[[object], object]) -> None:
    """What has dimensions is data: vectors are stored so."""
    vector = numpy.array([1, 2], dtype=numpy.float32)
    for value in [
        vector,
        array.array("f", [1, 2]),
        memoryview(vector),
        bytearray(vector.tobytes()),
    ]:
        assert door(value) == vector.tobytes()
    assert door(numpy.bytes_(b"a")) == b"a"


def test_an_adapter_goes_first(tmp_path: Path) -> None:
    class Length:
        """Adapted to a scalar."""

        def __conform__(self, protocol: object) -> object:
            """Say what it is as a scalar."""
            return numpy.float32(1.5)

    with oxlite.Database(tmp_path / "t.db") as database:
        assert database.query("SELECT ?", (Length(),)) == [(1.5,)]


def test_an_adapter_is_asked_once(tmp_path: Path) -> None:
    """Also where a single value stands beside it."""
    asked = []

    class Counting:
        """Adapted to how often it was asked."""

        def __conform__(self, protocol: object) -> object:
            """Count."""
            asked.append(self)
            return len(asked)

    async def write() -> None:
        async with oxlite.aio.Database(tmp_path / "t.db") as database:
            await database.execute("INSERT INTO t VALUES (?, ?)", (Counting(), numpy.int64(7)))
            await database.query("SELECT ?, ?", (Counting(), numpy.int64(7)))

    with oxlite.Database(tmp_path / "t.db") as database:
        database.execute("CREATE TABLE t(a, b)")
        database.execute("INSERT INTO t VALUES (?, ?)", (Counting(), numpy.int64(7)))
        asyncio.run(write())
        assert database.query("SELECT a, b FROM t") == [(1, 7), (2, 7)]
    assert len(asked) == 3


def test_without_a_production_profile_it_is_as_in_the_standard_library(tmp_path: Path) -> None:
    value = numpy.int64(1)
    connection = oxlite.connect(tmp_path / "t.db", profile="stock")
    assert connection.execute("SELECT ?", (value,)).fetchone() == (value.tobytes(),)
    connection.close()
    with oxlite.Database(tmp_path / "t.db", profile="stock") as database:
        assert database.query("SELECT ?", (value,)) == [(value.tobytes(),)]
