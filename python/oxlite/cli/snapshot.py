"""``oxlite snapshot …``: backups beside a database, each with a name."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from oxlite.cli.suggestions import SuggestingGroup

__all__ = ["snapshot"]

snapshot = typer.Typer(
    cls=SuggestingGroup,
    no_args_is_help=True,
    help="Keep what a database is now, by a name, beside it: before a migration, for example.",
)

_Database = Annotated[Path, typer.Argument(metavar="DB", help="The database.")]
_Json = Annotated[bool, typer.Option("--json", help="Print it as JSON and nothing else.")]
_Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Its name.", show_default=False),
]


@snapshot.command("create")
def _create(database: _Database, name: _Name = None, as_json: _Json = False) -> None:
    """Make one, while the database is in use. Without a name it has that of the time.

    For example: oxlite snapshot create app.db before-migration
    """
    import shlex

    from oxlite import operations
    from oxlite.cli.output import print_json, scan_progress

    with scan_progress(in_bytes=True) as stage:
        made = operations.create_snapshot(database, name, stage=stage)
    if as_json:
        print_json({"snapshot": made.name, "file": str(made.path)})
        return
    typer.echo(f"{made.name}: verified")
    words = shlex.join(["oxlite", "snapshot", "restore", str(database), made.name])
    typer.echo(f"Back to it: {words}", err=True)


@snapshot.command("list")
def _list(database: _Database, as_json: _Json = False) -> None:
    """List them, the oldest first.

    For example: oxlite snapshot list app.db
    """
    from oxlite import operations
    from oxlite.cli.output import print_json, print_tables
    from oxlite.operations.files import size_text

    found = operations.list_snapshots(database)
    if as_json:
        print_json(
            {
                "snapshots": [
                    {"name": one.name, **operations.manifest_as_json(one.manifest)} for one in found
                ]
            }
        )
        return
    if not found:
        typer.echo(f"{database} has no snapshots", err=True)
        return
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("name", "taken (UTC)", "size", "rows"):
        table.add_column(
            heading, justify="right" if heading in ("size", "rows") else "left", overflow="fold"
        )
    for one in found:
        manifest = one.manifest
        table.add_row(
            one.name,
            f"{manifest.created_at:%Y-%m-%d %H:%M:%S}",
            size_text(manifest.size),
            f"{sum(filter(None, manifest.contents.rows.values())):,}",
        )
    print_tables(table)


@snapshot.command("restore")
def _restore(
    database: _Database,
    name: _Name = None,
    live: Annotated[
        bool, typer.Option("--live", help="Write it into the database while others have it open.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Have the database as it was then; without a name, as the last one has it.

    It is what oxlite restore does: what was there is kept as DB.before-TIME.

    For example: oxlite snapshot restore app.db before-migration
    """
    from oxlite import operations
    from oxlite.cli.output import scan_progress
    from oxlite.cli.restore import tell_restored

    with scan_progress(in_bytes=True) as stage:
        done = operations.restore_snapshot(database, name, live=live, stage=stage)
    tell_restored(done, as_json)


@snapshot.command("prune")
def _prune(
    database: _Database,
    keep: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Keep the last N.", show_default=False),
    ] = None,
    keep_days: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="DAYS", help="Keep those that are younger.", show_default=False
        ),
    ] = None,
) -> None:
    """Delete old ones. The last that is what was verified is kept in any case.

    For example: oxlite snapshot prune app.db --keep 5
    """
    from oxlite import operations

    if keep is None and keep_days is None:
        raise typer.BadParameter("say --keep N or --keep-days DAYS, or both")
    deleted = operations.prune_snapshots(
        database,
        keep=keep,
        keep_for=None if keep_days is None else timedelta(days=keep_days),
    )
    for one in deleted:
        typer.echo(f"deleted {one.name}")
    left = len(operations.list_snapshots(database))
    typer.echo(f"{left} left", err=True)
