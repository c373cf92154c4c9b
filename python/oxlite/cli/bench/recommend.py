"""``oxlite bench recommend``: options in, :mod:`oxlite.bench.advice` does it."""

from pathlib import Path
from typing import Annotated

import typer

from oxlite.bench import advice
from oxlite.bench.report.terminal import ReportConsole, show_recommendation
from oxlite.bench.stored import read_all, stored_in


def recommend(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Results, as --json writes them (default: those of bench all)."),
    ] = None,
    writes: Annotated[
        float | None,
        typer.Option(help="The part of the application's statements that write, 0 to 1."),
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
    found = advice.recommend(
        results, today=today, writes=writes, directory=directory, anyway=anyway
    )
    show_recommendation(found, ReportConsole())
