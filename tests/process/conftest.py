"""What the tests of processes share: a database, and processes that are ended after the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pages import remove_page_of
from tests.process.actors import Actor, Start

import oxlite


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "app.db"
    connection = oxlite.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    # Of a file that had its inode before.
    remove_page_of(path)
    yield path
    remove_page_of(path)


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts processes, which are ended after the test."""
    started: list[Actor] = []

    def start(driver: str = "oxlite", prefix: tuple[str, ...] = ()) -> Actor:
        started.append(Actor(path, driver, prefix))
        return started[-1]

    yield start
    for actor in started:
        actor.end()
