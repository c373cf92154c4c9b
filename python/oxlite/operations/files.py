"""A database's files: how it begins, and what lies beside it."""

import os
import shlex
from pathlib import Path
from typing import Final

from oxlite.operations.errors import OperationsError

__all__ = [
    "MAGIC",
    "OXLITES",
    "SIDECARS",
    "SQLITES",
    "WITH_ROWS",
    "beside",
    "cut",
    "litestream_directory",
    "name_bytes_in",
    "refuse_long_name",
    "roll_back",
    "size_text",
]

MAGIC: Final = b"SQLite format 3\0"
"""How each database begins (https://sqlite.org/fileformat2.html)."""

WITH_ROWS: Final = ("-wal", "-journal")
"""What SQLite lays beside it that may hold what the database itself does not."""

SQLITES: Final = (*WITH_ROWS, "-shm")
"""What SQLite lays there."""

OXLITES: Final = ("-gate", "-activity", "-used", "-locks", "-workers", "-replica")
"""What Oxlite lays there (``file/beside.rs``, ``cache``, ``tasks``, ``replication``)."""

SIDECARS: Final = (*SQLITES, *OXLITES)
"""What both lay there."""


_NAME_BYTES: Final = 255
"""Of most file systems."""


def beside(database: Path, suffixes: tuple[str, ...] = SIDECARS) -> list[Path]:
    """The paths of files beside a database, whether they are there or not."""
    return [database.with_name(f"{database.name}{suffix}") for suffix in suffixes]


def litestream_directory(database: Path) -> Path:
    """Where Litestream notes what it has read of a database: a directory beside it.

    Source: https://litestream.io/how-it-works/. It sees when another file has the database's name,
    and sends all of that.
    """
    return database.with_name(f".{database.name}-litestream")


def name_bytes_in(directory: Path, suffix: str = "") -> int:
    """How many bytes a database's name may have in a directory, with the longest beside it.

    Args:
        directory: Whether it is there or not.
        suffix: What else lies beside the database, if it is longer than SQLite's and Oxlite's.
    """
    longest = max(len(one) for one in (*SIDECARS, suffix))
    try:
        return os.pathconf(directory, "PC_NAME_MAX") - longest
    except (OSError, ValueError):
        return _NAME_BYTES - longest


def refuse_long_name(database: Path) -> None:
    """See that a database can have this name, and what lies beside it its own.

    Raises:
        OperationsError: It is too long.
    """
    most, has = name_bytes_in(database.parent), len(os.fsencode(database.name))
    if has > most:
        raise OperationsError(
            f"{database.name} is too long a name: it has {has} bytes, and what lies beside a"
            f" database leaves {most} for it"
        )


def cut(name: str, bytes_at_most: int) -> str:
    """The beginning of a name that has so many bytes at the most, in whole characters."""
    encoded = os.fsencode(name)
    return (
        name if len(encoded) <= bytes_at_most else encoded[:bytes_at_most].decode(errors="ignore")
    )


def roll_back(database: Path) -> str:
    """The command that makes a database whole whose journal somebody has left who was killed.

    Whoever may write and reads it rolls it back; the journal has to be beside it.
    """
    return (
        f"python -m oxlite.sqlite3 {shlex.quote(str(database))}"
        ' "SELECT count(*) FROM sqlite_schema"'
    )


def size_text(count: int) -> str:
    """A number of bytes for a person: ``36.5 MiB``."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = min(max(count.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{count / 1024**power:.1f}".removesuffix(".0") + f" {units[power]}"
