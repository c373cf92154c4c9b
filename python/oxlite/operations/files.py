"""A database's files: how it begins, and what lies beside it."""

import shlex
from pathlib import Path
from typing import Final

__all__ = ["MAGIC", "OXLITES", "SIDECARS", "SQLITES", "WITH_ROWS", "beside", "roll_back"]

MAGIC: Final = b"SQLite format 3\0"
"""How each database begins (https://sqlite.org/fileformat2.html)."""

WITH_ROWS: Final = ("-wal", "-journal")
"""What SQLite lays beside it that may hold what the database itself does not."""

SQLITES: Final = (*WITH_ROWS, "-shm")
"""What SQLite lays there."""

OXLITES: Final = ("-gate", "-used", "-locks", "-workers")
"""What Oxlite lays there (``file/beside.rs``, ``cache``, ``tasks``)."""

SIDECARS: Final = (*SQLITES, *OXLITES)
"""What both lay there."""


def beside(database: Path, suffixes: tuple[str, ...] = SIDECARS) -> list[Path]:
    """The paths of files beside a database, whether they are there or not."""
    return [database.with_name(f"{database.name}{suffix}") for suffix in suffixes]


def roll_back(database: Path) -> str:
    """The command that makes a database whole whose journal somebody has left who was killed.

    Whoever may write and reads it rolls it back; the journal has to be beside it.
    """
    return (
        f"python -m oxlite.sqlite3 {shlex.quote(str(database))}"
        ' "SELECT count(*) FROM sqlite_schema"'
    )
