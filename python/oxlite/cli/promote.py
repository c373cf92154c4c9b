"""``oxlite promote``: from a SQLite file to PostgreSQL."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from oxlite.promotion import Note, Plan, Promoted

__all__ = ["promote"]

_HEADINGS = {
    "misfit": "Does not fit",
    "changed": "Becomes something else",
    "lost": "Does not survive",
    "otherwise": "Behaves otherwise",
}


def promote(
    database: Annotated[Path, typer.Argument(metavar="DB", help="The SQLite file.")],
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            help="Where PostgreSQL is: postgresql://user:password@host/database",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say what would become of it, and change nothing on either side."
        ),
    ] = False,
    cut_over: Annotated[
        bool,
        typer.Option(
            "--cut-over",
            help="In the end have writers wait, carry over the rest, and refuse what they write to"
            " the file from then on.",
        ),
    ] = False,
    abort: Annotated[
        bool,
        typer.Option(
            "--abort",
            help="Take back what was begun, on both sides; after a cut-over, let the file be"
            " written again.",
        ),
    ] = False,
    schema: Annotated[
        str, typer.Option("--schema", metavar="NAME", help="Where the tables are in PostgreSQL.")
    ] = "public",
    existing_tables: Annotated[
        bool,
        typer.Option(
            "--existing-tables",
            help="Migrations have made the tables there already. [bold]What is in them is"
            " deleted[/bold].",
        ),
    ] = False,
    misfits: Annotated[
        str,
        typer.Option(
            "--misfits",
            metavar="WHAT",
            help="What is done about values that do not fit: [bold]stop[/bold] before anything is"
            " changed, [bold]widen[/bold] the column, make them [bold]null[/bold], or keep their"
            " rows in a table of their own ([bold]set-aside[/bold]).",
        ),
    ] = "stop",
    overrides: Annotated[
        Path | None,
        typer.Option(
            "--overrides",
            metavar="FILE",
            help="A TOML file of types, and of tables to skip: see docs/promotion.md.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was found or done as JSON and nothing else.")
    ] = False,
) -> None:
    """Have PostgreSQL have what a SQLite file has: schema and data, while the file is in use.

    It can be interrupted at any moment: the same command goes on where it was. Both sides are
    compared in the end, row by row. Without --cut-over PostgreSQL has what the file had when they
    were compared, and the file is as it was.

    For example, what will not survive; a copy to try it with; and the move itself:

    oxlite promote app.db postgresql://me@host/app --dry-run

    oxlite promote app.db postgresql://me@host/app

    oxlite promote app.db postgresql://me@host/app --cut-over
    """
    from oxlite import promotion
    from oxlite.cli.output import print_json, scan_progress

    if abort:
        _abort(database, url, as_json)
        return
    if url is None:
        raise typer.BadParameter("name the database too: oxlite promote DB postgresql://…")
    if misfits not in promotion.MISFITS:
        raise typer.BadParameter(f"--misfits is one of {', '.join(promotion.MISFITS)}")
    settings = promotion.Settings(
        schema=schema,
        is_existing=existing_tables,
        policy=misfits,
        overrides=(
            promotion.Overrides() if overrides is None else promotion.read_overrides(overrides)
        ),
    )
    with scan_progress(time_left=True) as bar:
        tell = bar or (lambda _name, _done, _total: None)
        if dry_run:
            plan = promotion.examine(database, url, settings, tell)
        else:
            done = promotion.promote(
                database,
                url,
                settings,
                cut_over=cut_over,
                tell=tell,
                report=lambda plan: None if as_json else _tell_plan(plan, is_whole=False),
            )
    if dry_run:
        if as_json:
            print_json(_plan_as_json(plan))
        else:
            _tell_plan(plan, is_whole=True)
        if plan.misfits:
            raise typer.Exit(1)
        return
    if as_json:
        print_json(_done_as_json(done))
    else:
        _tell_done(done)


def _abort(database: Path, url: str | None, as_json: bool) -> None:
    from oxlite import promotion
    from oxlite.cli.output import print_json

    is_taken_back = promotion.abort(database, url)
    if as_json:
        print_json({"database": str(database), "taken_back": is_taken_back})
    elif is_taken_back:
        typer.echo(f"{database} is as it was, and can be written")
        if url is None:
            typer.echo(
                "Without its URL PostgreSQL keeps what it has of an unfinished promotion", err=True
            )
    else:
        typer.echo(f"{database} has no promotion to be taken back", err=True)


def _tell_plan(plan: "Plan", *, is_whole: bool) -> None:
    from oxlite.cli.output import print_tables

    if is_whole:
        print_tables(_types_table(plan))
    for kind, heading in _HEADINGS.items():
        notes = [note for note in plan.notes if note.kind == kind]
        if notes:
            typer.echo(f"\n{heading}:")
            print_tables(_notes_table(notes))
    if is_whole:
        rows = sum(one.rows for one in plan.tables)
        typer.echo(f"\n{len(plan.tables):,} tables, {rows:,} rows")


def _types_table(plan: "Plan") -> "Table":
    from rich.table import Table

    from oxlite import harmless

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("table", "rows", "column", "declared", "PostgreSQL"):
        table.add_column(heading, justify="right" if heading == "rows" else "left", overflow="fold")
    for one in plan.tables:
        for number, column in enumerate(one.columns):
            table.add_row(
                harmless(one.table.name) if number == 0 else "",
                f"{one.rows:,}" if number == 0 else "",
                harmless(column.name),
                harmless(one.table.column(column.name).declared.lower()),
                column.type.name,
            )
    return table


def _notes_table(notes: "list[Note]") -> "Table":
    from rich.table import Table

    from oxlite import harmless

    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for note in notes:
        where = ".".join(filter(None, (note.table, note.column)))
        count = f"{note.count:,}" if note.count else ""
        table.add_row(harmless(where), count, harmless(note.text))
        for one in note.examples:
            table.add_row("", "", harmless(f"{_key_text(one.key)}: {_short(one.value)}"))
    return table


def _key_text(key: tuple[Any, ...]) -> str:
    return repr(key[0]) if len(key) == 1 else repr(key)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _plan_as_json(plan: "Plan") -> dict[str, Any]:
    return {
        "tables": [
            {
                "name": one.table.name,
                "rows": one.rows,
                "columns": {column.name: column.type.name for column in one.columns},
            }
            for one in plan.tables
        ],
        "notes": [_note_as_json(note) for note in plan.notes],
    }


def _note_as_json(note: "Note") -> dict[str, Any]:
    return {
        "kind": note.kind,
        "table": note.table,
        "column": note.column,
        "text": note.text,
        "count": note.count,
        "examples": [
            {"key": [_json_value(part) for part in one.key], "value": _json_value(one.value)}
            for one in note.examples
        ],
    }


def _json_value(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _done_as_json(done: "Promoted") -> dict[str, Any]:
    return {
        "target": done.target,
        "rows": done.rows,
        "set_aside": done.set_aside,
        "pause_seconds": done.pause_seconds,
        "seconds": done.seconds,
        "notes": [_note_as_json(note) for note in done.notes],
    }


def _tell_done(done: "Promoted") -> None:
    from oxlite.cli.output import contents_text, print_tables

    if done.notes:
        typer.echo(f"\n{_HEADINGS['lost']}:")
        print_tables(_notes_table(list(done.notes)))
    typer.echo(f"{done.target}: {contents_text(done.rows)}, the same on both sides")
    if done.seconds:
        spent = ", ".join(f"{what} in {seconds:,.1f} s" for what, seconds in done.seconds.items())
        typer.echo(spent[:1].upper() + spent[1:], err=True)
    if done.set_aside:
        typer.echo(f"Set aside: {done.set_aside:,} rows, in oxlite_promotion.set_aside", err=True)
    if done.pause_seconds is not None:
        typer.echo(
            f"Cut over: writers waited for {done.pause_seconds:.2f} s, and are refused from now on",
            err=True,
        )
