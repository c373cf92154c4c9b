"""``oxlite cache …``: what a cache holds, and what one does with it by hand."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oxlite.cli.suggestions import SuggestingGroup

if TYPE_CHECKING:
    from oxlite.cache import Cache

__all__ = ["cache"]

cache = typer.Typer(
    cls=SuggestingGroup,
    no_args_is_help=True,
    help="Look at a cache of oxlite.cache, or of Django's OxliteCache, and tidy it by hand.",
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The cache's file, which exists.")]


@cache.command("stats")
def _stats(
    file: _File,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers as JSON and nothing else.")
    ] = False,
) -> None:
    """Show how many entries a cache has, how large it is, and for how long they were not used.

    It reads all of the file. Hits, misses and evictions are counted by each process for itself:
    `cache.stats()` has them there.

    For example: oxlite cache stats cache.db
    """
    from oxlite.cli.output import print_json, print_tables

    with _opened(file) as opened:
        found = asdict(opened.stats())
    shown = {name: found[name] for name in ("entries", "used_bytes", "oldest_seconds")}
    shown["file_bytes"] = file.stat().st_size
    wal = Path(f"{file}-wal")
    shown["wal_bytes"] = wal.stat().st_size if wal.exists() else 0
    if as_json:
        print_json(shown)
        return
    from rich.table import Table

    table = Table(title=f"The cache {file}", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("entries", f"{shown['entries']:,}")
    table.add_row("pages in use", _bytes(shown["used_bytes"]))
    table.add_row("file, WAL", f"{_bytes(shown['file_bytes'])}, {_bytes(shown['wal_bytes'])}")
    table.add_row("not used for, at most", f"{shown['oldest_seconds']:,.0f} s")
    print_tables(table)


@cache.command("prune")
def _prune(file: _File) -> None:
    """Delete what has expired, and say how many entries that were. It happens in passing as well.

    For example: oxlite cache prune cache.db
    """
    with _opened(file) as opened:
        typer.echo(f"{opened.prune():,} expired entries deleted")


@cache.command("clear")
def _clear(file: _File) -> None:
    """Delete all entries. Whoever uses the cache goes on, with an empty one.

    For example: oxlite cache clear cache.db
    """
    with _opened(file) as opened:
        if not opened.clear():
            raise OSError(f"{file} could not be cleared: the log says why")
    typer.echo("all entries deleted")


def _opened(file: Path) -> "Cache":
    """The cache, without a limit: nothing is evicted by looking at it.

    Raises:
        FileNotFoundError: There is none.
        oxlite.sqlite3.Error: It is no cache.
    """
    from oxlite.cache import Cache

    if not file.is_file():
        raise FileNotFoundError(f"{file} is not there: name the file of a cache")
    return Cache(file, size=None)


def _bytes(count: int) -> str:
    return f"{count / (1 << 20):,.1f} MiB"
