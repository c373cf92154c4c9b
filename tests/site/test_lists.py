"""A list is the same on the site as in the repository."""

import textwrap

import pytest
from scripts.site import lists

markdown = pytest.importorskip("markdown", reason="the group 'site' is not installed")


def html(text: str) -> str:
    made = markdown.markdown(
        lists.for_site(textwrap.dedent(text)), extensions=["tables", "pymdownx.superfences"]
    )
    return "".join(line.strip() for line in made.splitlines())


def test_a_list_follows_a_paragraph() -> None:
    assert html("Words:\n- one\n- two\n") == "<p>Words:</p><ul><li>one</li><li>two</li></ul>"


def test_a_wrapped_item_stays_one() -> None:
    assert html("- one\n  and more\n- two\n") == "<ul><li>oneand more</li><li>two</li></ul>"


def test_a_list_in_an_item() -> None:
    found = html("- one\n  - a\n  - b\n- two\n")
    assert found == "<ul><li>one<ul><li>a</li><li>b</li></ul></li><li>two</li></ul>"


def test_a_paragraph_in_an_item() -> None:
    found = html("1. one\n\n   more\n2. two\n")
    assert found == "<ol><li><p>one</p><p>more</p></li><li><p>two</p></li></ol>"


def test_code_in_an_item_keeps_its_columns() -> None:
    found = lists.for_site("1. one\n\n   ```python\n   if a:\n       b\n\n   c\n   ```\n\n2. two\n")
    assert found == ("1. one\n\n    ```python\n    if a:\n        b\n\n    c\n    ```\n\n2. two\n")
    assert "<ol><li><p>one</p><div" in html(found)


def test_what_follows_a_list_is_no_part_of_it() -> None:
    assert html("- one\n\nWords\n") == "<ul><li>one</li></ul><p>Words</p>"


@pytest.mark.parametrize(
    "text",
    [
        "It was in\n1970. Then\n",
        "```text\n- a\n  - b\n```\n",
        "    - code\n",
        "| a |\n| --- |\n| - b |\n",
        "Words\n---\n",
        "::: oxlite.connect\n    options:\n      heading_level: 3\n",
    ],
)
def test_what_is_no_list_stays_as_it_is(text: str) -> None:
    assert lists.for_site(text) == text
