"""``oxlite bench compare``: options in, :mod:`oxlite.bench.changes` does it."""

from pathlib import Path
from typing import Annotated

import typer

from oxlite.bench import changes
from oxlite.bench.report.terminal import ReportConsole, show_comparison
from oxlite.bench.stored import read

EXIT_WORSE = 1


def compare(
    old: Annotated[Path, typer.Argument(help="The result before, as --json wrote it.")],
    new: Annotated[Path, typer.Argument(help="The result after.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Compare this metric instead of the workload's first. Repeatable."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Smaller changes are none, in parts.", min=0, max=10)
    ] = changes.THRESHOLD,
    alpha: Annotated[
        float,
        typer.Option(
            help="How probable it may be that equal runs are called different.", min=0.0001, max=0.5
        ),
    ] = changes.ALPHA,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare runs of unlike conditions too.")
    ] = False,
) -> None:
    """Two runs of one workload: what has become better, or worse (exit code 1)."""
    found = changes.compare(
        read(old), read(new), metrics=metric or (), alpha=alpha, threshold=threshold, anyway=anyway
    )
    show_comparison(found, ReportConsole())
    if found.worse():
        raise typer.Exit(EXIT_WORSE)
    found.require_judged()
