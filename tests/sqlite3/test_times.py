"""Dates and times, and the module's second name ``dbapi2``: what PEP 249 wants beside a driver."""

import datetime
import random
import sqlite3 as standard
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oxlite import sqlite3
from oxlite.sqlite3 import dbapi2, times

IS_DEPRECATED = sys.version_info >= (3, 12)

DATES = [
    "2024-02-29", "2024-1-2", "24-1-2", "02024-01-02", " 2024-01-02\n", "2024- 1- 2", "+2024-1-2",
    "2_024-1-2", "2024\t-1-2", "0001-01-01", "9999-12-31",
    "-2024-1-2", "2024-01", "2024", "2024-01-02-03", "2024/01/02", "20240102", "2024-W01-1",
    "2024-01-02T00", "2024-01-02 03:04:05", "2024-13-01", "2023-02-29", "10000-1-1", "0000-01-01",
    "٢٠٢٤-01-02", "a-b-c", "--", "-", " ", "\xa02024-1-2", "\x1c2024-1-2", "2024-1-2\0",
    "2024-1-0x2", "2024-1-1e0", b"\xff-1-1",
]  # fmt: skip

TIMESTAMPS = [
    "2024-02-29 03:04:05", "2024-02-29 03:04:05.1", "2024-02-29 03:04:05.12",
    "2024-02-29 03:04:05.123456", "2024-02-29 03:04:05.1234567", "2024-02-29 03:04:05.999999999999",
    "2024-02-29 03:04:05.", "2024-1-2 3:4:5", "2024-1-2 3:4:5.6", "2024-02-29 03:04:05.1.2",
    "2024-02-29 03:04:05.+5", "2024-02-29 03:04:05.1_2", "2024-02-29 03:04:05.\t",
    "2024-02-29 03:04:05.٣", "2024-02-29 03:04:05.123456-05:00", "2024-02-29 03:04:05.123456x",
    "2024-02-29 00:00:00", "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00",
    "2024-02-29T03:04:05", "2024-02-29", "2024-02-29 03:04", "2024-02-29 03:04:05:06", "x", " ",
    "2024-02-29 03:04:05 ", " 2024-02-29 03:04:05", "2024-02-29  03:04:05", "2024-02-29\t03:04:05",
    "2024-02-29 03:04:05+00:00", "2024-02-29 03:04:05-05:00", "2024-02-29 03:04:05.5+01:00",
    "2024-02-29 03:04:05Z", "2024-02-29 03:04:05.5Z", "2024-02-29 03:04+01", "2024-W01-1 03:04:05",
    "2024-02-29 03:04:05.x", "2024-02-29 03:04:05.-5", "2024-02-29 03:04:05. 5",
    "2024-02-29 03:04:05,5", "2024-02-29 24:00:00", "2024-02-29 25:00:00", "2024-02-29 03:60:00",
    "2024-02-29 03:04:60", "2023-02-29 03:04:05", "2024-02-29 03.5:04:05", "2024-02-29 .5",
    "2024-02 03:04:05", "2024-02-29-01 03:04:05", "0000-01-01 00:00:00", "2024-02-29 03:04:05\0",
    b"2024-02-29 03:04:05.\xff", b"\xff 03:04:05",
]  # fmt: skip


@pytest.fixture(scope="module")
def standards() -> Iterator[Callable[[str, bytes], object]]:
    """The standard library's converter of a declared type."""
    connection = standard.connect(":memory:", detect_types=standard.PARSE_COLNAMES)

    def convert(declared: str, value: bytes) -> object:
        return connection.execute(f'SELECT ? AS "x [{declared}]"', (value,)).fetchone()[0]

    yield convert
    connection.close()


def outcome(convert: Callable[..., object], *arguments: object) -> object:
    """What a converter returns, or the class of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return convert(*arguments)
        except Exception as error:
            return type(error)


@pytest.mark.parametrize("text", DATES, ids=ascii)
def test_a_date_is_read_as_the_standard_library_reads_it(
    standards: Callable[[str, bytes], object], text: str | bytes
) -> None:
    value = text.encode() if isinstance(text, str) else text
    assert outcome(times.convert_date, value) == outcome(standards, "date", value)


@pytest.mark.parametrize("text", TIMESTAMPS, ids=ascii)
def test_a_timestamp_is_read_as_the_standard_library_reads_it(
    standards: Callable[[str, bytes], object], text: str | bytes
) -> None:
    value = text.encode() if isinstance(text, str) else text
    assert outcome(times.convert_timestamp, value) == outcome(standards, "timestamp", value)


@pytest.mark.parametrize("seed", range(5))
def test_damaged_values_are_read_as_the_standard_library_reads_them(
    standards: Callable[[str, bytes], object], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(400):
        text = bytearray(b"2024-02-29 03:04:05.123456"[: chance.choice([10, 19, 21, 23, 26])])
        for _ in range(chance.randrange(4)):
            place = chance.randrange(len(text))
            replacement = bytes(chance.choices(b"0123456789-: .+T_W\t\xc3", k=chance.randrange(3)))
            text[place : place + 1] = replacement
        value = bytes(text) or b"-"
        for declared, convert in (
            ("date", times.convert_date),
            ("timestamp", times.convert_timestamp),
        ):
            assert outcome(convert, value) == outcome(standards, declared, value), value


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 30, 1, 5),
        datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC),
        datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-5.5))),
    ],
)
@pytest.mark.filterwarnings("ignore:The default:DeprecationWarning")
def test_what_is_stored(value: datetime.datetime) -> None:
    """The standard library's own connection tells what it stores."""
    connection = standard.connect(":memory:")
    stored = connection.execute("SELECT ?, ?", (value, value.date())).fetchone()
    connection.close()
    assert (times.adapt_datetime(value), times.adapt_date(value.date())) == stored
    naive = value.replace(tzinfo=None)
    assert times.convert_timestamp(times.adapt_datetime(naive).encode()) == naive
    assert times.convert_date(times.adapt_date(value.date()).encode()) == value.date()


@pytest.mark.parametrize(
    ("function", "value", "name"),
    [
        (times.adapt_date, datetime.date(2024, 2, 29), "date adapter"),
        (times.adapt_datetime, datetime.datetime(2024, 2, 29), "datetime adapter"),
        (times.convert_date, b"2024-02-29", "date converter"),
        (times.convert_timestamp, b"2024-02-29 03:04:05", "timestamp converter"),
    ],
)
def test_they_are_deprecated_at_the_line_of_the_caller(
    function: Callable[[Any], object], value: object, name: str
) -> None:
    """``map`` calls them as the extension does: from native code, which has no frame."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        next(map(function, [value])); line = sys._getframe().f_lineno  # fmt: skip # noqa: E702
    found = [(entry.category, entry.filename, entry.lineno) for entry in caught]
    assert found == ([(DeprecationWarning, __file__, line)] if IS_DEPRECATED else [])
    for entry in caught:
        assert str(entry.message) == (
            f"The default {name} is deprecated as of Python 3.12; "
            "see the sqlite3 documentation for suggested replacement recipes"
        )


def test_every_connection_begins_with_them() -> None:
    """And warns at the line of the statement, as the standard library does."""
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, 1, 5)
    connection = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
    connection.execute("CREATE TABLE t(a date, b timestamp)")
    here = sys._getframe()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lines = [here.f_lineno + 1] * 2
        connection.execute("INSERT INTO t VALUES (?, ?)", (day, moment))
        lines += [here.f_lineno + 1] * 2
        assert connection.execute("SELECT * FROM t").fetchall() == [(day, moment)]
    connection.close()
    assert {entry.filename for entry in caught} <= {__file__}
    assert [entry.lineno for entry in caught] == (lines if IS_DEPRECATED else [])


@pytest.mark.skipif(not IS_DEPRECATED, reason="the standard library does not warn yet")
def test_the_warnings_are_the_standard_librarys(
    standards: Callable[[str, bytes], object],
) -> None:
    def messages(function: Callable[..., object], *arguments: object) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(*arguments)
        return [str(entry.message) for entry in caught]

    day, moment = b"2024-02-29", b"2024-02-29 03:04:05"
    assert messages(times.convert_date, day) == messages(standards, "date", day)
    assert messages(times.convert_timestamp, moment) == messages(standards, "timestamp", moment)


def test_constructors() -> None:
    assert sqlite3.Date(2024, 2, 29) == datetime.date(2024, 2, 29)
    assert sqlite3.Time(12, 30, 1) == datetime.time(12, 30, 1)
    assert sqlite3.Timestamp(2024, 2, 29, 12, 30) == datetime.datetime(2024, 2, 29, 12, 30)


def test_constructors_from_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Etc/GMT-5")  # five hours east
    time.tzset()
    try:
        ticks = 1709164800.75  # 2024-02-29 00:00:00.75 in UTC
        assert sqlite3.DateFromTicks(ticks) == datetime.date(2024, 2, 29)
        assert sqlite3.DateFromTicks(ticks - 1) == datetime.date(2024, 2, 29)
        assert sqlite3.TimeFromTicks(ticks) == datetime.time(5)
        assert sqlite3.TimestampFromTicks(ticks) == datetime.datetime(2024, 2, 29, 5)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_second_name_has_the_same_names() -> None:
    assert dbapi2.__all__ == sqlite3.__all__
    for name in sqlite3.__all__:
        assert getattr(dbapi2, name) is getattr(sqlite3, name)
    star: dict[str, object] = {}
    exec("from oxlite.sqlite3.dbapi2 import *", star)
    assert star.keys() - {"__builtins__"} == set(sqlite3.__all__)
