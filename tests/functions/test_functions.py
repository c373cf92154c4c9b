"""The driver's functions of days and times are Django's: the same results, NULLs and errors."""

import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

from tests.functions.calls import ZONES, changes_of_clocks
from tests.functions.comparison import compare, outcome, with_originals, with_ours

import oxlite
from oxlite import sqlite3
from oxlite._native import ClockChange
from oxlite.django.sqlite3 import functions


def refused(*arguments: Any) -> Any:  # noqa: ANN401 - whatever SQLite has
    raise AssertionError(arguments)


REFUSED: dict[str, Callable[..., Any]] = dict.fromkeys(functions.ORIGINALS, refused)


@pytest.mark.parametrize("part", range(2))
def test_random_calls_have_one_outcome(seed: int, part: int) -> None:
    found = compare(50_000, seed + part)
    assert found.differences == []
    assert found.calls.keys() == functions.ORIGINALS.keys()
    for name, count in found.calls.items():
        assert found.originals[name] < 0.8 * count  # those that the driver answers are the subject
        assert found.errors[name]


def test_all_zones_are_known() -> None:
    """And mean what they mean to ``zoneinfo``, in years of all kinds."""
    ours, theirs = with_ours(REFUSED), with_originals()
    moments = [f"{year:04}-{month}" for year in (2, 1900, 1950, 2024, 2500, 9998) for month in (
        "01-01 00:00:00", "06-30 23:59:59.5", "12-31 18:00:00")]  # fmt: skip
    for zone in ZONES:
        for moment in moments:
            for zones in ((zone, "UTC"), ("UTC", zone), (None, zone)):
                call = ("django_datetime_trunc", ("second", moment, *zones))
                assert outcome(ours, call) == outcome(theirs, call), call
    ours.close()
    theirs.close()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "Europe/Dublin"])
def test_every_change_of_a_clock(zone: str) -> None:
    ours, theirs = with_ours(REFUSED), with_originals()
    for day in changes_of_clocks(zone)[-60:]:
        for minute in range(0, 1440, 15):
            moment = f"{day:%Y-%m-%d} {minute // 60:02}:{minute % 60:02}:00"
            for zones in ((zone, "UTC"), ("UTC", zone)):
                call = ("django_datetime_trunc", ("minute", moment, *zones))
                assert outcome(ours, call) == outcome(theirs, call), call
    ours.close()
    theirs.close()


def test_a_zone_is_the_file_that_zoneinfo_reads(tmp_path: Path) -> None:
    whole = functions.zone_file("Europe/Berlin")
    (tmp_path / "Nowhere").mkdir()
    (tmp_path / "Nowhere" / "Town").write_bytes(whole)
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(tmp_path), *before])
    try:
        assert functions.zone_file("Nowhere/Town") == whole
    finally:
        zoneinfo.reset_tzpath(before)
    with pytest.raises(zoneinfo.ZoneInfoNotFoundError):
        functions.zone_file("Nowhere/Village")


def test_a_file_that_is_none_is_refused() -> None:
    whole = functions.zone_file("Europe/Berlin")
    for file in (b"", b"TZif", whole[:-1], whole[: len(whole) // 2], b"\xff" * 64):
        with pytest.raises(ValueError, match="TZif"):
            ClockChange(file, 0, None)


def test_a_connection_of_django_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "ORIGINALS", REFUSED)
    connection = oxlite.connect(":memory:")
    functions.register_functions(connection)
    query = "SELECT django_datetime_trunc('month', ?, 'Europe/Paris', 'UTC')"
    assert connection.execute(query, ("2024-05-31 23:00:00",)).fetchone() == (
        "2024-06-01 00:00:00",
    )
    with pytest.raises(sqlite3.OperationalError, match="user-defined function raised exception"):
        connection.execute(query, ("2024-05",)).fetchone()
    connection.close()


def test_an_unknown_version_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "COMPARED", frozenset())
    monkeypatch.setattr(functions, "create_date_functions", refused)
    connection = oxlite.connect(":memory:")
    functions.register_functions(connection)
    query = "SELECT django_time_diff('00:00:01', '00:00:00')"
    assert connection.execute(query).fetchone() == (1_000_000,)
    connection.close()


def test_an_index_serves_them() -> None:
    connection = with_ours(REFUSED)
    connection.execute("CREATE TABLE t (a TEXT)")
    day = "django_datetime_cast_date(a, 'UTC', 'UTC')"
    connection.execute(f"CREATE INDEX i ON t ({day})")
    connection.execute("INSERT INTO t VALUES ('2024-05-16 13:14:15')")
    query = f"FROM t WHERE {day} = '2024-05-16'"
    assert connection.execute(f"SELECT count(*) {query}").fetchone() == (1,)
    (plan,) = connection.execute(f"EXPLAIN QUERY PLAN SELECT * {query}").fetchall()
    assert "USING INDEX i" in plan[3]
    connection.close()


@pytest.mark.parametrize("name", ["django_time_diff", "django_timestamp_diff"])
def test_a_text_that_is_no_unicode_is_an_error_beside_null(name: str) -> None:
    ours, theirs = with_ours(dict(functions.ORIGINALS)), with_originals()
    for harmed in (b"text:\xff", b"text:\xed\xa0\x80", b"text:13:14:1\xa0"):
        for arguments in ((harmed, None), (None, harmed)):
            assert outcome(ours, (name, arguments)) == outcome(theirs, (name, arguments))
    ours.close()
    theirs.close()


def test_a_zone_without_a_file_is_djangos_error() -> None:
    ours, theirs = with_ours(dict(functions.ORIGINALS)), with_originals()
    for zones in (
        ("Mars/Olympus", "UTC"),
        ("UTC", "../UTC"),
        ("Europe/Paris", None),
        ("x" * 5000, "UTC"),
    ):
        call = ("django_datetime_cast_date", ("2024-05-16 13:14:15", *zones))
        assert outcome(ours, call) == outcome(theirs, call)
        assert outcome(ours, call)[0] is sqlite3.OperationalError
    ours.close()
    theirs.close()
