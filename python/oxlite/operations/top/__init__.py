"""What goes on in a database now: who waits, who writes, who reads how old a snapshot.

::

    watch.py        the watch: both sources joined, and what has changed between two looks
    outside.py      what can be seen from outside, whatever SQLite uses the file
    wal_index.py    the header of the WAL's index; kept_file.py: its descriptor
    told.py         what processes of Oxlite tell while somebody watches; containers.py: who they
                    are here
    sample.py       what one look has seen
    prometheus.py   a sample for Prometheus
    tables.py       a sample for a terminal; screen.py: redrawn in place (these two need rich)

Invariants: a watch writes nothing to the database, locks nothing of it, and holds nobody up;
importing this room does not import rich.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from oxlite.operations.errors import OperationsError
from oxlite.operations.top.prometheus import as_prometheus
from oxlite.operations.top.sample import (
    SCHEMA,
    Line,
    Process,
    Reader,
    Sample,
    Statement,
    Wal,
    Writer,
)
from oxlite.operations.top.watch import Watch, watch

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "SCHEMA",
    "Line",
    "OperationsError",
    "Process",
    "Reader",
    "Sample",
    "Statement",
    "Wal",
    "Watch",
    "Writer",
    "as_prometheus",
    "render",
    "show",
    "watch",
]


def render(sample: Sample) -> "RenderableType":
    """A sample for a terminal of 40 columns or more.

    Raises:
        OperationsError: rich is not installed.
    """
    try:
        from oxlite.operations.top.tables import View
    except ModuleNotFoundError as error:
        raise _needs_rich(error) from error
    return View(sample)


def show(path: Path | str, *, interval_seconds: float = 2.0, count: int | None = None) -> None:
    """Show a database on the terminal that is standard output, until Ctrl-C, or so many times.

    Args:
        path: An existing file. It may be in use.
        interval_seconds: From 0.1 to 3600.
        count: How many looks; None is without end.

    Raises:
        OperationsError: There is no such file, it may not be read, it is no database, or it was
            deleted while it was watched; the interval is none; or rich is not installed.
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP; its ``signal_number`` says which.
    """
    try:
        from oxlite.operations.top import screen
    except ModuleNotFoundError as error:
        raise _needs_rich(error) from error
    screen.show(path, interval_seconds=interval_seconds, count=count)


def _needs_rich(error: ModuleNotFoundError) -> Exception:
    if error.name is None or error.name.partition(".")[0] != "rich":
        return error
    return OperationsError("this needs rich: pip install 'oxlite[cli]'")
