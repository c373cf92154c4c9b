"""Pictures of the pages look alike, are read on a telephone and aloud, and ask for nothing.

What one colour or class means is said in the comment of docs/pictures/how-writers-wait.svg.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

_SVG = "{http://www.w3.org/2000/svg}"
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_WIDTH = 400
"""How wide they are in units of which the smallest text has 13: that is read at 360 px."""


@pytest.fixture(scope="module")
def pictures(root: Path) -> dict[str, ElementTree.Element]:
    found = {
        picture.name: ElementTree.fromstring(picture.read_text())
        for picture in sorted((root / "docs" / "pictures").glob("*.svg"))
    }
    assert found
    return found


def rules(picture: ElementTree.Element) -> dict[str, str]:
    """The style of a picture, by selector."""
    style = picture.findtext(f"{_SVG}style") or ""
    return {what.strip(): " ".join(how.split()) for what, how in _RULE.findall(style)}


def test_one_style_is_that_of_all(pictures: dict[str, ElementTree.Element]) -> None:
    common: dict[str, str] = {}
    others = []
    for name, picture in pictures.items():
        for what, how in rules(picture).items():
            if common.setdefault(what, how) != how:
                others.append((name, what, how))
    assert not others


def test_every_class_is_one_of_the_style(pictures: dict[str, ElementTree.Element]) -> None:
    unknown = {
        (name, word)
        for name, picture in pictures.items()
        for element in picture.iter()
        for word in element.get("class", "").split()
        if f".{word}" not in rules(picture)
    }
    assert not unknown


def test_each_says_what_it_shows(pictures: dict[str, ElementTree.Element]) -> None:
    assert not [
        name
        for name, picture in pictures.items()
        if not (picture.findtext(f"{_SVG}title") and picture.findtext(f"{_SVG}desc"))
    ]


def test_each_has_a_panel_of_its_own_and_is_as_wide_as_the_others(
    pictures: dict[str, ElementTree.Element],
) -> None:
    for name, picture in pictures.items():
        first = picture.find(f"{_SVG}rect")
        assert first is not None, name
        assert first.get("class") == "panel", name
        assert picture.get("viewBox", "").split()[:3] == ["0", "0", str(_WIDTH)], name


def test_none_asks_for_anything(root: Path, pictures: dict[str, ElementTree.Element]) -> None:
    asked = re.compile(r"<script|<image|<foreignObject|href|@import|@font-face|url\(|\bon\w+=")
    assert not [
        name for name in pictures if asked.search((root / "docs" / "pictures" / name).read_text())
    ]


def test_each_is_on_a_page(
    root: Path, tracked_files: list[Path], pictures: dict[str, ElementTree.Element]
) -> None:
    pages = "".join(path.read_text() for path in tracked_files if path.suffix == ".md")
    assert not [name for name in pictures if f"pictures/{name})" not in pages]
