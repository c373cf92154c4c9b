"""Docstrings are Markdown on the site, though they are written to be read as text."""

import textwrap

import pytest

pytest.importorskip("griffe", reason="the group 'site' is not installed")

from scripts.site.docstrings import fenced


def of(text: str) -> str:
    return fenced(textwrap.dedent(text).strip("\n"))


def test_a_session_is_code() -> None:
    assert of(">>> a = 1\n... + 2\n3\n\nWords.") == "```pycon\n>>> a = 1\n... + 2\n3\n```\n\nWords."


def test_a_session_of_a_section_is_left_to_griffe() -> None:
    text = "One.\n\nExamples:\n    >>> a\n    1"
    assert fenced(text) == text


def test_what_is_indented_after_two_colons_is_code() -> None:
    found = of(
        """
        As follows::

            a  one
            b  two

        Words.
        """
    )
    assert found == "As follows:\n\n```text\na  one\nb  two\n```\n\nWords."


def test_a_list_has_an_empty_line_before_it() -> None:
    assert of("Words:\n- one\n- two\n  and more") == "Words:\n\n- one\n- two\n  and more"
