"""Converters that need no call: they make what those behind them make, in every kind of row."""

import random
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from django.utils.dateparse import parse_date, parse_datetime, parse_time

from oxlite import _native, sqlite3

SEED = 20261126
CALLS = 20_000

ORIGINALS: dict[str, Callable[[bytes], object]] = {
    "bool": b"1".__eq__,
    "date": lambda stored: parse_date(stored.decode()),
    "time": lambda stored: parse_time(stored.decode()),
    "datetime": lambda stored: parse_datetime(stored.decode()),
}


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    kept = dict(sqlite3.converters)
    yield
    sqlite3.converters.clear()
    sqlite3.converters.update(kept)


def _outcome(converter: Callable[[bytes], object], stored: bytes) -> tuple[object, ...]:
    try:
        made = converter(stored)
    except Exception as error:
        return type(error), str(error)
    return type(made), made, getattr(made, "tzinfo", None)


def _texts(chance: random.Random) -> Iterator[bytes]:
    while True:
        year, month, day = chance.randint(0, 10_000), chance.randint(0, 13), chance.randint(0, 32)
        clock = f"{chance.randint(0, 25):02}:{chance.randint(0, 61):02}:{chance.randint(0, 61):02}"
        fraction = "." + "0123456789"[: chance.randint(0, 8)] if chance.random() < 0.5 else ""
        day_text = f"{year:04}-{month:02}-{day:02}"
        text = chance.choice(
            [
                day_text,
                clock + fraction,
                f"{day_text} {clock}{fraction}",
                f"{day_text}T{clock}{fraction}",
                f"{day_text} {clock}{fraction}+02:00",
                f"{day_text} {clock[:5]}",
                "",
                "0",
                "1",
                "10",
            ]
        ).encode()
        if text and chance.random() < 0.1:
            place = chance.randrange(len(text))
            text = text[:place] + chance.randbytes(1) + text[place + 1 :]
        yield text


@pytest.mark.parametrize("kind", ORIGINALS)
def test_an_object_is_what_the_original_makes(kind: str) -> None:
    original = ORIGINALS[kind]
    native = _native.NativeConverter(kind, original)
    texts = _texts(random.Random(SEED))
    for _ in range(CALLS):
        stored = next(texts)
        assert _outcome(native, stored) == _outcome(original, stored), (kind, stored, SEED)


def _opened(calls: list[bytes]) -> sqlite3.Connection:
    def original(stored: bytes) -> object:
        calls.append(stored)
        return stored.decode()

    sqlite3.register_converter("moment", _native.NativeConverter("datetime", original))
    connection = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at moment, other)")
    rows = [("2026-11-26 01:02:03", 1), ("soon", 2), (None, 3), ("2026-11-26 01:02:04.5", 4)]
    connection.executemany("INSERT INTO t (at, other) VALUES (?, ?)", rows)
    return connection


ROWS = [
    (1, datetime(2026, 11, 26, 1, 2, 3), 1),
    (2, "soon", 2),
    (3, None, 3),
    (4, datetime(2026, 11, 26, 1, 2, 4, 500_000), 4),
]

WAYS: dict[str, Callable[[Any], list[Any]]] = {
    "fetchall": lambda cursor: cursor.fetchall(),
    "fetchmany": lambda cursor: [*cursor.fetchmany(1), *cursor.fetchmany(2), *cursor.fetchmany(9)],
    "fetchone": lambda cursor: list(iter(cursor.fetchone, None)),
    "iteration": list,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_rows_of_both_kinds_follow_each_other(way: Callable[[Any], list[Any]]) -> None:
    calls: list[bytes] = []
    connection = _opened(calls)
    assert way(connection.execute("SELECT * FROM t ORDER BY id")) == ROWS
    assert calls == [b"soon"]
    connection.close()


def test_an_original_may_use_its_connection_and_fail() -> None:
    connection = _opened([])

    def original(_: bytes) -> object:
        connection.execute("SELECT 1").fetchone()
        raise ValueError("not yet")

    sqlite3.register_converter("moment", _native.NativeConverter("datetime", original))
    cursor = connection.execute("SELECT at FROM t ORDER BY id")
    assert cursor.fetchone() == ROWS[0][1:2]
    with pytest.raises(ValueError, match="not yet"):
        cursor.fetchall()
    connection.close()


def test_a_row_factory_gets_finished_rows() -> None:
    connection = _opened([])
    connection.row_factory = sqlite3.Row
    found = connection.execute("SELECT at FROM t ORDER BY id").fetchall()
    assert [row["at"] for row in found] == [row[1] for row in ROWS]
    connection.close()


def test_there_are_four_kinds() -> None:
    with pytest.raises(ValueError, match='bool, date, time or datetime, not "decimal"'):
        _native.NativeConverter("decimal", str)
