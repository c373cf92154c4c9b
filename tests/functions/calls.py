"""Random calls of Django's functions of days and times: what it writes itself, and all else.

Invariant: the same seed makes the same calls, with the same files of zones.
"""

import random
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

Value = str | bytes | int | float | None
Call = tuple[str, tuple[Value, ...]]

ZONES: Final = sorted(zoneinfo.available_timezones())
_NO_ZONES: Final = (
    "", "Mars/Olympus", "../UTC", "/UTC", "UTC ", "utc", "Europe", "Europe/Paris+99:00", "+5",
    "+05", "+05:30:10", "-5:5", "Etc/GMT+5", "Etc/GMT+10", "Etc/GMT-14", "Europe/Paris+-01:00", "+",
    "a\0b",
)  # fmt: skip
_PARTS: Final = (
    "year", "month", "day", "week_day", "iso_week_day", "week", "iso_year", "quarter", "hour",
    "minute", "second", "microsecond",
)  # fmt: skip
_PERIODS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_NO_NAMES: Final[tuple[Value, ...]] = (
    "decade",
    "",
    "Year",
    "fold",
    "min",
    "date",
    None,
    1,
    b"year",
)
_IN_ARABIC: Final = tuple(
    text.translate({ord("0") + digit: 0x660 + digit for digit in range(10)})
    for text in ("2024-05-16", "2024-05-16 13:14:15", "13:14:15")
)
"""In digits that Python's ``int`` reads too."""
_NO_TIMES: Final[tuple[Value, ...]] = (
    None, "", " ", "now", "2024", "2024-05", "2024-05-16T13:14:15", "2024-5-6", "2024-05-16 1:2:3",
    "2024-05-16 13:14", "2024-05-16  13:14:15", "2024-05-16 13:14:15+02:00", "2024-05-16 13:14:15Z",
    "2024-05-16 13:14:15-0300", "2024-05-16 13:14:15.1234567", "2024-05-16 13:14:15.", "0000-01-01",
    "10000-01-01", "-2024-05-16", "2023-02-29", "2023-02-29 00:00:00", "2024-05-16 24:00:00",
    "2024-05-16 23:59:60", "13:14", "24:00:00", "1:2:3", "13:14:15.1234567", "13:14:15,5",
    " 13:14:15", "13:14:15 ", *_IN_ARABIC, "2024-05-16 13:14:15\n", "2024-05-16\0",
    "2024-05-16 13:14:15\x00", "+024-05-16", "2_24-05-16", "1_3:14:15", "2024-05-16\t13:14:15",
    "2024-05-16 13:14:15 +00:00", "2024-05-16 12:00:00 AM", 0, 20240516, 1.5, float("inf"), b"",
    b"2024-05-16", b"2024-05-16 13:14:15", b"13:14:15", "9" * 40, "2024-05-16 13:14:15.000000",
)  # fmt: skip
_EDGES: Final = (
    "0001-01-01 00:00:00", "0001-01-01", "0001-01-02 11:59:59.999999", "9999-12-31 23:59:59.999999",
    "9999-12-31", "9999-12-31 12:00:00", "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999",
    "2038-01-19 03:14:07", "2038-01-19 03:14:08", "1901-12-13 20:45:52",
)  # fmt: skip
_NUMBERS: Final = (
    0, 1, -1, 2**53, 2**53 + 1, -(2**53), 2**63 - 1, -(2**63), 86_400_000_000, -86_400_000_000,
    86_399_999_999, 86_400_000_001, 999_999, 1_000_000,
)  # fmt: skip


@lru_cache(maxsize=64)
def changes_of_clocks(zone: str) -> list[datetime]:
    """Days, in UTC, on which a zone's clock changes, from 1850 to 2100 and in some later years."""
    info = zoneinfo.ZoneInfo(zone)
    days = []
    for first, last in ((1850, 2100), (2400, 2401), (9997, 9998)):
        day, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last, 1, 1, tzinfo=UTC)
        before = day.astimezone(info).utcoffset()
        while day < end:
            day += timedelta(days=1)
            after = day.astimezone(info).utcoffset()
            if after != before:
                days.append(day.replace(tzinfo=None))
            before = after
    return days


class Calls:
    """A source of random calls."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        # Where the clock changes takes a while to find, so a few zones have turns.
        self._changing = self._random.sample(ZONES, 24)
        self._kinds: list[Callable[[], Call]] = [
            lambda: ("django_date_extract", (self._name(_PARTS), self._time())),
            lambda: ("django_date_trunc", (self._name(_PERIODS), *self._zoned())),
            lambda: ("django_datetime_cast_date", self._zoned()),
            lambda: ("django_datetime_cast_time", self._zoned()),
            lambda: ("django_datetime_extract", (self._name(_PARTS), *self._zoned())),
            lambda: ("django_datetime_trunc", (self._name(_PERIODS), *self._zoned())),
            lambda: ("django_time_extract", (self._name(_PARTS[-4:]), self._time("time"))),
            lambda: ("django_time_trunc", (self._name(_PERIODS[-3:]), *self._zoned("time"))),
            lambda: ("django_time_diff", (self._time("time"), self._time("time"))),
            lambda: ("django_timestamp_diff", self._two_times()),
            self._combination,
        ]

    def next(self) -> Call:
        """One more."""
        return self._random.choice(self._kinds)()

    def _name(self, names: tuple[str, ...]) -> Value:
        return self._random.choice(_NO_NAMES if self._random.random() < 0.02 else names)

    def _zone(self) -> str:
        return self._random.choice(ZONES if self._random.random() < 0.3 else self._changing)

    def _zoned(self, kind: str = "") -> tuple[Value, ...]:
        """A time, the zone that is asked for, and the connection's."""
        chance = self._random.random()
        zone: Value = None
        connections: Value = None
        if chance < 0.75:
            zone = self._zone()
            connections = "UTC" if self._random.random() < 0.6 else self._zone()
            if self._random.random() < 0.15:
                zone = None if self._random.random() < 0.3 else connections
            elif self._random.random() < 0.2:
                sign, hours, minutes = (
                    self._random.choice("+-"),
                    *map(self._random.randrange, (24, 60)),
                )
                name = "" if self._random.random() < 0.3 else zone
                zone = f"{name}{sign}{hours:02}:{minutes:02}"
        elif chance < 0.8:
            zone = self._random.choice(_NO_ZONES)
            connections = self._random.choice(("UTC", "Europe/Paris", None, "", *_NO_ZONES))
        if zone is not None and not kind and self._random.random() < 0.9:
            kind = "moment"  # a day alone has no zone
        named = zone if isinstance(zone, str) and zone in ZONES else None
        return (self._time(kind, named or connections), zone, connections)

    def _two_times(self) -> tuple[Value, ...]:
        kind = self._random.choice(("date", "moment", ""))
        return (self._time(kind), self._time(kind))

    def _combination(self) -> Call:
        operator: Value = self._random.choice(("+", "-", "*", "/", " + ", " - ", "+", "-"))
        if self._random.random() < 0.02:
            operator = self._random.choice((None, "%", "", "\xa0+", 1, b"+"))
        sides = (self._side(operator), self._side(operator))
        return ("django_format_dtdelta", (operator, *sides))

    def _side(self, operator: Value) -> Value:
        chance = self._random.random()
        if chance < 0.1:
            return self._random.choice(_NUMBERS)
        if chance < 0.2:
            return self._random.choice(
                (1.5, -0.0, 0.0, 1e300, float("inf"), self._random.gauss(0, 9))
            )
        if chance < 0.55 or operator in ("*", "/"):
            return self._random.getrandbits(63) // 10 ** self._random.randrange(19)
        return self._time(self._random.choice(("date", "moment", "moment", "")))

    def _time(self, kind: str = "", zone: Value = None) -> Value:
        chance = self._random.random()
        if chance < 0.06:
            return self._random.choice(_NO_TIMES)
        if chance < 0.08:
            return self._random.choice(_EDGES)
        text = self._well_formed(
            kind or self._random.choice(("date", "moment", "moment", "moment")), zone
        )
        if chance < 0.12:
            return self._harmed(text)
        return text

    def _well_formed(self, kind: str, zone: Value) -> str:
        moment = self._moment(zone)
        if kind == "date":
            return moment.strftime("%Y-%m-%d").rjust(10, "0")
        digits = self._random.choice((0, 0, 0, 3, 6, 6, 1))
        fraction = f".{moment.microsecond:06}"[: digits + 1] if digits else ""
        clock = f"{moment:%H:%M:%S}{fraction}"
        if kind == "time" and self._random.random() < 0.8:
            return clock
        return f"{moment:%Y-%m-%d} ".rjust(11, "0") + clock

    def _moment(self, zone: Value) -> datetime:
        chance = self._random.random()
        microseconds = timedelta(microseconds=self._random.randrange(86_400_000_000))
        changing = chance < 0.5 and isinstance(zone, str) and zone in self._changing
        if changing and (days := changes_of_clocks(str(zone))):
            day = self._random.choice(days) - timedelta(days=self._random.choice((1, 1, 0, 2)))
            if self._random.random() < 0.5:  # on the minute
                return day + timedelta(minutes=self._random.randrange(1440))
            return day + microseconds
        if chance < 0.6:
            return (
                datetime(1970, 1, 1) + timedelta(days=self._random.randrange(40_000)) + microseconds
            )
        return datetime(1, 1, 1) + timedelta(days=self._random.randrange(3_652_059)) + microseconds

    def _harmed(self, text: str) -> Value:
        """A text with a byte changed, too many or too few; as bytes that are to be text."""
        encoded = bytearray(text.encode())
        place = self._random.randrange(len(encoded))
        other = self._random.choice(b"0123456789-:. +T\0\xed\xa0\x80\xff")
        match self._random.randrange(3):
            case 0:
                encoded[place] = other
            case 1:
                encoded.insert(place, other)
            case _:
                del encoded[place]
        return b"text:" + bytes(encoded)
