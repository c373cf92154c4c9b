"""``oxlite restore``: a backup, or a replica, in the place of a database."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["restore", "tell_restored"]


def restore(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[BACKUP] DB",
            help="What oxlite backup has made, or any database; what it becomes. With --from the"
            " latter alone.",
            show_default=False,
        ),
    ],
    url: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="URL",
            help="Where a replica is that oxlite replicate keeps: a directory or a URL.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="With --from: as it was then, such as 2026-01-01T12:00:00Z."
            " [dim]\\[default: as it is now][/dim]",
            show_default=False,
        ),
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(
            "--credentials",
            metavar="FILE",
            help="With --from: as for oxlite replicate. [dim]\\[default: the environment][/dim]",
            show_default=False,
        ),
    ] = None,
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
    """Put a backup, or a replica, in the place of a database.

    It is compared with its checksum, if it has one, and verified first. While somebody has the
    database open it is refused, and said who, but with --live. What was there is kept as
    DB.before-TIME.

    Exit code: 0, or 2 if nothing was restored.

    For example: oxlite restore /backups/app-20260101T000000Z.db app.db
    """
    from oxlite import operations
    from oxlite.cli.output import scan_progress

    if url is not None:
        if len(paths) != 1:
            raise typer.BadParameter("with --from name the database alone: --from URL DB")
        _restore_from(url, paths[0], at, credentials, live, as_json)
        return
    if at is not None or credentials is not None:
        raise typer.BadParameter("--at and --credentials go with --from URL")
    if len(paths) != 2:
        raise typer.BadParameter("name the backup and the database: BACKUP DB, or --from URL DB")
    with scan_progress(in_bytes=True) as stage:
        done = operations.restore(paths[0], paths[1], live=live, stage=stage)
    tell_restored(done, as_json)


def _restore_from(
    url: str, database: Path, at: str | None, credentials: Path | None, live: bool, as_json: bool
) -> None:
    from oxlite import replication
    from oxlite.cli.output import scan_progress

    litestream = replication.find_litestream(
        credentials=None if credentials is None else replication.read_credentials(credentials)
    )
    with scan_progress(in_bytes=True) as stage:
        done = replication.restore_from(
            litestream,
            replication.store_of(url),
            database,
            at=None if at is None else replication.point_in_time(at),
            live=live,
            stage=stage,
        )
    tell_restored(done, as_json, is_replica=True)


def tell_restored(done: object, as_json: bool, *, is_replica: bool = False) -> None:
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
    if not done.was_proved and not is_replica:
        typer.echo("The backup had no manifest: its checksum could not be compared", err=True)
    if done.kept_as is not None:
        typer.echo(f"What was there is {done.kept_as}", err=True)
