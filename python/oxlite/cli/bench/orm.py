"""``oxlite bench orm``: options in, :mod:`oxlite.bench.lab` does it."""

from typing import Annotated

import typer

from oxlite.bench.lab import Request
from oxlite.cli.bench.options import (
    Directory,
    Every,
    JsonFile,
    Keep,
    MarkdownFile,
    Quick,
    Scenarios,
    WarmUp,
    given,
    run,
)


def orm(
    scenario: Scenarios = None,
    every: Every = False,
    quick: Quick = False,
    operation: Annotated[
        list[str] | None,
        typer.Option(help="Only the operations whose name contains this. Repeatable."),
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(help="The scale is 2 to the power of it (default 5, quick 1)."),
    ] = None,
    loops: Annotated[
        int | None,
        typer.Option(help="How often an operation does what it repeats (default: as it does, 0)."),
    ] = None,
    faithful: Annotated[
        bool,
        typer.Option("--faithful", help="Threads one by one, and queries that nobody reads."),
    ] = False,
    at_least: Annotated[
        float | None,
        typer.Option(
            help="Seconds; what is shorter is done again in a round (default 0.25, quick 0)."
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Measured rounds (default 7, quick 3).")
    ] = None,
    warm_up: WarmUp = None,
    time_budget: Annotated[
        float | None,
        typer.Option(help="Seconds after which no further round begins (default 5400, quick 60)."),
    ] = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """Objects and their relations through SQLAlchemy and Django, on SQLite and PostgreSQL."""
    parameters = {
        "level": level,
        "loops": loops,
        "faithful": faithful or None,
        "operation": operation,
        "at_least_seconds": at_least,
    }
    run(
        Request(
            "orm",
            given(parameters),
            scenario or (),
            every,
            quick,
            repeats,
            time_budget,
            directory,
            keep,
            json,
            markdown,
            warm_up,
        )
    )
