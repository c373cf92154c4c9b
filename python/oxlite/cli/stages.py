"""Progress of what takes a while, on standard error, where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["shown_stages"]


@contextmanager
def shown_stages() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show what is being done, until the end of the block.

    Yields:
        What is called with that, how much of it is done and how much there is; ``None`` where
        nobody looks.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        shown = progress.add_task("", total=None)

        def show(what: str, done: int, of: int) -> None:
            progress.update(shown, description=what, completed=done, total=of or None)

        yield show
