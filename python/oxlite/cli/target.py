"""The queue that a command is given: ``module:queue``, or the file that it is in."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oxlite.tasks import Queue

__all__ = ["TargetError", "imported_queue", "queue_of_file"]


class TargetError(OSError):
    """What was named is no queue."""


def imported_queue(target: str) -> "Queue":
    """The queue of a module, which is looked for in the current directory first.

    Raises:
        TargetError: There is no such module, or it has no such queue.
        Exception: What the module raises.
    """
    from oxlite.tasks import Queue

    module, colon, name = target.partition(":")
    if not colon or not module or not name:
        raise TargetError(
            f"{target!r} names no queue: say module:name, such as app:queue, where app.py has"
            " queue = oxlite.tasks.Queue('app.db')"
        )
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and needs another one
        raise TargetError(f"there is no module {error.name!r} here or on sys.path") from None
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Queue):
        raise TargetError(f"{module!r} has no oxlite.tasks.Queue of the name {name!r}")
    return found


@contextmanager
def queue_of_file(file: Path) -> "Iterator[Queue]":
    """The queue of a file that is there, closed at the end of the block.

    Raises:
        TargetError: There is none.
    """
    from oxlite import Database
    from oxlite.tasks import Queue

    if not file.is_file():
        raise TargetError(f"{file} is not there: name the file that the tasks are in")
    # Whoever only looks changes nothing of how the file is kept.
    with Database(file, journal="keep") as database:
        yield Queue(database)
