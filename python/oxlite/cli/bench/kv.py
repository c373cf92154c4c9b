"""``oxlite bench kv``: options in, :mod:`oxlite.bench.lab` does it."""

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
    Repeats,
    Scenarios,
    Seed,
    TimeBudget,
    WarmUp,
    given,
    run,
)


def kv(
    scenario: Scenarios = None,
    every: Every = False,
    quick: Quick = False,
    processes: Annotated[int | None, typer.Option(help="Worker processes (default 25).")] = None,
    queries: Annotated[
        int | None, typer.Option(help="Statements of each process (default 2000, quick 500).")
    ] = None,
    write_ratio: Annotated[
        float | None, typer.Option(help="Part of them that are upserts, 0 to 1 (default 0.05).")
    ] = None,
    keys: Annotated[
        int | None, typer.Option(help="Rows the table starts with (default 10000).")
    ] = None,
    seed: Seed = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for a lock, where waiting (default 5).")
    ] = None,
    fairness: Annotated[
        float | None,
        typer.Option(help="Seconds of the turn that measures fairness (default 1, quick 0.5)."),
    ] = None,
    repeats: Repeats = None,
    warm_up: WarmUp = None,
    time_budget: TimeBudget = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """Key-value reads and upserts from many processes: who is fast, and who waits."""
    parameters = {
        "processes": processes,
        "queries": queries,
        "write_ratio": write_ratio,
        "keys": keys,
        "seed": seed,
        "timeout_seconds": timeout,
        "fairness_seconds": fairness,
    }
    run(
        Request(
            "kv",
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
