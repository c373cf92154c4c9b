"""Values that SQLite's own functions cannot write as PostgreSQL reads them: SQL functions for that.

Invariant: a function answers NULL where a value has no place in the type; it never raises.
"""

import ipaddress
import json
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final, NoReturn

from oxlite import _native
from oxlite.sqlite3 import Connection

__all__ = ["register"]

_JULIAN_DAYS: Final = (1721425.5, 5373484.5)
"""The years 1 to 9999, as SQLite counts days: https://sqlite.org/lang_datefunc.html"""
_EPOCH_JULIAN_DAY: Final = 2440587.5
_MILLISECONDS_FROM: Final = 10**11
_MICROSECONDS_FROM: Final = 10**14
"""Seconds since 1970 reach these numbers in the years 5138 and 3,170,843."""

_DIGITS_AT_MOST: Final = 131_072
"""Before the point of a numeric: https://www.postgresql.org/docs/current/datatype-numeric.html"""
_NOISE: Final = Decimal("1e-9")


def register(connection: Connection) -> None:
    """Register them with a connection."""
    _native.create_copy_function(connection)
    for name, count, function in (
        ("oxlite_float_text", 1, _float_text),
        ("oxlite_float_bits", 2, _float_bits),
        ("oxlite_decimal", 3, _decimal),
        ("oxlite_moment", 1, _moment),
        ("oxlite_utc", 1, _utc),
        ("oxlite_json", 1, _json),
        ("oxlite_array", 2, _array),
        ("oxlite_array_json", 1, _array_json),
        ("oxlite_address", 1, _address),
    ):
        connection.create_function(name, count, _of_value(function), deterministic=True)


def _of_value(function: Callable[..., str | None]) -> Callable[..., str | None]:
    """The same, and NULL of NULL."""

    def answer(value: object, *arguments: object) -> str | None:
        return None if value is None else function(value, *arguments)

    return answer


def _float_text(value: float) -> str | None:
    number = float(value)
    if number in {float("inf"), float("-inf")}:
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number)


def _float_bits(value: float, size: int) -> str | None:
    try:
        return struct.pack(">f" if size == 4 else ">d", value + 0.0).hex()
    except OverflowError:
        return None


def _decimal(
    value: int | float | str | bytes, precision: int | None, scale: int | None
) -> str | None:
    """A number in digits alone; with a scale, if no more of it is lost than arithmetic's noise."""
    if type(value) is int and scale is None:
        return str(value)
    if isinstance(value, bytes):
        return None
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except (InvalidOperation, TypeError, ValueError):
        return None
    if not number.is_finite() or number.adjusted() >= _DIGITS_AT_MOST:
        return None
    if scale is not None and precision is not None:
        try:
            rounded = number.quantize(Decimal(1).scaleb(-scale))
        except InvalidOperation:
            return None
        noise = _NOISE * max(Decimal(1), abs(number)) if isinstance(value, float) else 0
        if abs(rounded - number) > noise or rounded.adjusted() >= precision - scale:
            return None
        number = rounded
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def _moment(value: int | float) -> str | None:
    """A number as a time: seconds, milliseconds or microseconds since 1970, or a Julian day."""
    try:
        if isinstance(value, float) and _JULIAN_DAYS[0] <= value < _JULIAN_DAYS[1]:
            since = timedelta(milliseconds=round((value - _EPOCH_JULIAN_DAY) * 86_400_000))
        elif abs(value) >= _MICROSECONDS_FROM:
            since = timedelta(microseconds=round(value))
        elif abs(value) >= _MILLISECONDS_FROM:
            since = timedelta(milliseconds=value)
        else:
            since = timedelta(seconds=value)
        moment = datetime(1970, 1, 1) + since
    except (OverflowError, ValueError, TypeError):
        return None
    return moment.isoformat(" ", "microseconds")


def _utc(text: str) -> str | None:
    """A time with an offset from UTC, in UTC, without it."""
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC)
    except (ValueError, OverflowError, AttributeError):
        return None
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")


class _UnfitError(Exception):
    """What a jsonb cannot hold."""


def _json(text: str) -> str | None:
    """JSON as PostgreSQL writes a jsonb."""
    try:
        return _written(_read(text), ", ", ": ")
    except (ValueError, _UnfitError, RecursionError, InvalidOperation):
        return None


def _read(text: str) -> object:
    return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise _UnfitError(constant)


def _written(value: object, comma: str, colon: str) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Decimal():
            if value.adjusted() >= _DIGITS_AT_MOST:
                raise _UnfitError(value)
            return format(abs(value) if value == 0 else value, "f")
        case str():
            return _quoted(value)
        case list():
            return "[" + comma.join(_written(one, comma, colon) for one in value) + "]"
        case dict():
            pairs = sorted(value.items(), key=lambda pair: _order(pair[0]))
            written = (f"{_quoted(key)}{colon}{_written(one, comma, colon)}" for key, one in pairs)
            return "{" + comma.join(written) + "}"
    raise _UnfitError(value)


def _order(key: str) -> tuple[int, bytes]:
    """Shorter keys first: https://www.postgresql.org/docs/current/datatype-json.html."""
    encoded = key.encode("utf-8", "surrogatepass")
    return len(encoded), encoded


_ESCAPES: Final = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"'}
_ESCAPED: Final = re.compile(r'[\x00-\x1f"\\]')
_UNFIT: Final = re.compile("[\x00\ud800-\udfff]")


def _quoted(text: str) -> str:
    if _UNFIT.search(text):
        raise _UnfitError(text)
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    letter = found.group()
    if letter == "\\":
        return "\\\\"
    return _ESCAPES.get(letter) or f"\\u{ord(letter):04x}"


def _array_json(text: str) -> str | None:
    """A list as PostgreSQL's ``array_to_json`` writes it."""
    try:
        value = _read(text)
        return _written(value, ",", ":") if isinstance(value, list) else None
    except (ValueError, _UnfitError, RecursionError, InvalidOperation):
        return None


def _array(text: str, _element: str) -> str | None:
    """A list in the braces of PostgreSQL's arrays."""
    try:
        value = _read(text)
        return _braces(value) if isinstance(value, list) else None
    except (ValueError, _UnfitError, RecursionError, InvalidOperation):
        return None


def _braces(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "t" if value else "f"
        case list():
            return "{" + ",".join(map(_braces, value)) + "}"
        case str():
            if "\x00" in value:
                raise _UnfitError(value)
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Decimal():
            return format(value, "f")
        case _:
            raise _UnfitError(value)


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_interface(text))
    except (ValueError, TypeError):
        return None
