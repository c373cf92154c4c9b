"""``oxlite env``: the environment report, for a reader or for a program."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["env"]


def env(
    database: Annotated[
        Path | None,
        typer.Argument(
            metavar="DB",
            help="An existing database file. Without one: a database in memory, and the current"
            " directory's file system.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The profile to apply: stock, web, durable, cache or untrusted."
            " [dim]\\[default: web for a file, stock without one][/dim]",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Also run integrity_check and quick_check, which read the whole file.",
        ),
    ] = False,
    no_fsync: Annotated[
        bool,
        typer.Option("--no-fsync", help="Do not measure what a sync costs in the directory."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON and nothing else.")
    ] = False,
) -> None:
    """Show everything a figure measured here depends on.

    The SQLite inside and how it was compiled, the pragmas in force on a connection as Oxlite
    opens it, which of them could not apply and why, the machine, the file system and what a sync
    costs on it.

    The database is not changed: it is not created, keeps its journal mode, and its bytes stay.

    Exit code: 0, or 1 if --check found a problem, or 2 if the database cannot be read.

    For example: oxlite env app.db --profile durable --json > environment.json
    """
    from oxlite import environment
    from oxlite.cli.output import print_json, print_tables

    report = environment.inspect_database(
        database, profile=profile, check=check, fsync=not no_fsync
    )
    if as_json:
        print_json(report)
    else:
        print_tables(environment.render(report))
    if environment.checks_passed(report) is False:
        raise typer.Exit(1)
