"""The chat, served by two processes, in two real browsers."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.examples.server import Server
from tests.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

for needed in ("channels", "uvicorn", "websockets"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server("chat", "app:application", tmp_path, CHAT_FOLDER=str(tmp_path)) as server:
        yield server


def say(page: "Page", author: str, text: str) -> None:
    page.fill("input[name=author]", author)
    page.fill("input[name=text]", text)
    page.click("form button")


def shows(page: "Page", expected: list[str]) -> bool:
    page.wait_for_timeout(10)  # its messages are handled while it waits
    return page.locator("li .text").all_inner_texts() == expected


def test_what_one_browser_says_the_others_hear_whoever_is_killed(
    server: Server, browser: "Browser"
) -> None:
    complaints: list[str] = []
    pages = [browser.new_context().new_page() for _ in range(4)]
    for page in pages:
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.wait_for_selector("#state.live")
    expected: list[str] = []
    for number, page in enumerate(pages):
        text = f"<i>hello</i> from {number}"
        say(page, f"Nr. {number}", text)
        expected.insert(0, text)
        until(lambda: all(shows(each, expected) for each in pages))
    if shots := os.environ.get("SCREENSHOTS"):
        for scheme, width in (("light", 900), ("dark", 360)):
            pages[0].emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            pages[0].set_viewport_size({"width": width, "height": 500})
            pages[0].screenshot(path=Path(shots) / f"chat-{scheme}.png")
    for number in range(3):
        for worker in server.workers():
            worker.kill()
        until(server.is_serving)
        for page in pages:
            page.wait_for_selector("#state.live")
        say(pages[number], "Somebody", f"after kill {number}")
        expected.insert(0, f"after kill {number}")
        until(lambda: all(shows(each, expected) for each in pages))
    assert not complaints
