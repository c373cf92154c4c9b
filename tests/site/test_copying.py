"""What the button beside a block copies can be pasted: of a session, what is typed."""

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# To build the site may take minutes on a machine that has other things to do.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Where the site is served: a browser lets only a page with an address use the clipboard."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def browser() -> Iterator["Browser"]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    system = next((path for name in names if (path := shutil.which(name))), None)
    with playwright.sync_playwright() as started:
        try:
            chromium = started.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except playwright.Error as error:
            if "Executable doesn't exist" not in str(error):
                raise
            pytest.skip("no Chromium here: run `make browser`, or install one")
        yield chromium
        chromium.close()


def test_neither_the_prompt_nor_the_output_is_copied(address: str, browser: "Browser") -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}start/connect/")
    session = page.locator("div.highlight", has_text="for number in 1 2 3 4")
    assert "(2000,)" in session.inner_text()
    session.hover()
    session.locator("button").first.click()
    page.wait_for_function("async () => await navigator.clipboard.readText()")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("for number in 1 2 3 4; do")
    assert "\npython -c" in copied
    assert "$ " not in copied
    assert "2000" not in copied
    context.close()
