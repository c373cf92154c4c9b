"""What the driver says of regular expressions is what Python says."""

import re
import time

import pytest

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

from tests.functions.searches import compare_searches, with_pattern_function

import oxlite
from oxlite._native import Pattern
from oxlite.django.sqlite3 import functions
from oxlite.patterns import pattern_of

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def test_random_searches_have_one_outcome(seed: int) -> None:
    found = compare_searches(40_000, seed)
    assert found.differences == []
    assert found.originals["regexp"] < 0.7 * found.calls["regexp"]
    assert found.errors["regexp"]


@pytest.mark.parametrize(
    "pattern",
    [
        "abc", "^a.c$", r"\d{4}-\d\d", "(?i)straSSe", r"(?:a|b)+c", r"[^,]+,", "é+", r"\bword\b",
        r"a$", r"(a|b$)", r"^\s*$", "(?x) a  b # c", "",
    ],
)  # fmt: skip
def test_what_is_on_the_list_means_the_same(pattern: str) -> None:
    compiled = pattern_of(pattern)
    texts = ("", "a", "abc", "abc\n", "a\nc", "2024-05-16", "STRASSE", "a,b", "word", "swords", 
             "b\n\n", "ab", " \n")  # fmt: skip
    if compiled is None:  # nothing repeats nothing, or an end in the middle
        assert pattern in (r"^\s*$x",)
        return
    for text in texts:
        assert compiled.is_in(text.encode()) == bool(re.search(pattern, text)), text


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1", "(?=a)", "(?<!a)b", "(?i:a)b", "(?m)^a", "(?a)a", r"a\B", "a$b", "(a$)+", "(a*)*",
        "a{2000}", "(?i)é", "(?i)\u212a", "(", "a" * 1001, "\ud800",
        "((a{1,1000}){1,1000}){1,1000}",
    ],
)  # fmt: skip
def test_what_is_not_on_the_list_is_pythons(pattern: str) -> None:
    assert pattern_of(pattern) is None


def test_of_other_texts_than_ascii_python_is_asked() -> None:
    for pattern in (r"\d", r"\w", r"\s", r"a\b", "(?i)k"):
        compiled = pattern_of(pattern)
        assert compiled is not None
        assert compiled.is_in("é".encode()) is None
    plain = pattern_of("a.c")
    assert plain is not None
    assert plain.is_in("aéc".encode()) is True
    assert plain.is_in(b"a\xffc") is None


def test_no_pattern_takes_for_ever() -> None:
    """Python would look for the end of the world here."""
    connection = oxlite.connect(":memory:")
    functions.register_functions(connection)
    began = time.monotonic()
    query = "SELECT ? REGEXP '^(a+)+$'"
    assert connection.execute(query, ("a" * 50_000 + "b",)).fetchone() == (0,)
    assert time.monotonic() - began < 10
    connection.close()


def test_a_wrong_expression_is_refused() -> None:
    with pytest.raises(ValueError, match="expression"):
        Pattern("(", False, False)


def test_the_original_stays_behind_it() -> None:
    connection = with_pattern_function(lambda pattern, text: 7, is_ours=True)
    for pattern, text, expected in (
        ("a", "cat", 1), ("a", 1, 0), ("1", 21, 1), ("(?=a)", "cat", 7), ("a", b"a", 7),
        (1, "a", 7), ("a", None, None), (None, "a", 7),
    ):  # fmt: skip
        assert connection.execute("SELECT ? REGEXP ?", (text, pattern)).fetchone() == (expected,)
    connection.close()
