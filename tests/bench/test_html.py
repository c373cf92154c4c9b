"""The HTML report in a real browser: complete, offline, with the numbers of the records.

Needs a headless Chromium: the system's or playwright's (`make browser` fetches one where it can).
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser import chromium

from oxlite.bench.layout import number
from oxlite.bench.report.html.page import render
from oxlite.bench.stored import read

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

Open = Callable[..., "Opened"]
Recorded = Callable[[str], Path]
NAMES = ("kv", "ladder", "locked", "driver")
WIDE, NARROW = {"width": 1100, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def html(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("html") / "report.html"
    path.write_text(render([read(recorded(name)) for name in NAMES]))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium() as browser:
        yield browser


class Opened:
    """The report in a window, with everything that the browser complained of or asked for."""

    def __init__(self, browser: "Browser", html: Path, scheme: str, window: dict[str, int]) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(color_scheme=scheme, viewport=window)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(html.as_uri())

    def evaluate(self, code: str) -> Any:  # noqa: ANN401 (whatever the code gives)
        return self.page.evaluate(code)


@pytest.fixture
def opened(browser: "Browser", html: Path) -> Iterator[Open]:
    windows: list[Opened] = []

    def opener(scheme: str = "light", window: dict[str, int] = WIDE) -> Opened:
        windows.append(Opened(browser, html, scheme, window))
        return windows[-1]

    yield opener
    for window in windows:
        window.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("window", [WIDE, NARROW], ids=["wide", "narrow"])
def test_it_opens_without_errors_requests_or_sideways_scrolling(
    opened: Open, html: Path, scheme: str, window: dict[str, int]
) -> None:
    one = opened(scheme, window)
    assert one.complaints == []
    assert one.requests == [html.as_uri()]
    assert one.evaluate("document.scripts.length") == 0
    # Tables are opened too: a wide one scrolls within itself.
    one.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    assert one.evaluate("document.documentElement.scrollWidth") <= window["width"]
    beyond = """[...document.querySelectorAll('.name, .figure, h2, p, .cards li')]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"""
    assert one.evaluate(beyond) == 0


def test_both_themes_are_legible(opened: Open) -> None:
    colours = """(() => { const s = getComputedStyle(document.body);
        return [s.color, s.backgroundColor] })()"""
    shades = {}
    for scheme in ("light", "dark"):
        ink, paper = (luminance(text) for text in opened(scheme).evaluate(colours))
        shades[scheme] = paper
        assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) > 7
    assert shades["dark"] < 0.1 < 0.8 < shades["light"]


def luminance(colour: str) -> float:
    """Of ``rgb(1, 2, 3)``, as the accessibility guidelines define it."""
    channels = [int(text) / 255 for text in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * value for part, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_chart_has_a_name_an_alternative_and_a_table(opened: Open) -> None:
    figures = opened().evaluate(
        """[...document.querySelectorAll('figure')].map(f => ({
            caption: f.querySelector('figcaption').textContent,
            said: f.querySelector('[role=img]').getAttribute('aria-label'),
            marks: f.querySelectorAll('svg rect, svg circle').length,
            lines: f.querySelectorAll('tbody tr').length,
            kind: f.querySelector('.chart').className }))"""
    )
    assert figures
    for figure in figures:
        assert figure["caption"]
        assert figure["caption"] in figure["said"]
        assert figure["marks"]
        assert figure["lines"]
    kinds = {figure["kind"].removeprefix("chart ") for figure in figures}
    assert kinds == {"bars", "ratios", "curves", "stacks", "strips"}
    assert any(figure["caption"].startswith("The ladder") for figure in figures)


@pytest.mark.parametrize("window", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_chart_has_room(opened: Open, window: dict[str, int]) -> None:
    """What is drawn is as wide as there is room for, beside its names and figures."""
    widths = opened(window=window).evaluate(
        """[...document.querySelectorAll('.chart')].map(c => ({
            kind: c.className,
            room: c.getBoundingClientRect().width,
            drawn: [...c.querySelectorAll('svg.line, svg.plot')]
                .map(s => s.getBoundingClientRect().width) }))"""
    )
    assert widths
    for chart in widths:
        assert chart["drawn"], chart
        assert min(chart["drawn"]) >= 0.4 * chart["room"], chart


def test_it_begins_with_sentences(opened: Open) -> None:
    said = opened().evaluate(
        "[...document.querySelectorAll('.summary .said')].map(e => e.innerText)"
    )
    assert 1 <= len(said) <= 4
    assert all(sentence.endswith(".") for sentence in said)


def test_the_bars_are_the_medians_of_the_record(opened: Open, recorded: Recorded) -> None:
    rows = json.loads(recorded("kv").read_text())["rows"]
    medians = sorted(row["summaries"]["wall_seconds"]["median"] for row in rows)
    drawn = opened().evaluate(
        """(() => { const f = [...document.querySelectorAll('figure')]
            .find(f => f.querySelector('figcaption').textContent.startsWith('Wall time, s'));
          return [...f.querySelectorAll('.row')].map(r => [
            r.querySelector('.figure').textContent,
            r.querySelector('rect.bar').getBoundingClientRect().width]) })()"""
    )
    assert len(drawn) == len(rows)
    for (text, width), median in zip(drawn, medians, strict=True):
        assert text.startswith(number(median))
        assert width / drawn[0][1] == pytest.approx(median / medians[0], rel=0.02)


def test_failures_are_stacked_with_their_counts(opened: Open, recorded: Recorded) -> None:
    rows = json.loads(recorded("locked").read_text())["rows"]
    failed = sum(count for row in rows for s in row["samples"] for count in s["errors"].values())
    assert failed
    text = opened().evaluate(
        "document.querySelector('.chart.stacks').closest('figure').textContent"
    )
    assert f"{failed:,}" in text
    assert "locked" in text


def test_published_figures_stand_beside_measured_ones(opened: Open, recorded: Recorded) -> None:
    data = json.loads(recorded("ladder").read_text())
    row = next(row for row in data["rows"] if row["scenario"].get("step") == "normal")
    times = opened().evaluate(
        """[...document.querySelectorAll('.claims tr')].find(r => r.textContent
            .startsWith('synchronous=NORMAL')).querySelectorAll('td')[2].textContent"""
    )
    walls = [
        [sample["figures"]["inserts_per_second"] for sample in one["samples"]]
        for one in (row, next(r for r in data["rows"] if r["scenario"].get("step") == "wal"))
    ]
    ratios = sorted(mine / its for mine, its in zip(*walls, strict=True))
    assert times == f"{number(sum(ratios) / 2)} ({number(ratios[0])}–{number(ratios[1])})"  # noqa: RUF001


def test_text_from_outside_is_no_markup(recorded: Recorded) -> None:
    result = read(recorded("kv"))
    result.notes = ["<script>alert(1)</script>"]
    result.rows[0].failure = '<img src="x" onerror="y">'
    text = render([result])
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
