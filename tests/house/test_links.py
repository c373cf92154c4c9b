"""The documents' links lead somewhere: to a file that is there, and to a heading that it has.

Decisions are one page each, in docs/decisions, and all of them stand in the index of DESIGN.md.
"""

import re
from pathlib import Path

import pytest

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
_DECISION_HEADINGS = ["Question", "Decision", "Evidence", "Rejected"]
_DECISION_LINES = 62
_FILE = re.compile(r"`((?:crates|docs|examples|python|scripts|tests)/[\w./-]+)`")
_MENTION = re.compile(r"docs/[\w/.-]+\.md")


def anchors(text: str) -> set[str]:
    """The names that a page's headings have in links, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), flags=re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.fixture(scope="module")
def pages(tracked_files: list[Path]) -> dict[Path, str]:
    return {path: path.read_text() for path in tracked_files if path.suffix == ".md"}


def test_every_link_leads_to_a_file_and_a_heading(pages: dict[Path, str]) -> None:
    broken = []
    for page, text in pages.items():
        for link in _LINK.findall(_FENCE.sub("", text)):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (
                anchor and target.suffix == ".md" and anchor not in anchors(target.read_text())
            ):
                broken.append(f"{page.name}: {link}")
    assert not broken


def test_every_document_that_code_names_is_there(root: Path, tracked_files: list[Path]) -> None:
    """Comments and settings name pages as docs/…; the pages of upstream projects are not meant."""
    suffixes = {".rs", ".py", ".toml", ".sh", ".pyi"}
    missing = {
        f"{path.relative_to(root)}: {name}"
        for path in tracked_files
        if path.suffix in suffixes and "upstream" not in path.parts and path != Path(__file__)
        for name in _MENTION.findall(path.read_text())
        if not (root / name).is_file()
    }
    assert not missing


def test_every_file_that_a_page_names_is_there(root: Path, pages: dict[Path, str]) -> None:
    """Captured output names files as they were."""
    missing = {
        f"{page.relative_to(root)}: {name}"
        for page, text in pages.items()
        if "evidence" not in page.parts
        for name in _FILE.findall(text)
        if not (root / name).exists()
    }
    assert not missing


def test_the_index_of_decisions_has_each_once_under_its_title(root: Path) -> None:
    index = (root / "DESIGN.md").read_text()
    listed = re.findall(r"^- \[(.+)\]\((docs/decisions/.+)\)$", index, flags=re.MULTILINE)
    there = [
        (page.read_text().splitlines()[0].removeprefix("# "), str(page.relative_to(root)))
        for page in (root / "docs" / "decisions").glob("*.md")
    ]
    assert sorted(listed) == sorted(there)


def test_every_decision_is_a_page_with_four_headings(root: Path) -> None:
    pages = sorted((root / "docs" / "decisions").glob("*.md"))
    assert pages
    wrong = []
    for number, page in enumerate(pages, start=1):
        text = page.read_text()
        if not page.name.startswith(f"{number:04}-") or not text.startswith(f"# {number}. "):
            wrong.append(f"{page.name}: the number")
        if re.findall(r"^## (.+)$", text, flags=re.MULTILINE) != _DECISION_HEADINGS:
            wrong.append(f"{page.name}: the headings")
        if len(text.splitlines()) > _DECISION_LINES:
            wrong.append(f"{page.name}: longer than {_DECISION_LINES} lines")
        if any(not part.strip() for part in re.split(r"^##? .+$", text, flags=re.MULTILINE)[2:]):
            wrong.append(f"{page.name}: a heading without text")
    assert not wrong
