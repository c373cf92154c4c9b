"""``oxlite bench all``: options in, :mod:`oxlite.bench.series` does it."""

from pathlib import Path
from typing import Annotated

import typer

from oxlite import harmless
from oxlite.bench.report.progress import SeriesLines
from oxlite.bench.report.terminal import ReportConsole, show_summary
from oxlite.bench.series import FULL_SECONDS, QUICK_SECONDS, Series, perform_all
from oxlite.cli.bench.options import EXIT_FAILED, Directory


def every(
    workload: Annotated[
        list[str] | None, typer.Option(help="Only this workload. Repeatable.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The quick selection of each: some three minutes.")
    ] = False,
    results: Annotated[
        Path, typer.Option(help="The directory of the JSON files and of the report.")
    ] = Path("oxlite-bench"),
    again: Annotated[bool, typer.Option("--again", help="Measure what is finished too.")] = False,
    time_budget: Annotated[
        float | None,
        typer.Option(
            help=f"Seconds: of each workload (default {FULL_SECONDS:g}), "
            f"of all with --quick ({QUICK_SECONDS:g})."
        ),
    ] = None,
    directory: Directory = None,
) -> None:
    """All workloads, every scenario, as published; goes on where it was interrupted."""
    console = ReportConsole()
    series = Series(results, workload or (), quick, again, time_budget, directory)
    outcome = perform_all(series, SeriesLines(console))
    if outcome.results:
        show_summary(outcome.results, console)
    if outcome.report is not None:
        typer.echo(harmless(f"report: {outcome.report}"))
    else:
        typer.echo("nothing was measured, so there is no report", err=True)
    if outcome.failed():
        raise typer.Exit(EXIT_FAILED)
