"""``oxlite restore``: a backup in the place of a database."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["restore", "tell_restored"]


def restore(
    backup: Annotated[
        Path,
        typer.Argument(metavar="BACKUP", help="What oxlite backup has made; or any database."),
    ],
    database: Annotated[Path, typer.Argument(metavar="DB", help="What it becomes.")],
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Write it into the database while others have it open: one transaction, which"
            " they see as any other.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was done as JSON and nothing else.")
    ] = False,
) -> None:
    """Put a backup in the place of a database.

    It is compared with its checksum and verified first. While somebody has the database open it is
    refused, and said who, but with --live. What was there is kept as DB.before-TIME.

    Exit code: 0, or 2 if nothing was restored.

    For example: oxlite restore /backups/app-20260101T000000Z.db app.db
    """
    from oxlite import operations
    from oxlite.cli.output import scan_progress

    with scan_progress(in_bytes=True) as stage:
        done = operations.restore(backup, database, live=live, stage=stage)
    tell_restored(done, as_json)


def tell_restored(done: object, as_json: bool) -> None:
    """Say what was restored."""
    from oxlite.cli.output import contents_text, print_json
    from oxlite.operations import Restored

    assert isinstance(done, Restored)
    rows = sum(filter(None, done.contents.rows.values()))
    if as_json:
        print_json(
            {
                "database": str(done.path),
                "tables": len(done.contents.rows),
                "rows": rows,
                "kept_as": None if done.kept_as is None else str(done.kept_as),
                "had_checksum": done.was_proved,
            }
        )
        return
    typer.echo(f"{done.path}: {contents_text(done.contents.rows)}, verified")
    if not done.was_proved:
        typer.echo("The backup had no manifest: its checksum could not be compared", err=True)
    if done.kept_as is not None:
        typer.echo(f"What was there is {done.kept_as}", err=True)
