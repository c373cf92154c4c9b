"""``oxlite bench driver``: options in, :mod:`oxlite.bench.lab` does it."""

from typing import Annotated

import typer

from oxlite.bench.lab import Request
from oxlite.cli.bench.options import (
    Directory,
    Interpreters,
    JsonFile,
    Keep,
    MarkdownFile,
    Quick,
    Repeats,
    Scenarios,
    Seed,
    TimeBudget,
    WarmUp,
    given,
    run,
)


def driver(
    scenario: Scenarios = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(help="Only the operations whose name contains this. Repeatable."),
    ] = None,
    interpreter: Interpreters = None,
    quick: Quick = False,
    batches: Annotated[
        int | None,
        typer.Option(help="Batches in a repeat; the fastest counts (default 3, quick 1)."),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(help="Size of a batch in parts of the usual (default 1, quick 0.3)."),
    ] = None,
    seed: Seed = None,
    repeats: Repeats = None,
    warm_up: WarmUp = None,
    time_budget: TimeBudget = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """What each thing a driver does costs, in one thread: the standard library, apsw, Oxlite."""
    parameters = {
        "operation": operation,
        "interpreter": interpreter,
        "batches": batches,
        "scale": scale,
        "seed": seed,
    }
    run(
        Request(
            "driver",
            given(parameters),
            scenario or (),
            False,
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
