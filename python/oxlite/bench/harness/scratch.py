"""The directory a run works in: made at the start, gone at the end.

Invariants: everything the lab writes while measuring is below one directory
whose name begins with ``oxlite-bench-``; it is removed however the run ends,
unless the user asked to keep it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oxlite.bench.errors import UsageError
from oxlite.bench.harness import interrupts

PREFIX = "oxlite-bench-"


class Scratch:
    """A run's working directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fresh(self, name: str) -> Path:
        """An empty directory called ``name``, whatever it held before.

        A name may hold the path of an interpreter.
        """
        directory = self.path / name.replace(" ", "-").replace("/", ":")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        return directory


def copy_synced(source: Path, target: Path) -> None:
    """Copy a file and wait until it is on the disk.

    Else the kernel would write it back while the first rows are measured.
    """
    shutil.copyfile(source, target)
    with target.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def scratch(parent: Path, *, keep: bool) -> Iterator[Scratch]:
    """A working directory below ``parent``, removed afterwards unless ``keep``.

    Raises:
        UsageError: ``parent`` is not a directory one can write to.
    """
    if not parent.is_dir():
        raise UsageError(f"{parent} is not a directory")
    try:
        with interrupts.held():
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    except OSError as error:
        raise UsageError(f"cannot write to {parent}: {error.strerror}") from None
    try:
        yield Scratch(path)
    finally:
        if not keep:
            with interrupts.held():
                shutil.rmtree(path, ignore_errors=True)
