"""``oxlite bench shared``: options in, :mod:`oxlite.bench.lab` does it."""

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


def shared(
    scenario: Scenarios = None,
    every: Every = False,
    quick: Quick = False,
    processes: Annotated[
        list[int] | None,
        typer.Option(help="Processes that write (default 1, 4 and 25, quick 25). Repeatable."),
    ] = None,
    duration: Annotated[
        float | None, typer.Option(help="Seconds that they write (default 2, quick 1).")
    ] = None,
    keys: Annotated[int | None, typer.Option(help="Rows of the table (default 100).")] = None,
    kills: Annotated[
        int | None, typer.Option(help="Writers killed, where some are (default 30).")
    ] = None,
    seed: Seed = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for the lock (default 5).")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Measured rounds (default 5, quick 3).")
    ] = None,
    warm_up: WarmUp = None,
    time_budget: Annotated[
        float | None,
        typer.Option(help="Seconds after which no further round begins (default 900, quick 90)."),
    ] = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """Processes whose every write is durable: what it is worth that they share their syncs."""
    parameters = {
        "processes": processes,
        "duration_seconds": duration,
        "keys": keys,
        "kills": kills,
        "seed": seed,
        "timeout_seconds": timeout,
    }
    run(
        Request(
            "shared",
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
