"""Random calls of Django's small functions, of texts and integers, by the driver and by Django.

Invariant: a count has the original take little memory, or more than there is in any machine.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.functions.calls import Call, Value
from tests.functions.comparison import Outcome

from oxlite import sqlite3
from oxlite._native import create_small_functions
from oxlite.django.sqlite3.functions import SMALL

ARGUMENTS: Final = {"BITXOR": 2, "LPAD": 3, "REPEAT": 2, "REVERSE": 1, "RPAD": 3, "SIGN": 1}
LIMIT: Final = 100_000
"""The longest text of the connections that are compared, in bytes."""

_CHARACTERS: Final = "aabc \0é\xad\u0301\u05d0\ud7ff\ue000\uffff\U00010000\U0001f600"
_NO_TEXTS: Final[tuple[Value, ...]] = (
    None, 0, 3, -2, 2**62, 1.5, -0.0, float("inf"), b"", b"ab", b"\xff", b"text:\xff",
    b"text:a\xed\xa0\x80", b"text:\xc3", b"text:\xf4\x90\x80\x80", b"text:\xc0\x80",
)  # fmt: skip
_COUNTS: Final = (
    0, -1, 1, 2, LIMIT - 1, LIMIT, LIMIT + 1, LIMIT // 2, LIMIT // 4, 2**50, 2**62, 2**62 + 1,
    2**63 - 1, -(2**63), -(2**63) + 1, -(2**31), -LIMIT,
)  # fmt: skip
_NO_COUNTS: Final[tuple[Value, ...]] = (
    None, 2.0, -1.5, float("inf"), float("-inf"), 1e300, "2", "", "a", b"2", b"", b"text:\xff",
)  # fmt: skip
_NUMBERS: Final[tuple[Value, ...]] = (
    0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 0.0, -0.0, 1.0, -1.5, 5e-324, -5e-324, 1e308,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip


class _Source:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def call(self) -> Call:
        name = self._chance.choice(
            ("LPAD", "RPAD", "LPAD", "RPAD", "REPEAT", "REVERSE", "SIGN", "BITXOR")
        )
        match name:
            case "LPAD" | "RPAD":
                return name, (self._text(), self._count(), self._text())
            case "REPEAT":
                arguments = (self._text(), self._count())
                return name, arguments if self._chance.random() < 0.95 else arguments[::-1]
            case "REVERSE":
                return name, (self._text(),)
            case "SIGN":
                return name, (self._number(),)
            case _:
                return name, (self._number(), self._number())

    def _text(self) -> Value:
        if self._chance.random() < 0.05:
            return self._chance.choice(_NO_TEXTS)
        among = "ab" if self._chance.random() < 0.3 else _CHARACTERS
        return "".join(self._chance.choices(among, k=self._chance.choice((0, 1, 2, 3, 8, 40))))

    def _count(self) -> Value:
        chance = self._chance.random()
        if chance < 0.05:
            return self._chance.choice(_NO_COUNTS)
        if chance < 0.1:
            return self._chance.choice(_COUNTS)
        return self._chance.randrange(-50, 100)

    def _number(self) -> Value:
        chance = self._chance.random()
        if chance < 0.05:
            return self._chance.choice((*_NO_TEXTS, *_NO_COUNTS))
        if chance < 0.3:
            return self._chance.choice(_NUMBERS)
        if chance < 0.4:
            return self._chance.gauss(0, 1e6)
        return self._chance.choice((1, -1)) * (
            self._chance.getrandbits(63) >> self._chance.randrange(63)
        )


def with_small_functions(
    functions: Mapping[str, Callable[..., Any]], *, are_ours: bool, encoding: str = "UTF-8"
) -> sqlite3.Connection:
    """A connection with the driver's functions over others, or with those others."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    if are_ours:
        create_small_functions(connection, dict(functions))
    else:
        for name, function in functions.items():
            connection.create_function(name, ARGUMENTS[name], function, deterministic=True)
    return connection


def compare_texts(count: int, seed: int, encoding: str = "UTF-8") -> Outcome:
    """Make so many random calls on both."""
    found = Outcome()

    functions = {name: found.counted(name, original) for name, original in SMALL.items()}
    ours = with_small_functions(functions, are_ours=True, encoding=encoding)
    theirs = with_small_functions(SMALL, are_ours=False, encoding=encoding)
    for connection in (ours, theirs):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LIMIT)
    source = _Source(seed)
    for _ in range(count):
        call = source.call()
        found.compare(call, ours, theirs)
    ours.close()
    theirs.close()
    return found
