"""``oxlite bench async``: options in, :mod:`oxlite.bench.lab` does it."""

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
    Seed,
    WarmUp,
    given,
    run,
)


def tasks(
    scenario: Scenarios = None,
    every: Every = False,
    quick: Quick = False,
    number: Annotated[
        list[int] | None,
        typer.Option(
            "--tasks", help="Tasks at once (default 1, 16 and 64, quick 1 and 16). Repeatable."
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows of the table that is read (default 10000).")
    ] = None,
    duration: Annotated[
        float | None, typer.Option(help="Seconds of each scenario (default 1, quick 0.5).")
    ] = None,
    seed: Seed = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for the lock (default 5).")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Measured rounds (default 5, quick 2).")
    ] = None,
    warm_up: WarmUp = None,
    time_budget: Annotated[
        float | None,
        typer.Option(help="Seconds after which no further round begins (default 600, quick 60)."),
    ] = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """Tasks of an event loop that read rows or insert them durably, beside aiosqlite."""
    parameters = {
        "tasks": number,
        "rows": rows,
        "duration_seconds": duration,
        "seed": seed,
        "timeout_seconds": timeout,
    }
    run(
        Request(
            "async",
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
