"""``oxlite sample``: from PostgreSQL to a SQLite file for development."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["sample"]


def sample(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="Where PostgreSQL is: postgresql://user:password@host/database",
            show_default=False,
        ),
    ],
    database: Annotated[
        Path, typer.Argument(metavar="DB", help="The SQLite file, which is not there yet.")
    ],
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", help="How many rows of each table at most.")
    ] = 1000,
    tables: Annotated[
        str,
        typer.Option(
            "--tables",
            metavar="A,B",
            help="From which tables; by default from all. Those that they refer to come with them.",
            show_default=False,
        ),
    ] = "",
    schema: Annotated[
        str, typer.Option("--schema", metavar="NAME", help="Where the tables are in PostgreSQL.")
    ] = "public",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was done as JSON and nothing else.")
    ] = False,
) -> None:
    """Make a SQLite file of PostgreSQL's latest rows, for development.

    Of each table the latest by its primary key, and every row that those refer to. PostgreSQL is
    only read. What the file does not have is listed.

    For example:

    oxlite sample postgresql://me@host/app dev.db --rows 500
    """
    from oxlite import harmless, promotion
    from oxlite.cli.output import contents_text, print_json, scan_progress

    names = [name.strip() for name in tables.split(",") if name.strip()]
    with scan_progress() as bar:
        done = promotion.sample(
            url,
            database,
            rows=rows,
            tables=names,
            schema=schema,
            tell=bar or (lambda _name, _done, _total: None),
        )
    if as_json:
        notes = [
            {"kind": one.kind, "table": one.table, "column": one.column, "text": one.text}
            for one in done.notes
        ]
        print_json({"database": str(done.database), "rows": done.rows, "notes": notes})
        return
    for one in done.notes:
        where = ".".join(filter(None, (one.table, one.column)))
        word = "lost" if one.kind == "lost" else "otherwise"
        typer.echo(harmless(f"{word}: {where}: {one.text}"), err=True)
    typer.echo(f"{database}: {contents_text(done.rows)}")
