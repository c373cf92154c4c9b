"""``oxlite bench gil``: options in, :mod:`oxlite.bench.lab` does it."""

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
    Scenarios,
    Seed,
    TimeBudget,
    WarmUp,
    given,
    run,
)


def gil(
    scenario: Scenarios = None,
    interpreter: Interpreters = None,
    quick: Quick = False,
    scale: Annotated[
        float | None,
        typer.Option(help="Length of a turn in parts of the usual (default 1, quick 0.2)."),
    ] = None,
    seed: Seed = None,
    repeats: Annotated[
        int | None, typer.Option(help="Measured rounds (default 5, quick 2).")
    ] = None,
    warm_up: WarmUp = None,
    time_budget: TimeBudget = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """How kind a driver is to the other threads: the standard library, apsw, Oxlite."""
    parameters = {"interpreter": interpreter, "scale": scale, "seed": seed}
    run(
        Request(
            "gil",
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
