"""What a chapter is played with: a folder of database files, and the connections to them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oxlite
from oxlite import sqlite3

Content = tuple[Any, ...]
"""All that is in a database."""

NOTHING: Content = ()


class Stage:
    """A folder and its connections."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.connections: list[tuple[sqlite3.Connection, str | None]] = []
        """Each with the file that is its main database."""

    def path(self, name: str) -> str:
        """The path of a file."""
        return str(self.folder / name)

    def connect(self, name: str, **options: Any) -> sqlite3.Connection:  # noqa: ANN401
        """Opens a database as the standard library does."""
        return self._opened(sqlite3.connect, name, options)

    def connect_profile(self, name: str, **options: Any) -> sqlite3.Connection:  # noqa: ANN401
        """Opens a database with a production profile."""
        return self._opened(oxlite.connect, name, options)

    def _opened(
        self, connect: Callable[..., sqlite3.Connection], name: str, options: dict[str, Any]
    ) -> sqlite3.Connection:
        in_memory = name == ":memory:"
        connection = connect(name if in_memory else self.path(name), **{"timeout": 0.002} | options)
        self.connections.append(
            (connection, None if in_memory else (self.folder / name).resolve().name)
        )
        return connection


Steps = Iterator[object]


@dataclass(frozen=True)
class Chapter:
    """A part of the session: each step ends by yielding what it has found."""

    play: Callable[[Stage], Steps]
    prepare: Callable[[Stage], None]
    """Makes the files that are there at the beginning."""
    is_first: bool = False
    """Whether it must be the first thing that its process does with SQLite."""
    files_are_one: bool = True
    """Whether a step that fails leaves all files as they were, or none."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.play.__name__.replace("_", " ")


def content_of(connection: sqlite3.Connection) -> Content:
    """All that a connection sees in its main database, which must be sound."""
    connection.row_factory = None
    connection.text_factory = str
    cursor = connection.cursor()
    (check,) = cursor.execute("PRAGMA main.integrity_check").fetchall()
    if check != ("ok",):
        raise AssertionError(f"integrity_check: {check}")
    schema = cursor.execute(
        "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY name, type"
    ).fetchall()
    kinds = {row[1]: row[2] for row in cursor.execute("PRAGMA main.table_list").fetchall()}
    tables = [
        (
            name,
            tuple(sorted(map(repr, cursor.execute(f'SELECT * FROM main."{name}"').fetchall()))),
        )
        for kind, name, _, _ in schema
        if kind == "table" and kinds.get(name) != "shadow"
    ]
    (version,) = cursor.execute("PRAGMA main.user_version").fetchall()
    cursor.close()
    if not schema and version == (0,):
        return NOTHING
    return tuple(schema), tuple(tables), version


def content_of_file(path: Path) -> Content:
    """All that is in a database file, which must be sound."""
    if not path.exists():
        return NOTHING
    connection = sqlite3.connect(path)
    try:
        return content_of(connection)
    finally:
        connection.close()
