"""``oxlite bench recommend``: options in, :mod:`oxlite.bench.advice` does it."""

from pathlib import Path
from typing import Annotated

import typer

from oxlite.bench import UsageError, advice
from oxlite.bench.report.terminal import ReportConsole, show_recommendation
from oxlite.bench.stored import read_all, stored_in

WATCHED_SECONDS = 10.0


def recommend(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Results, as --json writes them (default: those of bench all)."),
    ] = None,
    writes: Annotated[
        float | None,
        typer.Option(help="The part of the application's statements that write, 0 to 1."),
    ] = None,
    writes_a_second: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="What the application writes in a second: says how much that is of what was "
            "reached.",
        ),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(
            metavar="DB", help="Count that here instead, for ten seconds, of whoever writes."
        ),
    ] = None,
    today: Annotated[
        str,
        typer.Option(
            help="What the application runs now: stdlib (as it comes), tuned (WAL and "
            "synchronous=NORMAL), or oxlite."
        ),
    ] = "stdlib",
    directory: Annotated[
        Path, typer.Option(help="Where the application's database is (default: here).")
    ] = Path(),
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Take runs of another machine or file system too.")
    ] = False,
) -> None:
    """Settings for this machine and this mix, each with the measured reason."""
    results = read_all(files or stored_in(Path("oxlite-bench")))
    if database is not None:
        if writes_a_second is not None:
            raise UsageError("--database counts what --writes-a-second says: leave one away")
        writes_a_second = _counted(database)
    found = advice.recommend(
        results,
        today=today,
        writes=writes,
        writes_a_second=writes_a_second,
        directory=directory,
        anyway=anyway,
    )
    show_recommendation(found, ReportConsole())


def _counted(database: Path) -> float | None:
    """How many writes there are in a second now; those that share a COMMIT count each."""
    from oxlite.operations import top

    (seen,) = top.watch(database, interval_seconds=WATCHED_SECONDS, count=1)
    commits = seen.commits_per_second
    shared = seen.rate("batched_writes") - seen.rate("batches")
    return None if commits is None else commits + max(shared, 0.0)
