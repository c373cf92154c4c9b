"""``oxlite bench inserts``: options in, :mod:`oxlite.bench.lab` does it."""

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


def inserts(
    scenario: Scenarios = None,
    every: Every = False,
    quick: Quick = False,
    mode: Annotated[
        str | None,
        typer.Option(help="sound, or faithful: with the published redundant index."),
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option(
            help="Threads that insert at once (default 1, 4, 16, 64, quick 1, 16). Repeatable."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--inserts", help="Rows of all threads, at most (default 100000)."),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(help="Seconds that each scenario inserts (default 0.4, quick 0.3)."),
    ] = None,
    seed: Seed = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for a lock, where waiting (default 5).")
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
    """One row per transaction: what settings, threads and group commit are worth.

    The ladder is one thread, each step with one more setting than the one before; choose it with
    --scenario step=any.

    The rest is threads that come by a connection in different styles, at synchronous=NORMAL
    (pragmas=tuned) and FULL (pragmas=durable); choose it with --scenario style=any, or a part of
    it with, for example, --scenario driver=oxlite,style=group,threads=16.
    """
    parameters = {
        "mode": mode,
        "threads": threads,
        "inserts": rows,
        "duration_seconds": duration,
        "seed": seed,
        "timeout_seconds": timeout,
    }
    run(
        Request(
            "inserts",
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
