"""Dates and times: PEP 249's constructors, and the default adapters and converters.

The adapters write ISO 8601, a date and its time with a space between them. The converters read
what the standard library's read: any whole numbers between the separators, a fraction of any length
cut to microseconds. As there, they are deprecated from Python 3.12 on, and say so at the line
that binds or fetches the value.

Invariant: what the fast path of a converter takes, the slow one would convert to the same value.
"""

import datetime
import re
import sys
import time
import warnings

from oxlite import _native

__all__ = [
    "Date",
    "DateFromTicks",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "adapt_date",
    "adapt_datetime",
    "convert_date",
    "convert_timestamp",
    "register_adapters_and_converters",
]

Date = datetime.date
"""A day, in PEP 249's words."""

Time = datetime.time
"""A time of day, in PEP 249's words."""

Timestamp = datetime.datetime
"""A day and a time, in PEP 249's words."""

# The shape that the adapters write. Newer Pythons read the hour 24 as midnight, int() never does.
_ISO_DATE = re.compile(rb"\d{4}-\d\d-\d\d")
_ISO_TIMESTAMP = re.compile(rb"\d{4}-\d\d-\d\d (?!24)\d\d:\d\d:\d\d(?:\.\d+)?")


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 - PEP 249's name
    """Return the local date at ``ticks`` seconds since the epoch (PEP 249)."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 - PEP 249's name
    """Return the local time of day at ``ticks`` seconds since the epoch (PEP 249)."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802 - PEP 249's name
    """Return the local date and time at ``ticks`` seconds since the epoch (PEP 249)."""
    return Timestamp(*time.localtime(ticks)[:6])


def adapt_date(value: datetime.date) -> str:
    """Return a date as it is stored: ``2024-02-29``."""
    _warn_of_default("date adapter")
    return value.isoformat()


def adapt_datetime(value: datetime.datetime) -> str:
    """Return a date and time as it is stored: ``2024-02-29 12:30:00.000001+00:00``.

    Microseconds are left out if they are 0, the offset if the value has no time zone.
    """
    _warn_of_default("datetime adapter")
    return value.isoformat(" ")


def convert_date(value: bytes) -> datetime.date:
    """Return the date that a column declared ``date`` holds.

    Raises:
        ValueError: A part is not a whole number or is out of its range.
        TypeError: There are not three parts.
    """
    _warn_of_default("date converter")
    if _ISO_DATE.fullmatch(value):
        return datetime.date.fromisoformat(value.decode())
    return datetime.date(*map(int, value.split(b"-")))


def convert_timestamp(value: bytes) -> datetime.datetime:
    """Return the date and time that a column declared ``timestamp`` holds.

    Raises:
        ValueError: It is not a date and a time with one space between them, or has an offset.
    """
    _warn_of_default("timestamp converter")
    if _ISO_TIMESTAMP.fullmatch(value):
        return datetime.datetime.fromisoformat(value.decode())
    day, clock = value.split(b" ")
    clock, *fractions = clock.split(b".")
    year, month, day_of_month = map(int, day.split(b"-"))
    hour, minute, second = map(int, clock.split(b":"))
    # Of two fractions neither counts: such is the standard library's reading.
    microsecond = int(fractions[0].decode()[:6].ljust(6, "0")) if len(fractions) == 1 else 0
    return datetime.datetime(year, month, day_of_month, hour, minute, second, microsecond)


def register_adapters_and_converters() -> None:
    """Make these what every connection begins with."""
    _native.register_adapter(datetime.date, adapt_date)
    _native.register_adapter(datetime.datetime, adapt_datetime)
    _native.register_converter("date", convert_date)
    _native.register_converter("timestamp", convert_timestamp)


def _warn_of_default(what: str) -> None:
    """Warn at the line whose statement called the adapter or converter."""
    if sys.version_info >= (3, 12):
        warnings.warn(
            f"The default {what} is deprecated as of Python 3.12; "
            "see the sqlite3 documentation for suggested replacement recipes",
            DeprecationWarning,
            stacklevel=3,
        )
