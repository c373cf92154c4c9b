"""Values that SQLite's own functions cannot write as PostgreSQL reads them: SQL functions for that.

Invariant: a function answers NULL where a value has no place in the type; it never raises.
"""

import ipaddress
import json
import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Decimal, localcontext
from typing import Final, NoReturn

from oxlite import _native
from oxlite.promotion.arrays import Elements, elements
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
_SCALE_AT_MOST: Final = 16_383
"""After it."""
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
"""Decimal reads more: ``1_000``, and digits of other scripts."""
_FINER_THAN_MICROSECONDS: Final = re.compile(r"[.,]\d{7}")
_NOISE_ULPS: Final = 8
"""So far is a sum of a few doubles from the number that was meant, at most: 0.1 + 0.2 is 1 ulp."""


def register(connection: Connection) -> None:
    """Register them with a connection."""
    _native.create_copy_functions(connection)
    for name, count, function in (
        ("oxlite_float_text", 1, _float_text),
        ("oxlite_float_bits", 2, _float_bits),
        ("oxlite_decimal", 3, _decimal),
        ("oxlite_moment", 1, _moment),
        ("oxlite_utc", 1, _utc),
        ("oxlite_json", 1, _json),
        ("oxlite_array", 2, _array),
        ("oxlite_array_json", 2, _array_json),
        ("oxlite_address", 1, _address),
        ("oxlite_address_bits", 1, _address_bits),
    ):
        connection.create_function(name, count, _answering(function), deterministic=True)


def _answering(function: Callable[..., str | None]) -> Callable[..., str | None]:
    """The same, with NULL for what it was not made for; SQLite asks of that as well.

    A text comes as its bytes: as a text one that is no UTF-8 would end the statement.
    """

    def answer(value: object, *more: object) -> str | None:
        try:
            return function(value.decode() if isinstance(value, bytes) else value, *more)
        except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            return None
        except _UnfitError:
            return None

    return answer


def _float_text(value: float) -> str:
    number = float(value)
    if number in {float("inf"), float("-inf")}:
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number)


def _float_bits(value: float, size: int) -> str | None:
    if isinstance(value, str):
        return None
    packed = struct.pack(">f" if size == 4 else ">d", float(value))
    is_too_small = value != 0 and packed[0] in {0x00, 0x80} and not any(packed[1:])
    return None if is_too_small else packed.hex()


def _decimal(value: int | float | str, precision: int | None, scale: int | None) -> str | None:
    """A number in digits alone; with a scale, if no more of it is lost than arithmetic's noise."""
    if type(value) is int and scale is None:
        return str(value)
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    number = Decimal(repr(value) if isinstance(value, float) else value)
    if not _is_numeric(number):
        return None
    if scale is not None and precision is not None:
        with localcontext(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN):
            rounded = number.quantize(Decimal(1).scaleb(-scale))
            noise = Decimal(_NOISE_ULPS * math.ulp(value)) if isinstance(value, float) else 0
            if abs(rounded - number) > noise or rounded.adjusted() >= precision - scale:
                return None
        number = rounded
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def _is_numeric(number: Decimal) -> bool:
    """Whether a numeric holds it, with as many digits as it has."""
    exponent = number.as_tuple().exponent
    return (
        isinstance(exponent, int)
        and exponent >= -_SCALE_AT_MOST
        and number.adjusted() < _DIGITS_AT_MOST
    )


def _moment(value: int | float) -> str:
    """A number as a time: seconds, milliseconds or microseconds since 1970, or a Julian day."""
    if isinstance(value, float) and _JULIAN_DAYS[0] <= value < _JULIAN_DAYS[1]:
        since = timedelta(milliseconds=round((value - _EPOCH_JULIAN_DAY) * 86_400_000))
    elif abs(value) >= _MICROSECONDS_FROM:
        since = timedelta(microseconds=round(value))
    elif abs(value) >= _MILLISECONDS_FROM:
        since = timedelta(milliseconds=value)
    else:
        since = timedelta(seconds=value)
    return (datetime(1970, 1, 1) + since).isoformat(" ", "microseconds")


def _utc(text: str) -> str | None:
    """A time with an offset from UTC, in UTC, without it."""
    if _FINER_THAN_MICROSECONDS.search(text):
        return None
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")


class _UnfitError(Exception):
    """What a jsonb cannot hold."""


def _json(text: str) -> str:
    """JSON as PostgreSQL writes a jsonb."""
    return _written(_read(text), ", ", ": ")


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
            if not _is_numeric(value):
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


def _array_json(text: str, kind: str) -> str:
    """A list as PostgreSQL's ``array_to_json`` writes it, of texts."""
    return _written(elements(text, kind), ",", ":")


def _array(text: str, kind: str) -> str:
    """A list in the braces of PostgreSQL's arrays."""
    return _braces(elements(text, kind))


def _braces(value: Elements | str | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "{" + ",".join(map(_braces, value)) + "}"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _address(text: str) -> str | None:
    return None if "%" in text else str(ipaddress.ip_interface(text))


def _address_bits(text: str) -> str:
    """An address as PostgreSQL sends it: family, length of the network, no CIDR, and its bytes."""
    address = ipaddress.ip_interface(text)
    packed = address.ip.packed
    family = 2 if address.version == 4 else 3
    return bytes([family, address.network.prefixlen, 0, len(packed), *packed]).hex()
