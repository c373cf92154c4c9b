"""The built site: complete, and without anything from elsewhere."""

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from scripts.site.links import SITE

# To build the site may take minutes on a machine that has other things to do.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Elements that fetch what they name; a link is followed by its reader alone.
LOADING = {
    "audio",
    "embed",
    "iframe",
    "img",
    "input",
    "object",
    "script",
    "source",
    "track",
    "video",
}
LOADING_LINKS = {"apple-touch-icon", "icon", "manifest", "modulepreload", "preload", "stylesheet"}
LEFT_OVER = re.compile(r"^\s*(?:- |\* |1\. |#+ |```|\|.*\|$|:::|>>> )", re.MULTILINE)
"""How Markdown begins a list, a heading, code, a table or an entry of the reference."""


class Page(HTMLParser):
    """A page: what it links to, what it loads, its anchors and its text."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {""}
        self.text = ""
        self._within: list[str] = []
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag in {"p", "li", "h1", "h2", "h3", "h4", "pre", "code", "script", "style", "td"}:
            self._within.append(tag)
            self.text += "\n" if tag == "p" else ""
        where = given.get("src", given.get("data", "")) if tag in LOADING else ""
        if tag == "link" and set(given.get("rel", "").split()) & LOADING_LINKS:
            where = given["href"]
        if where:
            self.loaded.append(where)
        elif "href" in given and "canonical" not in given.get("rel", ""):
            self.links.append(given["href"])

    def handle_endtag(self, tag: str) -> None:
        if self._within and tag == self._within[-1]:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if self._within and self._within[-1] == "p" and "pre" not in self._within:
            self.text += data


class Site:
    """All pages, by their path below the site's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[str, Page]:
        return {
            file.relative_to(self.folder).as_posix(): Page(file)
            for file in sorted(self.folder.rglob("*.html"))
        }

    def is_there(self, page: str, target: str) -> bool:
        """Whether what a page names is in the site, with its anchor."""
        address = urlsplit(target)
        path = unquote(address.path)
        name = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if (self.folder / name).is_dir():
            name = posixpath.normpath(posixpath.join(name, "index.html"))
        if name not in self.pages:
            return (self.folder / name).is_file() and not name.startswith("..")
        return unquote(address.fragment) in self.pages[name].anchors


@pytest.fixture(scope="module")
def built(site: Path) -> Site:
    return Site(site)


def is_elsewhere(target: str) -> bool:
    return bool(urlsplit(target).scheme or urlsplit(target).netloc)


def test_every_link_and_every_anchor_is_there(built: Site) -> None:
    assert len(built.pages) > 200
    # The page for what is not found is shown at any address: its links begin at the root.
    broken = [
        f"{name}: {target}"
        for name, page in built.pages.items()
        if name != "404.html"
        for target in (*page.links, *page.loaded)
        if not is_elsewhere(target) and not built.is_there(name, target)
    ]
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(built: Site) -> None:
    page_loads = {
        target
        for page in built.pages.values()
        for target in page.loaded
        if is_elsewhere(target) and not target.startswith("data:")
    }
    assert page_loads == set()
    in_styles = {
        (file.name, found)
        for file in built.folder.rglob("*.css")
        for found in re.findall(r"url\(['\"]?(https?:[^)]*)|@import[^;]*", file.read_text())
        if found
    }
    assert in_styles == set()


def test_no_page_shows_markdown_as_it_is_written(built: Site) -> None:
    """A list without an empty line before it is one in the repository and none on the site."""
    left_over = {
        (name, found[0].strip())
        for name, page in built.pages.items()
        if not name.startswith("evidence/")  # captured output, not written for pages
        for found in LEFT_OVER.finditer(page.text)
    }
    assert left_over == set()


def named_addresses(root: Path) -> Iterator[tuple[str, str]]:
    """Where the project names an address of its site."""
    files = [*root.glob("*.md"), *root.glob("*.toml"), *(root / "python").rglob("*.py")]
    for file in files:
        for found in re.findall(rf"{re.escape(SITE)}[^\s)>\"'`]*", file.read_text()):
            yield file.name, found


def test_every_address_of_the_site_is_there(built: Site, root: Path) -> None:
    addresses = list(named_addresses(root))
    assert len(addresses) > 10
    assert [
        one
        for one in addresses
        if not built.is_there("index.html", one[1].removeprefix(SITE) or ".")
    ] == []


def test_its_search_knows_pages_and_entries(built: Site) -> None:
    index = (built.folder / "search" / "search_index.json").read_text()
    for location in ('"django/"', '"reference/connection/#', '"benchmarks/django/'):
        assert location in index
