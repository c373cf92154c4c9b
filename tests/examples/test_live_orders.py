"""The live orders, served by two processes, in two real browsers and over HTTP by hand."""

import http.client
import importlib.util
import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.examples.server import Server
from tests.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

for needed in ("fastapi", "uvicorn"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)


class Orders(Server):
    """The example, served by two workers."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "orders.db"
        stops = ("--timeout-graceful-shutdown", "1")
        super().__init__("live_orders", "app:app", folder, *stops, ORDERS_DATABASE=str(self.path))

    def order(self, item: str) -> None:
        """Order something."""
        assert self.ask("POST", "/orders", {"item": item})[0] == 201

    def outsider_orders(self, item: str) -> None:
        """The same, by another program's SQLite."""
        with closing(sqlite3.connect(self.path, timeout=30)) as other, other:
            other.execute("INSERT INTO orders (item) VALUES (?)", (item,))

    def listen(self, last_event_id: str | None = None) -> "Stream":
        """A stream of events."""
        return Stream(self.port, last_event_id)


class Stream:
    """Server-sent events, read by hand."""

    def __init__(self, port: int, last_event_id: str | None) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        self.connection.request("GET", "/events", headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        self.worker = int(self.answer.headers["X-Worker"])

    def __enter__(self) -> "Stream":
        """This one."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """The browser goes away."""
        self.answer.close()
        self.connection.close()

    def next(self) -> tuple[str, Any, str | None]:
        """The next event: its name, its data, and its id."""
        fields: dict[str, str] = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if not line and "data" in fields:
                return fields["event"], json.loads(fields["data"]), fields.get("id")
            name, _, value = line.partition(": ")
            fields[name] = value

    def next_items(self, count: int) -> list[str]:
        """The items of the next orders."""
        taken = [self.next() for _ in range(count)]
        assert {name for name, _, _ in taken} == {"order"}
        return [data["item"] for _, data, _ in taken]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Orders]:
    with Orders(tmp_path) as server:
        yield server


def items(page: "Page") -> list[str]:
    return page.locator("li .item").all_inner_texts()


def shows(page: "Page", expected: list[str]) -> bool:
    page.wait_for_timeout(10)  # its events are handled while it waits
    return items(page) == expected


def test_what_one_browser_orders_the_other_one_shows_whoever_is_killed(
    server: Orders, browser: "Browser"
) -> None:
    complaints: list[str] = []
    pages = [browser.new_context().new_page() for _ in range(2)]
    for page in pages:
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.wait_for_selector("#state.live")
    first, second = pages

    first.fill("input", "<b>soup</b>")
    first.click("form button")
    until(lambda: all(shows(page, ["<b>soup</b>"]) for page in pages))
    second.click("li button")
    first.wait_for_selector("li .paid")
    if shots := os.environ.get("SCREENSHOTS"):
        for scheme, width in (("light", 900), ("dark", 360)):
            first.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            first.set_viewport_size({"width": width, "height": 500})
            first.screenshot(path=Path(shots) / f"{scheme}.png")

    server.outsider_orders("from the shell")
    expected = ["from the shell", "<b>soup</b>"]
    until(lambda: all(shows(page, expected) for page in pages))

    for number in range(3):
        for worker in server.workers():
            worker.kill()
        # Nobody serves now, or a worker that has just begun.
        server.outsider_orders(f"meanwhile {number}")
        expected.insert(0, f"meanwhile {number}")
        until(server.is_serving)
        server.order(f"afterwards {number}")
        expected.insert(0, f"afterwards {number}")
        until(lambda: all(shows(page, expected) for page in pages))
    assert not complaints


def test_a_stream_goes_on_where_it_was_at_whichever_worker(server: Orders) -> None:
    with server.listen() as stream:
        assert stream.next() == ("all", [], None)
        server.order("one")
        name, data, position = stream.next()
        assert (name, data) == ("order", {"id": 1, "item": "one", "paid": 0})
    for number in range(10):
        server.order(f"missed {number}")
    expected = [f"missed {number}" for number in range(10)]
    workers = set()
    for _ in range(20):
        with server.listen(position) as stream:
            assert stream.next_items(10) == expected
            workers.add(stream.worker)
    assert workers <= {worker.pid for worker in server.workers()}


@pytest.mark.parametrize("position", ["0123456789abcdef-1", "what is no position"])
def test_who_comes_from_elsewhere_is_given_all(server: Orders, position: str) -> None:
    server.order("one")
    with server.listen(position) as stream:
        name, data, _ = stream.next()
        assert (name, [order["item"] for order in data]) == ("all", ["one"])
        # What was notified before may come once more: it has the same id.
        server.order("two")
        while stream.next()[1]["item"] != "two":
            pass


def test_streams_that_are_left_leave_nothing_and_a_stop_waits_for_none(server: Orders) -> None:
    workers = server.workers()

    def open_files() -> list[int]:
        return [worker.num_fds() for worker in workers]

    def leave(count: int) -> None:
        for _ in range(count):
            with server.listen() as stream:
                stream.next()

    leave(40)  # both have opened what they keep
    at_most = max(open_files()) + 8
    leave(200)
    until(lambda: max(open_files()) <= at_most)

    with ExitStack() as open_streams:
        for _ in range(4):
            stream = open_streams.enter_context(server.listen())
            assert stream.next()[0] == "all"
        assert server.stop() in (0, -signal.SIGTERM)
