"""``oxlite bench busy``: options in, :mod:`oxlite.bench.lab` does it."""

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


def busy(
    scenario: Scenarios = None,
    every: Every = False,
    quick: Quick = False,
    processes: Annotated[
        list[int] | None, typer.Option(help="Children (default 4 and 8, quick 8). Repeatable.")
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option(help="Threads of each child (default 2 and 4, quick 4). Repeatable."),
    ] = None,
    long: Annotated[
        list[int] | None,
        typer.Option(
            help="Long transactions of the parent (default 0, 1 and 2, quick 0 and 1). Repeatable."
        ),
    ] = None,
    hold: Annotated[
        float | None, typer.Option(help="Seconds that each of those takes (default 1).")
    ] = None,
    transactions: Annotated[
        int | None, typer.Option(help="Transactions of each thread of a child (default 1).")
    ] = None,
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
    """Short transactions behind a long one: how each way of waiting treats the slowest."""
    parameters = {
        "processes": processes,
        "threads": threads,
        "long": long,
        "hold_seconds": hold,
        "transactions": transactions,
        "timeout_seconds": timeout,
    }
    run(
        Request(
            "busy",
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
