"""Snapshots: backups of a database beside it, each with a name.

They are in the directory ``NAME.snapshots``, and are what ``backups`` has.
"""

import os
import re
from datetime import timedelta
from functools import partial as bound
from pathlib import Path
from typing import Final

from oxlite.operations.backups import Backup, backup, backups_in, prune_each
from oxlite.operations.errors import OperationsError
from oxlite.operations.files import refuse_long_name
from oxlite.operations.restore import Restored, restore
from oxlite.operations.verification import Stage

__all__ = [
    "create_snapshot",
    "list_snapshots",
    "prune_snapshots",
    "restore_snapshot",
    "snapshots_directory",
]

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_SUFFIX: Final = ".db"


def snapshots_directory(database: str | os.PathLike[str]) -> Path:
    """Where those of a database are."""
    path = Path(database).resolve()
    return path.with_name(f"{path.name}.snapshots")


def create_snapshot(
    database: str | os.PathLike[str], name: str | None = None, *, stage: Stage | None = None
) -> Backup:
    """Make one, named by the time if nothing is said.

    Raises:
        OperationsError: There is no such database, the name is none, or there is one of that name.
        VerificationFailed, oxlite.sqlite3.Error, OSError: See ``backup``.
    """
    directory = snapshots_directory(database)
    target = directory if name is None else directory / f"{_checked(name)}{_SUFFIX}"
    if not Path(database).is_file():
        raise OperationsError(f"there is no {database}")
    refuse_long_name(directory)
    directory.mkdir(mode=0o700, exist_ok=True)
    return backup(database, target, stage=stage)


def list_snapshots(database: str | os.PathLike[str]) -> list[Backup]:
    """Those of a database, the first first."""
    directory = snapshots_directory(database)
    return backups_in(directory) if directory.is_dir() else []


def restore_snapshot(
    database: str | os.PathLike[str],
    name: str | None = None,
    *,
    live: bool = False,
    stage: Stage | None = None,
) -> Restored:
    """Put one in the place of its database: the last one if nothing is said.

    Raises as ``restore``; and OperationsError where there is none of that name.
    """
    found = list_snapshots(database)
    if name is not None:
        found = [one for one in found if one.name == name]
    if not found:
        known = ", ".join(one.name for one in list_snapshots(database))
        raise OperationsError(
            f"{database} has no snapshot{'' if name is None else f' {name!r}'}"
            + (f"; it has {known}" if known else "")
        )
    return restore(found[-1].path, database, live=live, stage=stage)


def prune_snapshots(
    database: str | os.PathLike[str],
    *,
    keep: int | None = None,
    keep_for: timedelta | None = None,
) -> list[Backup]:
    """Delete old ones: see ``prune``. All in its directory are the database's, wherever it was."""
    directory = snapshots_directory(database)
    if not directory.is_dir():
        return []
    return prune_each(directory, bound(backups_in, directory), lambda _one: None, keep, keep_for)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise OperationsError(
            f"{name!r} is no name of a snapshot: letters, digits, '_', '-' and '.', up to 100"
        )
    return name
