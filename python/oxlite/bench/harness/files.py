"""A file that a run is to be written to: tried before measuring, whole or absent after it.

Invariants: a place that cannot be written to is found out before anything is
measured; until the text is complete it stands beside the file under another
name, which is gone however the run ends; a device or a pipe (``/dev/stdout``)
is written to and never replaced.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oxlite.bench.errors import UsageError
from oxlite.bench.harness import interrupts


class Destination:
    """A file that has been found writable. Made by :func:`reserved`."""

    def __init__(self, path: Path) -> None:
        """Begin the file under its other name.

        Raises:
            UsageError: there is no writing to it.
        """
        self.path = path
        try:
            if path.is_dir():
                raise UsageError(f"{path} is a directory")
            if not path.parent.is_dir():
                raise UsageError(f"{path.parent} is not a directory")
            special = path.exists() and not path.is_file()
            self._target = path if special else path.resolve()
            self._partial = self._target
            if not special:
                self._partial = self._target.with_name(f"{self._target.name}.partial")
                self._partial.write_text("")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None

    def write(self, text: str) -> None:
        """Write all of ``text``.

        Raises:
            OSError: it cannot be written after all; the file is as it was before.
        """
        self._partial.write_text(text, encoding="utf-8")
        if self._partial != self._target:
            self._partial.replace(self._target)

    def is_there(self) -> bool:
        """Whether writing would replace a file."""
        return self._partial != self._target and self._target.exists()

    def discard(self) -> None:
        """Remove what was begun and not finished."""
        if self._partial != self._target:
            self._partial.unlink(missing_ok=True)


@contextmanager
def reserved(path: Path) -> Iterator[Destination]:
    """The destination ``path``, begun at once.

    Raises:
        UsageError: nothing can be written there.
    """
    destination = None
    try:
        with interrupts.held():
            destination = Destination(path)
        yield destination
    finally:
        if destination is not None:
            with interrupts.held():
                destination.discard()
