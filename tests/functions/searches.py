"""Random patterns and texts, searched by the driver and by Django's function."""

import random
from collections.abc import Callable
from typing import Any

from tests.functions.calls import Value
from tests.functions.comparison import Outcome

from oxlite import sqlite3
from oxlite._native import create_pattern_function
from oxlite.django.sqlite3.functions import REGEXP
from oxlite.patterns import pattern_of

_CHARACTERS = "aabbcAB1_ -\n"
_OTHERS = "\x1c\t.éß\u017f\u212a\u0130\u0663\u2028\U0001f600\0[]^$\\"
_ATOMS = (
    ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "[ab]", "[^a]", r"[\d_]", r"[^\w]", "[a-c]",
    r"[^\s1]", "[A-Z]", r"\.", r"\n", r"[\W\d]", "é", "[^é]", "[à-ÿ]", "[\x1c- ]", "k", "s",
)  # fmt: skip
_REPEATS = ("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "??")
_RARE = (
    "(?=a)", "(?!b)", r"\1", "(?i:a)", "(?P<n>a)(?P=n)", "(?>a)", "a*+", "(", "[", "*", r"\Z",
    r"\A", r"\b", r"\B", "(?m)", "(?x)", "(?<=a)", "$", "^", "(?(1)a|b)", "(?#a)", "(?-i:a)",
    r"\u0041",
)  # fmt: skip


class _Source:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def pattern(self) -> Value:
        if self._chance.random() < 0.01:
            return self._chance.choice((None, 1, 1.5, b"a", "", b"text:\xff", "a" * 2000))
        flags = self._chance.choice(
            ("", "", "", "(?i)", "(?i)", "(?s)", "(?x)", "(?m)", "(?a)", "(?is)")
        )
        begin, end = self._chance.choice(("", "", "^")), self._chance.choice(("", "", "$", r"\Z"))
        return flags + begin + self._branches(2) + end

    def _branches(self, depth: int) -> str:
        count = self._chance.choice((1, 1, 1, 2, 3))
        return "|".join(self._sequence(depth) for _ in range(count))

    def _sequence(self, depth: int) -> str:
        return "".join(self._repeated(depth) for _ in range(self._chance.randrange(1, 4)))

    def _repeated(self, depth: int) -> str:
        if self._chance.random() < 0.03:
            return self._chance.choice(_RARE)
        atom = self._atom(depth)
        return atom + self._chance.choice(_REPEATS) if self._chance.random() < 0.35 else atom

    def _atom(self, depth: int) -> str:
        chance = self._chance.random()
        if depth and chance < 0.2:
            return self._chance.choice(("(", "(?:")) + self._branches(depth - 1) + ")"
        if chance < 0.5:
            return self._chance.choice(_ATOMS)
        if chance < 0.53:
            return self._chance.choice(_OTHERS)
        return self._chance.choice("aabbcAB1_")

    def text(self) -> Value:
        chance = self._chance.random()
        if chance < 0.02:
            return self._chance.choice(
                (None, 12, -1, 1.5, b"ab", "", b"text:a\xff", b"text:\xed\xa0\x80")
            )
        among = _CHARACTERS + _OTHERS if chance < 0.3 else _CHARACTERS
        return "".join(self._chance.choices(among, k=self._chance.randrange(12)))


def with_pattern_function(original: Callable[..., Any], *, is_ours: bool) -> sqlite3.Connection:
    """A connection with ``REGEXP``: the driver's over another, or that other."""
    connection = sqlite3.connect(":memory:")
    if is_ours:
        create_pattern_function(connection, original, pattern_of, searches_integers=True)
    else:
        connection.create_function("regexp", 2, original, deterministic=True)
    return connection


def compare_searches(count: int, seed: int) -> Outcome:
    """Search so many random patterns, each in a few texts, by both."""
    found = Outcome()

    ours = with_pattern_function(found.counted("regexp", REGEXP), is_ours=True)
    theirs = with_pattern_function(REGEXP, is_ours=False)
    source = _Source(seed)
    for _ in range(count // 4):
        pattern = source.pattern()
        for _ in range(4):
            found.compare(("regexp", (pattern, source.text())), ours, theirs)
    ours.close()
    theirs.close()
    return found
