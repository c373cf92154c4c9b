"""Calls of functions on two connections: by the driver, and by Django's own functions in Python."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.functions.calls import Call, Calls, Value

from oxlite import sqlite3
from oxlite._native import create_date_functions
from oxlite.django.sqlite3.functions import ORIGINALS, clock_change

_ARGUMENTS = {
    "django_date_extract": 2, "django_date_trunc": 4, "django_datetime_cast_date": 3,
    "django_datetime_cast_time": 3, "django_datetime_extract": 4, "django_datetime_trunc": 4,
    "django_time_extract": 2, "django_time_trunc": 4, "django_time_diff": 2,
    "django_timestamp_diff": 2, "django_format_dtdelta": 3,
}  # fmt: skip
_AS_TEXT = b"text:"
"""Bytes that begin so are a text, which may be no Unicode."""


@dataclass
class Outcome:
    """What came of a comparison.

    Attributes:
        calls: How many there were of each function.
        originals: How many of them the driver had Django's function do.
        errors: How many of them were errors.
        differences: Calls with the two outcomes, where they are not the same.
    """

    calls: Counter[str] = field(default_factory=Counter)
    originals: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[Call, Any, Any]] = field(default_factory=list)

    def counted(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function of Django's, whose calls are counted."""

        def call(*arguments: Any) -> Any:  # noqa: ANN401 - whatever SQLite has
            self.originals[name] += 1
            return original(*arguments)

        return call

    def compare(self, call: Call, ours: sqlite3.Connection, theirs: sqlite3.Connection) -> None:
        """Make a call on both."""
        expected = outcome(theirs, call)
        self.calls[call[0]] += 1
        self.errors[call[0]] += issubclass(expected[0], Exception)
        if (actual := outcome(ours, call)) != expected:
            self.differences.append((call, expected, actual))


def with_originals() -> sqlite3.Connection:
    """A connection with Django's functions in Python."""
    connection = sqlite3.connect(":memory:")
    for name, original in ORIGINALS.items():
        connection.create_function(name, _ARGUMENTS[name], original, deterministic=True)
    return connection


def with_ours(originals: dict[str, Callable[..., Any]]) -> sqlite3.Connection:
    """A connection with the driver's functions over others."""
    connection = sqlite3.connect(":memory:")
    create_date_functions(connection, originals, clock_change)
    return connection


def outcome(connection: sqlite3.Connection, call: Call) -> tuple[type, str]:
    """What a call returns, to the bit, or how it fails."""
    name, arguments = call
    marks = ", ".join(map(mark, arguments))
    try:
        (value,) = connection.execute(
            f"SELECT {name}({marks})", [*map(bound, arguments)]
        ).fetchone()
    except (sqlite3.Error, OverflowError, MemoryError) as error:
        return type(error), str(error)
    return type(value), repr(value)


def _is_text(value: Value) -> bool:
    return isinstance(value, bytes) and value.startswith(_AS_TEXT)


def mark(value: Value) -> str:
    """What stands for a value in SQL."""
    return "CAST(? AS TEXT)" if _is_text(value) else "?"


def bound(value: Value) -> Value:
    """What is bound to its mark."""
    return value[len(_AS_TEXT) :] if isinstance(value, bytes) and _is_text(value) else value


def compare(count: int, seed: int, told: Callable[[int], None] = lambda _: None) -> Outcome:
    """Make so many calls on both; ``told`` hears now and then how many there were."""
    found = Outcome()

    ours = with_ours({name: found.counted(name, original) for name, original in ORIGINALS.items()})
    theirs = with_originals()
    calls = Calls(seed)
    for number in range(count):
        call = calls.next()
        found.compare(call, ours, theirs)
        if number % 10_000 == 0:
            told(number)
    ours.close()
    theirs.close()
    return found
