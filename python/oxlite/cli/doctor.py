"""``oxlite doctor``: whether a database is well, for a reader or for a program."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["doctor"]


def doctor(
    database: Annotated[
        Path,
        typer.Argument(
            metavar="DB", help="The database's file. It may be in use.", show_default=False
        ),
    ],
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="Compare each index with its table as well, and take all the time that takes;"
            " a quick"
            " examination ends each check after ten seconds.",
        ),
    ] = False,
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The profile of the application: stock, web, durable, cache or untrusted.",
        ),
    ] = "web",
    backups: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Where oxlite backup puts its backups: whether there is one, how old, and whole.",
            show_default=False,
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Mend what is safe: make the planner's statistics, and empty a WAL that nobody has"
            " open. Then examine again. Nothing is mended while there are errors.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON and nothing else.")
    ] = False,
) -> None:
    """Say whether a database is well, and how to mend what is not.

    It looks at the file and what lies beside it, permissions, the file system, who has it open and
    with which SQLite, the WAL and who keeps it long, whether pages, indexes and foreign keys are
    sound, indexes that are missing or there twice, the planner's statistics, and free pages. Each
    finding says what it is, why it matters, and how it is mended: SQL or a command to copy.

    Nothing is written without --fix, also not to a database that is in use or that a stranger has
    made. Run it as the user of the application, or as root to see everybody who has it open.

    Exit code: 0 if it is well (hints alone are no illness), 1 if there are errors or warnings, 2
    if it cannot be examined.

    For example: oxlite doctor app.db && echo well
    """
    from oxlite.cli.output import print_json, print_tables, scan_progress
    from oxlite.operations import doctor as room

    def examined() -> room.Report:
        with scan_progress() as progress:
            return room.examine(
                database,
                profile=profile,
                quick=not full,
                progress=progress,
                backups=backups,
            )

    report = examined()
    mended: tuple[room.Finding, ...] = ()
    refused = None
    if fix:
        try:
            mended = room.mend(database, report)
        except room.OperationsError as error:
            refused = error  # the report says what is wrong
        if mended:
            report = examined()
    if as_json:
        print_json({**report.as_dict(), "mended": [finding.code for finding in mended]})
    else:
        for finding in mended:
            typer.echo(f"Mended: {finding.code}.")
        print_tables(room.render(report))
    if refused is not None:
        raise refused
    if not report.is_well:
        raise typer.Exit(1)
