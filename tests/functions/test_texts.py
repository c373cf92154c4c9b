"""The driver's small functions of texts and integers are Django's: the same results and errors."""

import pytest

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

from tests.functions.calls import Call, Value
from tests.functions.comparison import outcome
from tests.functions.test_functions import refused
from tests.functions.texts import compare_texts, with_small_functions

import oxlite
from oxlite import sqlite3
from oxlite.django.sqlite3 import functions

REFUSED = dict.fromkeys(functions.SMALL, refused)
LARGEST = 2**24
"""The most bytes that the driver makes of a text."""


def outcomes(call: Call) -> tuple[tuple[type, str], tuple[type, str]]:
    """Ours and Django's."""
    ours = with_small_functions(functions.SMALL, are_ours=True)
    theirs = with_small_functions(functions.SMALL, are_ours=False)
    found = outcome(ours, call), outcome(theirs, call)
    ours.close()
    theirs.close()
    return found


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_random_calls_have_one_outcome(seed: int, encoding: str) -> None:
    found = compare_texts(30_000, seed, encoding)
    assert found.differences == []
    assert found.calls.keys() == functions.SMALL.keys()
    for name, count in found.calls.items():
        assert found.originals[name] < 0.6 * count
        assert found.errors[name]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("LPAD", ("é", 4, "xy"), "xyxé"),
        ("RPAD", ("é", 4, "xy"), "éxyx"),
        ("LPAD", ("abc", 2, "x"), "ab"),
        ("RPAD", ("abc", -1, "x"), "ab"),
        ("LPAD", ("abc", -(2**63), "x"), ""),
        ("LPAD", ("abc", 2**63 - 1, ""), "abc"),
        ("RPAD", ("abc", 2**63 - 1, ""), "abc"),
        ("LPAD", (None, "no count", b"x"), None),
        ("RPAD", ("abc", True, "x"), "a"),
        ("REPEAT", ("ab", 3), "ababab"),
        ("REPEAT", ("ab", True), "ab"),
        ("REPEAT", ("ab", -1), ""),
        ("REPEAT", ("", 2**63 - 1), ""),
        ("REPEAT", (b"ab", None), None),
        ("REVERSE", ("a\u0301\U0001f600\0b",), "b\0\U0001f600\u0301a"),
        ("REVERSE", (None,), None),
        ("SIGN", (-(2**63),), -1),
        ("SIGN", (-0.0,), 0),
        ("SIGN", (float("inf"),), 1),
        ("SIGN", (float("nan"),), None),
        ("BITXOR", (-(2**63), 2**63 - 1), -1),
        ("BITXOR", (None, "a"), None),
    ],
)
def test_the_driver_answers(name: str, arguments: tuple[Value, ...], expected: Value) -> None:
    connection = with_small_functions(REFUSED, are_ours=True)
    assert outcome(connection, (name, arguments)) == (type(expected), repr(expected))
    connection.close()
    _, theirs = outcomes((name, arguments))
    assert theirs == (type(expected), repr(expected))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("LPAD", ("a", 2.0, "b")),
        ("LPAD", (b"a", 3, b"b")),
        ("LPAD", (1, 2, "b")),
        ("RPAD", ("a", "3", "b")),
        ("REPEAT", (3, "a")),
        ("REPEAT", (b"ab", 2)),
        ("REPEAT", ("a", 1.0)),
        ("REVERSE", (b"ab",)),
        ("REVERSE", (12,)),
        ("REVERSE", (b"text:\xed\xa0\x80",)),
        ("SIGN", ("1",)),
        ("SIGN", (b"1",)),
        ("BITXOR", (1, 1.0)),
        ("BITXOR", (None, b"text:\xff")),
        ("LPAD", (b"text:\xff", None, "a")),
    ],
)
def test_all_else_is_djangos(name: str, arguments: tuple[Value, ...]) -> None:
    ours, theirs = outcomes((name, arguments))
    assert ours == theirs
    connection = with_small_functions(REFUSED, are_ours=True)
    refusal, _ = outcome(connection, (name, arguments))
    assert refusal is sqlite3.OperationalError
    connection.close()


@pytest.mark.parametrize(
    "call",
    [
        ("REPEAT", ("a", 2**50)),
        ("REPEAT", ("ab", 2**63 - 1)),
        ("LPAD", ("a", 2**50, "b")),
        ("LPAD", ("a", 2**63 - 1, "bc")),
        ("RPAD", ("a", 2**62, "b")),
        ("RPAD", ("a", 2**63 - 1, "bc")),
        ("REPEAT", ("a", LARGEST)),
        ("REPEAT", ("a", LARGEST + 1)),
        ("LPAD", ("a", LARGEST, "b")),
        ("RPAD", ("é" * 10, LARGEST // 2 + 1, "é")),
    ],
    ids=str,
)
def test_what_is_large_has_one_outcome(call: Call) -> None:
    ours, theirs = outcomes(call)
    assert ours == theirs


def test_what_is_too_large_for_the_connection_is_an_error() -> None:
    for are_ours in (True, False):
        connection = with_small_functions(functions.SMALL, are_ours=are_ours)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1000)
        for call in (("REPEAT", ("é", 501)), ("LPAD", ("", 1001, "a")), ("RPAD", ("", 1001, "a"))):
            kind, text = outcome(connection, call)
            assert (kind, text) == (sqlite3.DataError, "string or blob too big")
        connection.close()


def test_a_connection_of_django_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "SMALL", REFUSED)
    connection = oxlite.connect(":memory:")
    functions.register_functions(connection)
    query = "SELECT LPAD('a', 2, 'b'), REVERSE('ab'), SIGN(-2.5), BITXOR(3, 1)"
    assert connection.execute(query).fetchone() == ("ba", "ba", -1, 2)
    connection.close()
