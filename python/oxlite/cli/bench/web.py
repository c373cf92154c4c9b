"""``oxlite bench web``: options in, :mod:`oxlite.bench.lab` does it."""

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


def web(
    scenario: Scenarios = None,
    every: Every = False,
    quick: Quick = False,
    clients: Annotated[
        list[int] | None,
        typer.Option(help="Clients at once (default 1, 2, 4 … 64, quick 1 and 32). Repeatable."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes of the server (default 2).")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of each (default 4).")] = None,
    duration: Annotated[
        float | None, typer.Option(help="Seconds of each scenario (default 10, quick 2).")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(help="Requests per second of all clients (default 0: as fast as answered)."),
    ] = None,
    users: Annotated[int | None, typer.Option(help="Users of the blog (default 100).")] = None,
    posts: Annotated[
        int | None, typer.Option(help="Posts, each with 5 to 15 comments (default 1000).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the blog's content (default 1).")] = None,
    atomic: Annotated[
        str | None,
        typer.Option(help="What is a transaction: views or requests (default views)."),
    ] = None,
    generator: Annotated[
        str | None, typer.Option(help="The load generator oha: a path, or a name on the PATH.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Measured rounds (default 5, quick 1).")
    ] = None,
    warm_up: WarmUp = None,
    time_budget: Annotated[
        float | None,
        typer.Option(help="Seconds after which no further round begins (default 3600, quick 60)."),
    ] = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """A Django site on a real server, asked by many clients at once: who is told it is locked."""
    parameters = {
        "clients": clients,
        "workers": workers,
        "threads": threads,
        "duration_seconds": duration,
        "rate": rate,
        "users": users,
        "posts": posts,
        "seed": seed,
        "atomic": atomic,
        "generator": generator,
    }
    run(
        Request(
            "web",
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
