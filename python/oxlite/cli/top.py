"""``oxlite top``: what goes on in a database now, for a reader or for a program."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["top"]


def top(
    database: Annotated[
        Path,
        typer.Argument(
            metavar="DB", help="The database's file. It may be in use.", show_default=False
        ),
    ],
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            help="How long after one look the next one is made, from 0.1 to 3600. Rates are between"
            " two looks.",
        ),
    ] = 2.0,
    count: Annotated[
        int | None,
        typer.Option(
            "--count",
            metavar="N",
            min=1,
            help="End after so many looks; else only Ctrl-C ends it.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Look for one interval, print that, and end. So it does where standard output is"
            " no terminal, or one that cannot be redrawn (TERM=dumb), unless --count or --json says"
            " otherwise.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print JSON and nothing else: with --once a document, else a line for each look.",
        ),
    ] = False,
    prometheus: Annotated[
        bool,
        typer.Option(
            "--prometheus",
            help="Print it once in Prometheus's text format, for node_exporter's textfile"
            " collector. No statement and no command line is in it.",
        ),
    ] = False,
) -> None:
    """Show what goes on in a database now: who waits, writes, and reads how old a snapshot.

    Writers in line, who has the write lock and for what, waits, turns, commits, batches, the WAL
    and its checkpoints, the slowest statements, and the processes that have it open, redrawn in
    place. Who reads, who writes, and how many commits there are is seen of every SQLite. The rest
    is told by processes of Oxlite while somebody watches.

    Nothing is written to the database, and nobody waits for it. Run it as the user of the
    application, or as root to see everybody.

    Exit code: 0 when it is ended, also by Ctrl-C, and 2 if it cannot be watched: there is no such
    file, it may not be read, it is no database, or it was deleted meanwhile.

    For example: oxlite top app.db --once --json | jq .commits_per_second
    """
    import sys

    if once and count is not None:
        raise typer.BadParameter("--once is one look: leave --count away")
    if prometheus and (as_json or count is not None):
        raise typer.BadParameter("--prometheus is one look in a form of its own")
    is_shown = not (once or as_json or prometheus) and sys.stdout.isatty() and _can_redraw()
    if not is_shown and count is None and not (as_json and not once):
        count = 1
    form = "prometheus" if prometheus else "json" if as_json else "table"
    try:
        if is_shown:
            from oxlite.operations import top as room

            room.show(database, interval_seconds=interval, count=count)
        else:
            _print(database, interval, count, form, is_line=as_json and not once)
    except KeyboardInterrupt as interrupt:
        if hasattr(interrupt, "signal_number"):
            raise  # another signal than that of Ctrl-C


def _can_redraw() -> bool:
    """Whether the terminal has another screen; rich draws nothing at all on one that has none."""
    import os

    return os.environ.get("TERM", "").lower() not in {"dumb", "unknown"}


def _print(database: Path, interval: float, count: int | None, form: str, *, is_line: bool) -> None:
    from oxlite.cli.output import print_json, print_json_line, print_tables, print_text
    from oxlite.operations import top as room

    for sample in room.watch(database, interval_seconds=interval, count=count):
        if form == "prometheus":
            print_text(room.as_prometheus(sample))
        elif form == "json":
            (print_json_line if is_line else print_json)(sample.as_dict())
        else:
            print_tables(room.render(sample))
