"""Arguments, results and instants, as they are in the file and in a program.

Invariant: what cannot be written is refused when it is given, and named.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["decoded", "encoded_call", "encoded_result", "instant", "moment"]

_BYTES_AT_MOST: Final = 1 << 20
_LATEST: Final = 1e11
"""As the table has it."""

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encoded_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of a call, as JSON: a list of a list and an object.

    Raises:
        TypeError: One of them cannot be JSON.
        ValueError: One is no number that JSON has, or text with surrogates; or they are longer than
            a mebibyte.
    """
    try:
        text = _encode((args, kwargs))
        if text.isascii() and len(text) <= _BYTES_AT_MOST:
            return text
        length = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused(name, args, kwargs, error) from None
    if length > _BYTES_AT_MOST:
        raise ValueError(
            f"the arguments of {name} have {length:,} bytes of at most {_BYTES_AT_MOST:,}: put what"
            " is larger into a table or a file, and pass its key"
        )
    return text


def _refused(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> TypeError | ValueError:
    """The error that names which argument cannot be written."""
    named = [(f"argument {number}", one) for number, one in enumerate(args, 1)]
    named += [(f"argument {key!r}", one) for key, one in kwargs.items()]
    for which, one in named:
        try:
            _encode(one).encode()
        except (TypeError, ValueError, RecursionError) as reason:
            kind = TypeError if isinstance(reason, TypeError) else ValueError
            return kind(
                f"{which} of {name} cannot be JSON ({_reason(reason)}): pass text, numbers, lists"
                " and dicts of these, or the key of what is in the database"
            )
    return ValueError(f"the arguments of {name} cannot be JSON: {_reason(error)}")


def encoded_result(name: str, value: object) -> str | None:
    """A result, as JSON; ``None`` for none.

    Raises:
        TypeError, ValueError: As for arguments.
    """
    if value is None:
        return None
    try:
        text = _encode(value)
        length = len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"what {name} has returned cannot be JSON ({_reason(error)})") from None
    if length > _BYTES_AT_MOST:
        raise ValueError(
            f"what {name} has returned has {length:,} bytes of at most {_BYTES_AT_MOST:,}"
        )
    return text


def decoded(name: str, arguments: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a row.

    Raises:
        ValueError: They are none: another program has written them.
    """
    try:
        args, kwargs = json.loads(arguments)
        if isinstance(args, list) and isinstance(kwargs, dict):
            return args, kwargs
    except (TypeError, ValueError, RecursionError):
        pass
    raise ValueError(
        f"the arguments of {name} are a JSON list of a list and an object, such as [[7], {{}}]"
    )


def instant(name: str, when: datetime | timedelta | float | None, now: float) -> float | None:
    """When something is, in seconds since 1970.

    Args:
        name: Of the argument.
        when: An aware ``datetime``, or so long after now: a ``timedelta``, or seconds.
        now: What time it is.

    Raises:
        TypeError: It is something else.
        ValueError: A ``datetime`` without a time zone, or no finite number.
    """
    found = _instant(name, when, now)
    if found is not None and abs(found) > _LATEST:
        raise ValueError(f"{name} is before the year 5138, not in {found - now:g} s")
    return found


def _instant(name: str, when: datetime | timedelta | float | None, now: float) -> float | None:
    if when is None:
        return None
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(
                f"{name} is a datetime with a time zone, such as datetime.now(timezone.utc), or a"
                " timedelta from now on"
            )
        return when.timestamp()
    if isinstance(when, timedelta):
        return now + when.total_seconds()
    if isinstance(when, bool) or not isinstance(when, int | float):
        raise TypeError(
            f"{name} is a datetime with a time zone, a timedelta or seconds from now on, not"
            f" {type(when).__name__}"
        )
    if not math.isfinite(when):
        raise ValueError(f"{name} is a number of seconds, not {when!r}")
    return now + when


def moment(seconds: float | None) -> datetime | None:
    """An instant of a row; ``None`` where Python has none for it."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
