"""Writing to standard output, for every command.

Invariant: a reader that went away is a ``BrokenPipeError`` for the entry point
to deal with, whichever way the output was written.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = [
    "contents_text",
    "print_json",
    "print_json_line",
    "print_tables",
    "print_text",
    "scan_progress",
]


class _PipeConsole(Console):
    """rich's console, which would otherwise end the process with code 1."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as indented JSON and nothing else."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def print_json_line(document: Mapping[str, Any]) -> None:
    """Print a document as JSON in a line, at once, for a program that reads line by line."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def print_text(text: str) -> None:
    """Print a text as it is."""
    sys.stdout.write(text)


def print_tables(renderable: RenderableType) -> None:
    """Print what rich can render, as wide as the terminal is; what it does not fold is not cut."""
    _PipeConsole(highlight=False).print(renderable, crop=False)


def contents_text(rows: Mapping[str, int | None]) -> str:
    """How much is in a database, for a person: ``2 tables, 1 row``."""
    tables, count = len(rows), sum(filter(None, rows.values()))
    return f"{tables:,} table{'' if tables == 1 else 's'}, {count:,} row{'' if count == 1 else 's'}"


@contextmanager
def scan_progress(
    *, in_bytes: bool = False, time_left: bool = False
) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on standard error for the length of a block, if somebody sits there; else None.

    Gives a function that takes a name, how far that has come, and of how much (0: unknown); both
    are shown where they are bytes. ``time_left`` shows how long it may take from now on, too.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(bar_width=None)]
    if in_bytes:
        columns.append(DownloadColumn())
    columns.append(TimeElapsedColumn())
    if time_left:
        columns += [TextColumn("left"), TimeRemainingColumn()]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("looking", total=None)

        def tell(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total or None)

        yield tell
