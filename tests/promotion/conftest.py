"""A PostgreSQL of the run's own, and a file to be promoted to it."""

import functools
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

import oxlite
from oxlite import sqlite3
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.scratch import Scratch
from oxlite.promotion import Promoted, Settings, promote

__all__ = ["Place", "Promote", "execute", "file_of", "once", "promote_file"]


@dataclass(frozen=True)
class Place:
    """An empty database of PostgreSQL's."""

    url: str

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query returns; nothing for what returns none."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return [] if cursor.description is None else cursor.fetchall()


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    # The account that the server runs as cannot enter pytest's folders.
    with tempfile.TemporaryDirectory() as folder, PostgresServer(Scratch(Path(folder))) as server:
        yield server


@pytest.fixture
def place(server: PostgresServer) -> Place:
    made = server.database(f"d{uuid.uuid4().hex}")
    return Place(f"postgresql://postgres@/{made.name}?host={made.parent}")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with closing(oxlite.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE author (
                id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(20) NOT NULL UNIQUE,
                active BOOLEAN NOT NULL DEFAULT 1 CHECK (active IN (0, 1)), born DATE
            );
            CREATE TABLE note (
                id INTEGER PRIMARY KEY, author_id INTEGER NOT NULL REFERENCES author (id),
                text TEXT NOT NULL
            );
            CREATE INDEX note_author ON note (author_id);
            CREATE TABLE word (word TEXT PRIMARY KEY NOT NULL, count INTEGER) WITHOUT ROWID;
            CREATE TABLE line (a, b TEXT);
        """)
        for number in range(1, 301):
            connection.execute(
                "INSERT INTO author (name, active, born) VALUES (?, ?, '2000-01-31')",
                (f"author {number}", number % 2),
            )
            connection.execute("INSERT INTO note VALUES (?, ?, ?)", (number, number, "\\N\t\n"))
            connection.execute("INSERT INTO word VALUES (?, ?)", (f"word {number}", number))
            connection.execute("INSERT INTO line VALUES (?, NULL)", (number,))
        connection.execute("DELETE FROM note WHERE id > 299")
        connection.execute("DELETE FROM author WHERE id > 299")
        connection.commit()
    return path


Promote = Callable[..., Promoted]
Tell = Callable[[str, int, int], object]


def execute(path: Path, *statements: str) -> None:
    """What another program writes: each statement for itself."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for sql in statements:
            connection.execute(sql)


def file_of(folder: Path, script: str) -> Path:
    """A file in WAL mode, made by a script."""
    path = folder / f"{uuid.uuid4().hex}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(script)
    return path


def once(at: str, action: Callable[[], object]) -> Tell:
    """Does something when a promotion first tells of something that begins so."""
    todo = [action]

    def tell(name: str, _done: int, _total: int) -> None:
        if name.startswith(at) and todo:
            todo.pop()()

    return tell


def promote_file(
    path: Path,
    place: Place,
    settings: Settings | None = None,
    *,
    cut_over: bool = False,
    tell: Tell = lambda _name, _done, _total: None,
) -> Promoted:
    """Promote a file."""
    return promote(
        path,
        place.url,
        settings or Settings(),
        cut_over=cut_over,
        tell=tell,
        report=lambda _plan: None,
    )


@pytest.fixture
def promoted(database: Path, place: Place) -> Promote:
    """Promotes the file of ``database``."""
    return functools.partial(promote_file, database, place)
