"""A flag that one process raises and others see, at the price of a look at memory."""

import mmap
from pathlib import Path


class Flag:
    """A byte of a file that all of them have mapped."""

    def __init__(self, path: Path) -> None:
        with path.open("rb+") as file:
            self._bytes = mmap.mmap(file.fileno(), 1)

    @staticmethod
    def make(path: Path) -> None:
        """Make the file of one that is not raised."""
        path.write_bytes(b"\0")

    def lift(self) -> None:
        """Let all see it."""
        self._bytes[0] = 1

    def is_up(self) -> bool:
        """Whether somebody has raised it."""
        return bool(self._bytes[0])

    def close(self) -> None:
        """Look no more."""
        self._bytes.close()
