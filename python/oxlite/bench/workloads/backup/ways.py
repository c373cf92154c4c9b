"""The ways of making a backup, each as its documentation says, without settings of ours.

Each copies ``source`` to ``target``, which is not there, in the process that calls it; the shell is
a program of its own. Only Oxlite's looks at what it has made. All but the copied file wait until it
is on the disk. The shell's copies a hundred pages at a time and begins again when another process
has committed, so it may never end: it is given up after a while.
"""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from oxlite import operations
from oxlite import sqlite3 as own
from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.installed import SHELL
from oxlite.bench.harness.outcomes import kind
from oxlite.bench.harness.programs import Program

NONE = "none"
OURS = ("oxlite", "oxlite_zstd")
COMPRESSED = "oxlite_zstd"

Way = Callable[[Path, Path, float], None]
"""Is given the database, the file to make, and the seconds after which a program is given up."""

FAILURES = (operations.OperationsError, own.Error, sqlite3.Error, OSError, WorkerError)


def _oxlite(source: Path, target: Path, _: float) -> None:
    operations.backup(source, target)


def _oxlite_zstd(source: Path, target: Path, _: float) -> None:
    operations.backup(source, target, compress=True)


def _shell(source: Path, target: Path, limit_seconds: float) -> None:
    # Its commands have quotes of their own: the name of the file alone needs none.
    arguments = (SHELL, "-batch", str(source), f".backup {target.name}")
    output = target.with_suffix(".output")
    with Program("the shell", arguments, output, directory=target.parent) as program:
        program.wait(limit_seconds)


def _vacuum(source: Path, target: Path, _: float) -> None:
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def _stdlib(source: Path, target: Path, _: float) -> None:
    with closing(sqlite3.connect(source)) as here, closing(sqlite3.connect(target)) as there:
        here.backup(there, pages=-1)


def _cp(source: Path, target: Path, _: float) -> None:
    shutil.copyfile(source, target)


WAYS: Mapping[str, Way] = {
    "oxlite": _oxlite,
    COMPRESSED: _oxlite_zstd,
    "shell": _shell,
    "vacuum": _vacuum,
    "stdlib": _stdlib,
    "cp": _cp,
}


def made(way: str, source: Path, target: Path, limit_seconds: float) -> str | None:
    """Make a backup; why there is none, or ``None`` if there is.

    Args:
        way: the name of one of ``WAYS``.
        source: the database.
        target: the file of the backup.
        limit_seconds: see the module.
    """
    try:
        WAYS[way](source, target, limit_seconds)
    except FAILURES as error:
        return str(error) if isinstance(error, WorkerError) else kind(error)
    return None


def version(way: str) -> str:
    """The version of SQLite that copies; empty where none does."""
    if way in OURS:
        return own.sqlite_version
    if way in {"vacuum", "stdlib"}:
        return sqlite3.sqlite_version
    if way == "shell":
        said = subprocess.run([SHELL, "--version"], capture_output=True, text=True, check=True)
        return said.stdout.partition(" ")[0]
    return ""
