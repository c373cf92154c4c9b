"""Charts and the picture are drawn from the records, and each is shown."""

import re
from pathlib import Path

import pytest
from scripts.site import charts, picture, records
from scripts.site.declared import CHARTS

_ASKED = re.compile(r"^<!-- site: chart (\S+) -->$", re.MULTILINE)


@pytest.fixture(scope="module")
def pages(root: Path) -> dict[str, str]:
    return {page.name: page.read_text() for page in (root / "docs" / "benchmarks").glob("*.md")}


def test_every_chart_is_on_a_page_once(pages: dict[str, str]) -> None:
    asked = [name for text in pages.values() for name in _ASKED.findall(text)]
    assert sorted(asked) == sorted(CHARTS)


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_shows_the_figures_of_its_record(name: str) -> None:
    chart = CHARTS[name]
    table = records.table(chart.record, chart.table, chart.column)
    rows = [row for rows in chart.groups.values() for row in rows] or list(table.rows)
    html = charts.figure(name)
    shown = [row for row in rows if table.summary(row, chart.column) is not None]
    assert shown
    assert html.count('class="row"') == len(shown)
    for row in shown:
        figure = table.rows[row][chart.column].partition(" ")[0]
        assert re.search(rf">{re.escape(figure)}\b", html), figure
    assert "\n\n" not in html.strip()  # it would end in the midst of the Markdown around it


def test_a_page_says_when_its_charts_were_captured_and_links_to_the_records(
    pages: dict[str, str],
) -> None:
    silent = set()
    for page, text in pages.items():
        words = " ".join(text.split())
        for name in {CHARTS[asked].record for asked in _ASKED.findall(text)}:
            if f"(../evidence/{name}.md)" not in words:
                silent.add((page, name, "no link"))
            if records.day(name) not in words:
                silent.add((page, name, records.day(name)))
    assert silent == set()


def test_every_page_says_how_it_was_captured(pages: dict[str, str]) -> None:
    assert {
        page for page, text in pages.items() if page != "index.md" and "Captured" not in text
    } == set()


def test_the_picture_is_as_current_as_its_record() -> None:
    """Otherwise: ``.venv/bin/python -m scripts.site.picture``."""
    assert picture.FILE.read_text() == picture.drawing()


def test_what_a_record_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError, match="no table"):
        records.table("kv", "Throughput", "apples/s")
    with pytest.raises(KeyError):
        records.table("kv", "Throughput", "writes/s").summary("nobody", "writes/s")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("167 (159\N{EN DASH}176)", (167, 159, 176)),
        ("1,745", (1745, 1745, 1745)),
        ("0.99 (0.98\N{EN DASH}1.00)", (0.99, 0.98, 1.0)),
        ("64.2 %", (64.2, 64.2, 64.2)),
        ("\N{EN DASH}", None),
        ("\N{MIDDLE DOT}", None),
    ],
)
def test_a_cell_is_read(cell: str, expected: tuple[float, float, float] | None) -> None:
    table = records.Table("", ("scenario", "x"), {"a": {"x": cell}})
    found = table.summary("a", "x")
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.median, found.interval.low, found.interval.high) == expected
