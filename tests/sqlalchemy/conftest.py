"""The dialect under its name, and a database file with a table of notes."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="the extra oxlite[sqlalchemy] is not installed")

import sqlalchemy as sa
from sqlalchemy.dialects import registry

# An installed package has entry points; a checkout on PYTHONPATH has none.
registry.register("sqlite.oxlite", "oxlite.sqlalchemy.dialect", "SQLiteDialect_oxlite")
registry.register("sqlite.oxlite_async", "oxlite.sqlalchemy.aio", "SQLiteDialect_oxlite_async")

MakeEngine = Callable[..., sa.Engine]

METADATA = sa.MetaData()
NOTE = sa.Table(
    "note",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("text", sa.String, unique=True),
    sa.Column("stars", sa.Integer, server_default="0"),
)


@pytest.fixture
def note() -> sa.Table:
    """The table that the database has."""
    return NOTE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with two notes."""
    path = tmp_path / "app.db"
    engine = sa.create_engine(f"sqlite+oxlite:///{path}")
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(NOTE.insert(), [{"text": "first"}, {"text": "second"}])
    engine.dispose()
    return path


@pytest.fixture
def make_engine(file: Path) -> Iterator[MakeEngine]:
    """Makes engines of the database, which are disposed of after the test."""
    engines: list[sa.Engine] = []

    def make_engine(query: str = "", **options: Any) -> sa.Engine:
        url = f"sqlite+oxlite:///{file}{query}"
        engines.append(sa.create_engine(url, **options))
        return engines[-1]

    yield make_engine
    for engine in engines:
        engine.dispose()


@pytest.fixture
def engine(make_engine: MakeEngine) -> sa.Engine:
    """An engine with short waits."""
    return make_engine("?timeout=0.3")


@pytest.fixture
def other(make_engine: MakeEngine) -> sa.Engine:
    """Another engine on the same database: somebody else."""
    return make_engine("?timeout=0.3")


class Threads:
    """Runs functions in threads; ``finish`` raises what they have raised."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    def start(self, work: Callable[[], object], name: str | None = None) -> threading.Thread:
        """Start a thread."""

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._errors.append(error)

        self._threads.append(threading.Thread(target=run, name=name))
        self._threads[-1].start()
        return self._threads[-1]

    def finish(self) -> None:
        """Wait for all of them."""
        for thread in self._threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self._threads)
        if self._errors:
            raise self._errors[0]


@pytest.fixture
def threads() -> Iterator[Threads]:
    """Threads that have ended, without an error, when the test has."""
    threads = Threads()
    yield threads
    threads.finish()
