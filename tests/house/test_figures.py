"""The figures on the pages are those of the captured output in docs/evidence.

A paragraph, or a table with the text around it, that links to a page of docs/evidence takes its
figures from there: each stands there as well, or rounds to one that does. A figure that was
computed from them is named in a comment of the paragraph: ``<!-- computed: 283 -->``. So a new
capture of evidence finds every page that still has the old one.
"""

import re
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

_FIGURE = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
_DATE = re.compile(r"\d+ (?:January|November) \d{4}")
_LINK = re.compile(r"\]\([^)]*\)")
_EVIDENCE = re.compile(r"evidence/([\w.-]+\.md)")
_COMPUTED = re.compile(r"<!-- computed: ([^>]*) -->")
_WORDS = dict(enumerate(["three", "four", "five", "six", "seven", "eight", "nine"], start=3))


def figures(text: str) -> set[str]:
    """The numbers of a text, but for dates, links and what is computed."""
    return set(_FIGURE.findall(_DATE.sub("", _LINK.sub("]", _COMPUTED.sub("", text)))))


def value(figure: str) -> Decimal:
    return Decimal(figure.replace(",", ""))


def is_among(figure: str, captured: set[str]) -> bool:
    """Whether a figure is one of those, or one of those rounded to as many places."""
    wanted = value(figure)
    place = Decimal(1).scaleb(int(wanted.as_tuple().exponent))
    return any(
        wanted == value(other).quantize(place, rounding)
        for other in captured
        for rounding in (ROUND_HALF_EVEN, ROUND_HALF_UP)
    )


def blocks(text: str) -> list[str]:
    """The paragraphs of a page; a table and what stands between it and its neighbours are one."""
    whole: list[str] = []
    for part in re.split(r"\n\s*\n", text):
        headless = not part.startswith("#")
        if whole and headless and (part.startswith("|") or _is_open_table(whole[-1])):
            whole[-1] += "\n\n" + part
        else:
            whole.append(part)
    return whole


def _is_open_table(block: str) -> bool:
    """Whether a block has a table and does not say yet where that was captured."""
    return "\n|" in block and not _EVIDENCE.search(block)


def unfounded(text: str, evidence: dict[str, str]) -> list[str]:
    """The figures of a page that are not in the evidence that it names beside them."""
    found = []
    for block in blocks(text):
        pages = _EVIDENCE.findall(block)
        captured = set().union(*(figures(evidence[page]) for page in pages))
        computed = {
            name.strip() for names in _COMPUTED.findall(block) for name in names.split(", ")
        }
        if pages:
            found += [
                figure
                for figure in sorted(figures(block))
                if figure not in computed and not is_among(figure, captured)
            ]
    return found


@pytest.fixture(scope="module")
def evidence(root: Path) -> dict[str, str]:
    return {page.name: page.read_text() for page in (root / "docs" / "evidence").glob("*.md")}


@pytest.fixture(scope="module")
def shown(root: Path, tracked_files: list[Path]) -> list[Path]:
    """The pages for users. One of them sets figures that others have published beside ours."""
    docs = root / "docs"
    apart = {docs / "evidence", docs / "decisions"}
    return [
        root / "README.md",
        root / "COMPARE.md",
        *(
            page
            for page in tracked_files
            if page.suffix == ".md"
            and docs in page.parents
            and not apart & set(page.parents)
            and page != docs / "published.md"
        ),
    ]


def test_every_figure_is_in_the_evidence_beside_it(
    root: Path, shown: list[Path], evidence: dict[str, str]
) -> None:
    assert not {
        (str(page.relative_to(root)), figure)
        for page in shown
        for figure in unfounded(page.read_text(), evidence)
    }


def test_a_figure_that_is_not_in_the_evidence_is_found(evidence: dict[str, str]) -> None:
    page = (
        "It is 1.23456 times as fast: [driver](docs/evidence/driver.md).\n\n"
        "| a |\n|---|\n| 98,765 |\n\nThat was of [gil](docs/evidence/gil.md)."
    )
    assert unfounded(page, evidence) == ["1.23456", "98,765"]


def test_the_pages_name_as_many_slower_operations_as_were_captured(
    root: Path, evidence: dict[str, str]
) -> None:
    found = re.search(
        r"the interval begins below 0\.95; (\d+) of (\d+) operations", evidence["driver.md"]
    )
    assert found
    slower, of = found.groups()
    pattern = rf"(?i)\b(?:{slower}|{_WORDS.get(int(slower), slower)})\s+of\s+(?:the\s+)?{of}\b"
    assert not [
        page
        for page in ("docs/benchmarks/driver.md", "COMPARE.md")
        if not re.search(pattern, (root / page).read_text())
    ]
