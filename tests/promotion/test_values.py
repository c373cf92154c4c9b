"""Every type's values: what PostgreSQL stores of them, read back by its own driver."""

import json
import random
import string
import struct
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.promotion.conftest import Place, file_of, promote_file

from oxlite import sqlite3
from oxlite.promotion import Settings

_ID = "8a6e0804-2bd0-4672-b79d-d97027f9071a"
_INFINITE = float("inf")
_ODD = "\\N\\.\t\r\n\x1e\x1f\x7f'\"{}\u2028é😀\ufeff"

ZOO: list[tuple[str, str, list[Any], list[Any]]] = [
    # declared as, the type that it gets, what is stored, what PostgreSQL has
    ("INTEGER", "bigint", [-(2**63), 2**63 - 1, 0], [-(2**63), 2**63 - 1, 0]),
    ("BIGINT UNSIGNED", "bigint", [1, None, -1], [1, None, -1]),
    ("TINYINT(1)", "bigint", [1, 0, "7"], [1, 0, 7]),
    ("BOOLEAN", "boolean", [0, 1, None], [False, True, None]),
    ("BOOL", "boolean", ["true", "F", "1"], [True, False, True]),
    ("REAL", "double precision", [0.1 + 0.2, 5e-324, 1.7976931348623157e308], None),
    ("DOUBLE PRECISION", "double precision", [_INFINITE, -_INFINITE, 1 / 3], None),
    ("FLOAT", "double precision", [2**53, 1e22, "1.5"], [float(2**53), 1e22, 1.5]),
    ("DECIMAL(5,2)", "numeric(5,2)", [999.99, "-0.01", 5], ["999.99", "-0.01", "5.00"]),
    ("DECIMAL(38,10)", "numeric(38,10)", [0.1 + 0.2, 1, 2], ["0.3", "1", "2"]),
    ("NUMERIC", "numeric", [1e300, 1, 0.1], [f"{10**300}", "1", "0.1"]),
    ("DECIMAL(2000,2)", "numeric", [1.5, 2, 3], ["1.5", "2", "3"]),
    ("DECIMAL(2,5)", "numeric", [1.5, 2, 3], ["1.5", "2", "3"]),
    ("MONEY", "numeric", [1.25, 2, -3], ["1.25", "2", "-3"]),
    ("VARCHAR(3)", "character varying(3)", ["é😀x", "", "   "], None),
    ("VARCHAR(2)", "text", ["abc", "a", None], None),
    ("VARCHAR(0)", "text", ["", "a", None], None),
    ("VARCHAR(99999999)", "text", ["", "a", None], None),
    ("NVARCHAR", "text", ["a", _ODD, None], None),
    ("CHAR(36)", "character varying(36)", ["a", "b ", ""], None),
    ("TEXT", "text", [_ODD, "NULL", "\\\\n"], None),
    ("CLOB", "text", ["a" * 100_000, "", None], None),
    ("BLOB", "bytea", [b"\0\xff\n\\", b"", None], None),
    ("VARBINARY(4)", "bytea", ["text", None, b"x"], [b"text", None, b"x"]),
    ("DATE", "date", ["0001-01-01", "9999-12-31", "2024-02-29"],
     [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)]),
    ("TIME", "time without time zone", ["00:00", "23:59:59", "12:30:15.5"],
     [time(0), time(23, 59, 59), time(12, 30, 15, 500_000)]),
    ("DATETIME", "timestamp without time zone",
     ["2024-02-29 23:59:59.999999", "2024-02-29", "0001-01-01T00:00"],
     [datetime(2024, 2, 29, 23, 59, 59, 999_999), datetime(2024, 2, 29), datetime(1, 1, 1)]),
    ("TIMESTAMP", "timestamp without time zone", [0, 1_700_000_000_000, 2460000.5],
     [datetime(1970, 1, 1), datetime(2023, 11, 14, 22, 13, 20), datetime(2023, 2, 25)]),
    ("DATETIME(6)", "timestamp with time zone",
     ["2024-02-29T12:00:00Z", "2024-02-29 12:00:00.5+02:30", "2024-02-29"],
     [datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2024, 2, 29, 9, 30, 0, 500_000, UTC),
      datetime(2024, 2, 29, tzinfo=UTC)]),
    ("TIMESTAMPTZ", "timestamp with time zone", ["2024-02-29T12:00:00-11:00", 1.5, None],
     [datetime(2024, 2, 29, 23, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC), None]),
    ("INTERVAL", "interval", [1_500_000, -1, 0],
     [timedelta(seconds=1.5), timedelta(microseconds=-1), timedelta()]),
    ("JSON", "jsonb", ['{"bb":1,"a":[1.50,-0.0,1e2],"a":null}', "true", '"\\ud83d\\ude00"'],
     [{"a": None, "bb": 1}, True, "😀"]),
    ("JSONB", "jsonb", [" [] ", "null", '"\\u0001\\u007f\\/"'], [[], None, "\x01\x7f/"]),
    ("UUID", "uuid", [_ID, _ID.upper().replace("-", ""), UUID(_ID).bytes], [UUID(_ID)] * 3),
    ("", "bigint", [1, None, -5], None),
    ("", "double precision", [1, 1.5, -0.0], [1.0, 1.5, -0.0]),
    ("", "text", ["a", 1, 0.1 + 0.2], ["a", "1", "0.30000000000000004"]),
    ("", "bytea", [b"\0", b"", None], None),
    ("", "bigint", [None, None, None], None),
    ("ANY", "text", ["a", "b", None], None),
    ("GEOMETRY", "bytea", [b"\1", b"\2", None], None),
    ("STRING", "text", ["a", "b", None], None),
    ("INT", "numeric", [1, 2, 1e19], ["1", "2", "10000000000000000000"]),
]  # fmt: skip


def _zoo(folder: Path) -> Path:
    columns = ", ".join(f"c{place} {declared}" for place, (declared, *_) in enumerate(ZOO))
    path = file_of(folder, f"CREATE TABLE zoo (id INTEGER PRIMARY KEY, {columns})")
    marks = ", ".join("?" for _ in ZOO)
    with closing(sqlite3.connect(path)) as connection:
        for row in range(3):
            values = [stored[row] for _, _, stored, _ in ZOO]
            connection.execute(f"INSERT INTO zoo VALUES ({row}, {marks})", values)
        connection.commit()
    return path


def _alike(there: object, expected: object) -> bool:
    if isinstance(there, Decimal):
        return there == Decimal(str(expected))
    if isinstance(there, float) and isinstance(expected, float):
        return struct.pack("d", there) == struct.pack("d", expected)
    return type(there) is type(expected) and there == expected


def test_a_zoo_of_columns(place: Place, tmp_path: Path) -> None:
    promote_file(_zoo(tmp_path), place, Settings(policy="widen"))
    types = dict(place.rows(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'zoo'::regclass AND attnum > 1"
    ))  # fmt: skip
    rows = place.rows("SELECT * FROM zoo ORDER BY id")
    for number, (declared, kind, stored, expected) in enumerate(ZOO):
        name = f"c{number} {declared}"
        assert types[f"c{number}"] == kind, name
        for row, value in zip(rows, stored if expected is None else expected, strict=True):
            there = row[number + 1]
            assert _alike(there, value), f"{name}: {there!r} is not {value!r}"


def _float(seed: random.Random) -> float:
    (value,) = struct.unpack("d", seed.randbytes(8))
    return 0.0 if value != value else float(value)


def _text(seed: random.Random) -> str:
    return "".join(seed.choice(string.printable + _ODD) for _ in range(seed.randrange(9)))


def _moment(seed: random.Random) -> datetime:
    return datetime(1, 1, 1) + timedelta(microseconds=seed.randrange(315_537_897_599_999_999))


def _json(seed: random.Random, depth: int = 3) -> object:
    kinds: list[Callable[[], object]] = [
        lambda: None,
        lambda: True,
        lambda: seed.randrange(-(2**70), 2**70),
        lambda: _text(seed),
    ]
    if depth:
        kinds += [
            lambda: [_json(seed, depth - 1) for _ in range(seed.randrange(4))],
            lambda: {_text(seed): _json(seed, depth - 1) for _ in range(seed.randrange(4))},
        ]
    return seed.choice(kinds)()


def _list(make: Callable[[random.Random], object]) -> Callable[[random.Random], str]:
    def made(seed: random.Random) -> str:
        values = [make(seed) if seed.random() < 0.9 else None for _ in range(seed.randrange(4))]
        return json.dumps([None if value in {_INFINITE, -_INFINITE} else value for value in values])

    return made


def _floats(text: str) -> list[float | None]:
    return [None if one is None else float(one) for one in json.loads(text)]


RANDOM: dict[str, tuple[Callable[[random.Random], Any], Callable[[Any], Any]]] = {
    "bigint": (lambda seed: seed.randrange(-(2**63), 2**63), lambda value: value),
    "double precision": (_float, lambda value: value),
    "numeric": (lambda seed: str(Decimal(seed.randrange(10**30)).scaleb(-9)), Decimal),
    "numeric(12,3)": (lambda seed: round(seed.uniform(-1e6, 1e6), 3), lambda value: str(value)),
    "text": (_text, lambda value: value),
    "bytea": (lambda seed: seed.randbytes(seed.randrange(9)), lambda value: value),
    "date": (lambda seed: _moment(seed).date().isoformat(), date.fromisoformat),
    "time": (lambda seed: _moment(seed).time().isoformat(), time.fromisoformat),
    "timestamp": (lambda seed: _moment(seed).isoformat(seed.choice(" T")), datetime.fromisoformat),
    "timestamptz": (
        lambda seed: str(_moment(seed))[:26] + seed.choice(["", "+00:00", "Z"]),
        lambda value: datetime.fromisoformat(value).replace(tzinfo=UTC),
    ),
    "interval": (
        lambda seed: seed.randrange(-(10**17), 10**17),
        lambda value: timedelta(microseconds=value),
    ),
    "jsonb": (lambda seed: json.dumps(_json(seed)), json.loads),
    "json": (lambda seed: json.dumps(_json(seed), ensure_ascii=False), json.loads),
    "uuid": (lambda seed: str(UUID(int=seed.getrandbits(128))), UUID),
    "bigint[]": (_list(lambda seed: seed.randrange(-(2**63), 2**63)), json.loads),
    "double precision[]": (
        _list(lambda seed: seed.choice([1.0, -0.0, 1e15, _float(seed)])),
        _floats,
    ),
    "numeric(6,2)[]": (
        _list(lambda seed: seed.randrange(10**6) / 100),
        lambda value: json.loads(value, parse_float=Decimal),
    ),
    "boolean[]": (_list(lambda seed: seed.random() < 0.5), json.loads),
    "varchar(9)[]": (_list(_text), json.loads),
    "text[][]": (lambda seed: json.dumps([[_text(seed), "NULL"], ["", _text(seed)]]), json.loads),
    "timestamptz[]": (
        _list(lambda seed: str(_moment(seed))),
        lambda value: [
            one and datetime.fromisoformat(one).replace(tzinfo=UTC) for one in json.loads(value)
        ],
    ),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_random_values_are_read_back(kind: str, place: Place, tmp_path: Path) -> None:
    number = random.randrange(2**32)
    print("seed", number)
    seed = random.Random(number)
    make, read = RANDOM[kind]
    values = [make(seed) for _ in range(1000)]
    path = file_of(tmp_path, "CREATE TABLE t (id INTEGER PRIMARY KEY, value)")
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("INSERT INTO t VALUES (?, ?)", enumerate(values))
        connection.commit()
    place.rows(f"CREATE TABLE t (id bigint PRIMARY KEY, value {kind})")
    promote_file(path, place, Settings(is_existing=True))
    there = dict(place.rows("SELECT id, value FROM t"))
    for place_, value in enumerate(values):
        assert _alike(there[place_], read(value)), (value, there[place_])


@pytest.mark.parametrize(
    ("kind", "misfits"),
    [
        ("boolean", [2, "yes", 1.0, b"1", "1\0"]),
        ("integer", [2**31, 1.0, "1", b"1"]),
        ("real", [1e39, 1e-46, "1"]),
        ("double precision", [2**53 + 1, "1", b"1"]),
        ("numeric", ["1_0", "\u0663", "NaN", "1e-20000", "1e131072", "0x10", ""]),
        ("numeric(5,2)", ["1.255", 1000, 1e10, 99999.99]),
        ("numeric(12,2)", [9999999.994, 1000000000.004]),
        ("varchar(2)", ["abc", "a\0", b"a"]),
        ("date", ["2024-02-30", "0000-01-01", "10000-01-01", "2024-1-1", "2024-01-01\0", 5]),
        ("time", ["24:00", "12:30\0", "12:30:15.1\0", "12:30:15.1234567", "12:30:15."]),
        ("timestamp", ["2024-02-30 00:00", "2024-01-01\0x", "2024-01-01 12:30Z", 1e300]),
        ("timestamptz", ["2024-01-01T12:00:00.1234567Z", "2024-01-01T12:00:00+24:00", _INFINITE]),
        ("timestamp(0)", ["2024-01-01 12:30:15.5"]),
        ("interval", ["1 day", 1.5]),
        ("jsonb", ['"\\u0000"', '"\\ud800"', "NaN", "1e200000", "1e-20000", "\ufeff[]", "[1,]"]),
        ("uuid", [_ID[:-1], f"{{{_ID}}}", _ID + "\0", b"short", 5]),
        ("integer[]", ["[2147483648]", '["x"]', "[1.5]", "{}", "5", "[[],[]]", "[NaN]"]),
        ("text[]", ["[1]", '[["a"],["b","c"]]', '["a",["b"]]', '["\\u0000"]', '["\\ud800"]']),
        ("varchar(2)[]", ['["abc"]']),
        ("numeric(4,2)[]", ["[1.255]", "[100]", '["NaN"]']),
        ("date[]", ['["2024-02-30"]', '["20240101"]']),
        ("timestamp[]", ['["2024-01-01T00:00Z"]', '["2024-01-01T00:00:00.1234567"]']),
        ("uuid[]", ['["x"]']),
        ("inet", ["1.2.3", "fe80::1%eth0", "1.2.3.4/33", "01.2.3.4", 1]),
    ],
)
def test_what_would_lose_something_does_not_fit(
    kind: str, misfits: list[Any], place: Place, tmp_path: Path
) -> None:
    path = file_of(tmp_path, "CREATE TABLE t (id INTEGER PRIMARY KEY, value)")
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("INSERT INTO t VALUES (?, ?)", enumerate([*misfits, None]))
        connection.execute("INSERT INTO t VALUES (100, CAST(x'22ff22' AS TEXT))")
        connection.commit()
    place.rows(f"CREATE TABLE t (id bigint PRIMARY KEY, value {kind})")
    done = promote_file(path, place, Settings(is_existing=True, policy="set-aside"))
    assert done.set_aside == len(misfits) + 1
    assert place.rows("SELECT value FROM t") == [(None,)]
