"""Which processes have a file open, as Linux tells it in ``/proc``.

Invariants:
- No file is opened: closing one would take the locks of another SQLite in this process.
- Processes of other users are seen by root alone; who cannot be seen is not guessed at.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from oxlite import harmless

__all__ = ["Opener", "openers"]

_PROC: Final = Path("/proc")
_COMMAND_CHARACTERS_AT_MOST: Final = 80


class Opener(NamedTuple):
    """A process that has one of the files open.

    Attributes:
        pid: Its number.
        command: Its command line, harmless to a terminal; empty where it cannot be read.
    """

    pid: int
    command: str

    def __str__(self) -> str:
        """Such as ``process 17 (gunicorn site.wsgi)``."""
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"


def openers(paths: Iterable[Path]) -> list[Opener]:
    """The processes that have any of these files open, this one among them.

    Args:
        paths: Of files; those that are not there are nobody's.
    """
    wanted = set()
    for path in paths:
        try:
            found = path.stat()
        except OSError:
            continue
        wanted.add((found.st_dev, found.st_ino))
    if not wanted or not _PROC.is_dir():
        return []
    return [
        Opener(int(process.name), _command(process))
        for process in sorted(_PROC.iterdir(), key=lambda one: one.name)
        if process.name.isdecimal() and _has_open(process, wanted)
    ]


def _has_open(process: Path, wanted: set[tuple[int, int]]) -> bool:
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # it has ended, or is another user's
        return False
    return any(_is_one(descriptor, wanted) for descriptor in descriptors)


def _is_one(descriptor: Path, wanted: set[tuple[int, int]]) -> bool:
    try:
        found = descriptor.stat()
    except OSError:  # closed in between
        return False
    return (found.st_dev, found.st_ino) in wanted


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    line = b" ".join(words).decode(errors="replace").strip()
    shown = line[:_COMMAND_CHARACTERS_AT_MOST]
    return harmless(shown + "…" if shown != line else shown)
