"""``oxlite backup``: a verified copy of a database that others use meanwhile."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["backup"]


def backup(
    database: Annotated[Path, typer.Argument(metavar="DB", help="The database.")],
    target: Annotated[
        str,  # a slash at its end says that it is a directory
        typer.Argument(
            metavar="TARGET",
            help="The file of the backup; or a directory, where it is named by the database and"
            " the time.",
        ),
    ] = ".",
    compress: Annotated[
        bool, typer.Option("--compress", help="Compress it (Zstandard): NAME.db.zst.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            metavar="MIB",
            help="Copy so many MiB a second at the most, as long as the WAL is not larger than its"
            " limit. [dim]\\[default: as fast as it goes][/dim]",
            show_default=False,
        ),
    ] = None,
    nice: Annotated[
        int,
        typer.Option(
            min=0,
            max=19,
            metavar="N",
            help="By how much it gives way to others who want the processor (Linux).",
        ),
    ] = 10,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Then delete older backups of this database in the directory: the last N stay.",
            show_default=False,
        ),
    ] = None,
    keep_days: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="DAYS",
            help="The same: those that are younger stay. With both, what either keeps.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The host that the database is on, where several back up into one directory."
            " [dim]\\[default: what this machine calls itself][/dim]",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was made as JSON and nothing else.")
    ] = False,
) -> None:
    """Copy a database while it is in use, and verify the copy.

    It is one snapshot: what was committed when it began. Nobody waits for it, if the database has a
    WAL. The backup has its name when it is whole, verified (integrity, rows) and synced; its
    checksum is beside it, in NAME.json. The last backup that is what was verified is never deleted.

    Exit code: 0, or 2 if there is no backup.

    For example: oxlite backup app.db /backups --compress --keep 7 --keep-days 30
    """
    import shlex

    from oxlite import harmless, operations
    from oxlite.cli.output import contents_text, print_json, scan_progress
    from oxlite.operations.files import size_text

    if (keep is not None or keep_days is not None) and not os.path.isdir(target):  # noqa: PTH112 - it is text
        raise typer.BadParameter(
            f"--keep and --keep-days go with a directory, and {target} is none"
        )
    with scan_progress(in_bytes=True) as stage:
        made = operations.backup(
            database,
            target,
            compress=compress,
            bytes_per_second=None if rate is None else rate * (1 << 20),
            nice=nice,
            host=host,
            stage=stage,
        )
    deleted = []
    if keep is not None or keep_days is not None:
        deleted = operations.prune(
            made.path.parent,
            database=database,
            host=host,
            keep=keep,
            keep_for=None if keep_days is None else timedelta(days=keep_days),
        )
    if as_json:
        print_json(
            {
                "backup": str(made.path),
                "manifest": operations.manifest_as_json(made.manifest),
                "deleted": [str(one.path) for one in deleted],
            }
        )
        return
    contents = made.manifest.contents
    typer.echo(f"{made.path}: {size_text(made.manifest.size)}, verified")
    typer.echo(contents_text(contents.rows), err=True)
    if contents.foreign_key_violations:
        typer.echo(
            f"{contents.foreign_key_violations:,} rows refer to nothing, as in the database:"
            f" PRAGMA foreign_key_check",
            err=True,
        )
    for said, count in (contents.violations or {}).items():
        typer.echo(f"{harmless(said)} ({count:,} rows), as in the database", err=True)
    if contents.unchecked:
        typer.echo(
            f"not checked, since only the application has the functions for it:"
            f" {harmless(', '.join(contents.unchecked))}",
            err=True,
        )
    for one in deleted:
        typer.echo(f"deleted {one.path}", err=True)
    words = shlex.join(["oxlite", "restore", str(made.path), str(database)])
    typer.echo(f"Restore it: {words}", err=True)
