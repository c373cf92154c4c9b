"""Lists of JSON as PostgreSQL's arrays: what each element is there.

Invariants:
- An element is written as PostgreSQL writes it, so both sides have the same text of it.
- What PostgreSQL would refuse has no place: what does not fit the elements' type, and lists of
  different lengths, or empty ones, in a list.
"""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, TypeAlias
from uuid import UUID

__all__ = ["Elements", "elements"]

Elements: TypeAlias = list["Elements | str | None"]

_MODIFIED: Final = re.compile(r"([a-z0-9 ]+?)\s*(?:\((\d+)(?:,\s*(\d+))?\))?")
_UNFIT: Final = re.compile("[\x00\ud800-\udfff]")
_FINER_THAN_MICROSECONDS: Final = re.compile(r"[.,]\d{7}")


def elements(text: str, kind: str) -> Elements:
    """The elements of a list of JSON, as PostgreSQL writes those of a type.

    Raises:
        ValueError: It is no list, or one of them has no place.
    """
    value = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    found = _MODIFIED.fullmatch(kind)
    if not isinstance(value, list) or found is None:
        raise ValueError(text)
    write = _WRITTEN.get(found[1], _any)
    read = _nested(value, lambda one: write(one, found[2], found[3]))
    _shape(read)
    return read


def _nested(value: list[object], write: Callable[[object], str]) -> Elements:
    return [
        _nested(one, write) if isinstance(one, list) else None if one is None else write(one)
        for one in value
    ]


def _shape(value: Elements) -> tuple[int, ...]:
    """How long it is in each dimension, if it is the same everywhere."""
    inner = {_shape(one) if isinstance(one, list) else () for one in value}
    if len(inner) > 1 or any(0 in one for one in inner):
        raise ValueError(value)
    return (len(value), *(inner.pop() if inner else ()))


def _any(value: object, _first: str | None, _second: str | None) -> str:
    if isinstance(value, bool) or not isinstance(value, str | Decimal):
        raise ValueError(value)
    return _string(value, None, None) if isinstance(value, str) else format(value, "f")


def _string(value: object, most: str | None, _second: str | None) -> str:
    if not isinstance(value, str) or _UNFIT.search(value):
        raise ValueError(value)
    if most is not None and len(value) > int(most):
        raise ValueError(value)
    return value


def _whole(bits: int) -> Callable[[object, str | None, str | None], str]:
    def write(value: object, _first: str | None, _second: str | None) -> str:
        if not isinstance(value, Decimal) or value != value.to_integral_value():
            raise ValueError(value)
        number = int(value)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError(value)
        return str(number)

    return write


def _boolean(value: object, _first: str | None, _second: str | None) -> str:
    if not isinstance(value, bool):
        raise ValueError(value)
    return "true" if value else "false"


def _shortest(value: float) -> Decimal:
    """The fewest digits that only this number is nearest to.

    Python also takes digits half-way to the next number where that is even; PostgreSQL has one
    more then (its ``d2s.c``).
    """
    number = Decimal(repr(value))
    others = [math.nextafter(value, end) for end in (math.inf, -math.inf)]
    half_way = [(Decimal(value) + Decimal(other)) / 2 for other in others if not math.isinf(other)]
    digits = len(number.normalize().as_tuple().digits)
    while number in half_way or float(number) != value:
        number = Decimal(f"{value:.{digits}e}")
        digits += 1
    return number


def _float(value: object, _first: str | None, _second: str | None) -> str:
    """With an exponent from 1e15 on, and below 0.0001."""
    if not isinstance(value, Decimal) or abs(float(value)) == float("inf"):
        raise ValueError(value)
    number = _shortest(float(value))
    if number == 0:
        return "-0" if number.is_signed() else "0"
    sign, digits, _ = number.normalize().as_tuple()
    if -4 <= number.adjusted() < 15:
        return format(number.normalize(), "f")
    first, *more = map(str, digits)
    fraction = f".{''.join(more)}" if more else ""
    return f"{'-' * sign}{first}{fraction}e{number.adjusted():+03d}"


def _numeric(value: object, precision: str | None, scale: str | None) -> str:
    number = Decimal(value) if isinstance(value, str) else value
    if not isinstance(number, Decimal) or not number.is_finite() or abs(number.adjusted()) > 1000:
        raise ValueError(value)
    if precision is not None:
        rounded = number.quantize(Decimal(1).scaleb(-int(scale or 0)))
        if rounded != number or rounded.adjusted() >= int(precision) - int(scale or 0):
            raise ValueError(value)
        number = rounded
    return format(abs(number) if number == 0 else number, "f")


def _date(value: object, _first: str | None, _second: str | None) -> str:
    text = _string(value, "10", None)
    if date.fromisoformat(text).isoformat() != text:
        raise ValueError(value)
    return text


def _timestamp(value: object, _first: str | None, _second: str | None) -> str:
    moment = _moment(value)
    if moment.tzinfo is not None:
        raise ValueError(value)
    return _shown(moment)


def _timestamp_with_zone(value: object, _first: str | None, _second: str | None) -> str:
    moment = _moment(value)
    return _shown(moment if moment.tzinfo is None else moment.astimezone(UTC)) + "+00"


def _moment(value: object) -> datetime:
    text = _string(value, None, None)
    if _FINER_THAN_MICROSECONDS.search(text):
        raise ValueError(value)
    return datetime.fromisoformat(text)


def _shown(moment: datetime) -> str:
    text = moment.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if "." in text else text


def _uuid(value: object, _first: str | None, _second: str | None) -> str:
    return str(UUID(_string(value, "36", None)))


_WRITTEN: Final = {
    "smallint": _whole(16),
    "integer": _whole(32),
    "bigint": _whole(64),
    "boolean": _boolean,
    "double precision": _float,
    "numeric": _numeric,
    "text": _string,
    "character varying": _string,
    "date": _date,
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamp_with_zone,
    "uuid": _uuid,
}
