"""Whether the directory in which Litestream notes what it has read is still the same one.

Invariant: the directory is kept open while it is known, so that no other gets its inode number.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from oxlite.replication.generation import identity, notes_directory

__all__ = ["Notes"]

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


class Notes:
    """Of one database.

    Args:
        database: Its file, resolved.
    """

    def __init__(self, database: Path) -> None:
        self._path = notes_directory(database)
        self._descriptor: int | None = None

    def see(self) -> None:
        """Know the directory that there is, if none is known."""
        if self._descriptor is None:
            with suppress(OSError):  # there is none yet
                self._descriptor = os.open(self._path, _FLAGS)

    def forget(self) -> None:
        """Know none."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def are_lost(self) -> bool:
        """Whether the one that was known is gone; then the one that is there now is known."""
        if self._descriptor is None:
            self.see()
            return False
        known = os.fstat(self._descriptor)
        if identity(self._path) == (known.st_dev, known.st_ino):
            return False
        self.forget()
        self.see()
        return True
