"""The site in a real browser: it scrolls down alone, complains of nothing, and finds what it has.

Needs a headless Chromium: the system's or playwright's (`make browser` fetches one where it can).
Pictures of what was seen are left in target/site-pictures.
"""

import functools
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser import chromium

# To build the site may take minutes on a machine that has other things to do.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

WIDTHS = {"wide": 1280, "narrow": 400}
KEY_PAGES = (
    "",
    "install/",
    "start/django/",
    "tutorials/django/",
    "guides/locked-errors/",
    "explanations/how-writers-wait/",
    "benchmarks/django/",
    "benchmarks/driver/",
    "comparison/",
    "cli/",
    "reference/oxlite/",
    "reference/constants/",
    "project/changelog/",
    "evidence/kv/",
)
"""One of each kind."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served, as `make site-serve` does it."""
    handler = functools.partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def pictures(root: Path) -> Path:
    folder = root / "target" / "site-pictures"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


class Window:
    """A window of the browser, with what it complained of and what it asked others for."""

    def __init__(self, browser: "Browser", address: str, width: int, scheme: str) -> None:
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.address = address
        self.page: Page = browser.new_page(
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": width, "height": 900},
        )
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("response", lambda answer: self._look(answer.url, answer.status))
        self.page.on("request", lambda request: self._look(request.url, 200))

    def _look(self, url: str, status: int) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.elsewhere.append(url)
        elif status >= 400:
            self.complaints.append(f"{status} {url}")

    def open(self, path: str) -> None:
        self.page.goto(self.address + path, wait_until="networkidle")


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=list(WIDTHS))
def width(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def window(browser: "Browser", address: str, width: str, scheme: str) -> Iterator[Window]:
    opened = Window(browser, address, WIDTHS[width], scheme)
    yield opened
    opened.page.close()


def test_every_kind_of_page_fits_and_complains_of_nothing(
    window: Window, width: str, scheme: str, pictures: Path
) -> None:
    for path in KEY_PAGES:
        window.open(path)
        name = f"{path.strip('/').replace('/', '-') or 'home'}-{width}-{scheme}.png"
        window.page.screenshot(path=pictures / name, full_page=path in {"", "benchmarks/django/"})
        assert window.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width], path
        # What is wider than the window scrolls within itself.
        beyond = """[...document.querySelectorAll('.md-content p, .md-content h1, .md-content h2')]
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"""
        assert window.page.evaluate(beyond) == 0, path
        broken = """[...document.images].filter(i => i.complete && !i.naturalWidth).length"""
        assert window.page.evaluate(broken) == 0, path
    assert window.complaints == []
    assert window.elsewhere == []


def test_charts_are_drawn_and_legible(window: Window, width: str) -> None:
    window.open("benchmarks/django/")
    drawn = window.page.evaluate(
        """[...document.querySelectorAll('.bench')].map(f => ({
            lanes: f.querySelectorAll('svg.line').length,
            widths: [...f.querySelectorAll('rect.bar')].map(r => r.getBoundingClientRect().width),
            lines: [...f.querySelectorAll('svg.line')].map(s => s.getBoundingClientRect().width),
            said: f.querySelector('[role=img]').getAttribute('aria-label') }))"""
    )
    assert len(drawn) == 4
    for chart in drawn:
        assert chart["lanes"] == len(chart["widths"]) > 5
        assert min(chart["widths"]) > 0
        # All parts of a chart are on one scale.
        assert max(chart["lines"]) - min(chart["lines"]) < 1
        assert min(chart["lines"]) > (300 if width == "wide" else 200)
        assert "oxlite.django" in chart["said"]


def test_it_is_as_light_as_the_system_and_can_be_switched(window: Window, scheme: str) -> None:
    window.open("")
    shown = "document.body.getAttribute('data-md-color-scheme')"
    assert window.page.evaluate(shown) == {"light": "default", "dark": "slate"}[scheme]
    seen = set()
    for _ in range(3):
        window.page.locator("label.md-header__button[for^=__palette]:not([hidden])").click()
        seen.add(window.page.evaluate(shown))
    assert seen == {"default", "slate"}


def test_the_menu_leads_to_pages(window: Window, width: str) -> None:
    window.open("")
    for title in ("Benchmarks", "A Django site"):
        if width == "narrow":
            window.page.locator("label.md-header__button[for=__drawer]").click()
            if title == "Benchmarks":  # the drawer shows the section of the page: back from it
                window.page.locator(
                    ".md-nav--primary label.md-nav__title[for^=__nav_]"
                ).first.click()
            menu = window.page.locator(".md-nav--primary a:visible", has_text=title)
        else:
            menu = window.page.locator(".md-tabs a, .md-sidebar--primary a", has_text=title)
        menu.first.click()
        window.page.wait_for_load_state("networkidle")
    assert window.page.url.endswith("/benchmarks/django/")
    assert window.complaints == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("StatementTimeout", "#oxlite.StatementTimeout"),
        ("database is locked", "guides/locked-errors/"),
        ("restore_snapshot", "#oxlite.operations.restore_snapshot"),
    ],
)
def test_the_search_finds(window: Window, width: str, words: str, expected: str) -> None:
    window.open("")
    if width == "narrow":
        window.page.locator("label.md-header__button[for=__search]").click()
    window.page.locator("input.md-search__input").fill(words)
    results = window.page.locator("a.md-search-result__link")
    results.first.wait_for(timeout=60_000)
    found = results.evaluate_all("links => links.map(link => link.href.replace(/\\?h=[^#]*/, ''))")
    assert any(expected in link for link in found), found
    assert window.complaints == []
    assert window.elsewhere == []


def test_a_session_is_copied_without_its_prompts_and_output(
    browser: "Browser", address: str
) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}install/", wait_until="networkidle")
    block = page.locator("div.highlight", has_text="print(oxlite.__version__")
    block.hover()
    block.locator("button[data-md-type=copy], button.md-clipboard").first.click()
    copied = page.evaluate("navigator.clipboard.readText()").strip()
    assert copied.startswith("python -c 'import oxlite;")
    assert "0.1.0" not in copied
    context.close()
