"""The options that workloads share, and what a command does with them.

Every workload's command has the same ones under the same names; what differs in
its default is declared by the command.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from oxlite import harmless
from oxlite.bench.errors import Interrupted
from oxlite.bench.lab import InterruptedRun, Request, UnwrittenError, perform
from oxlite.bench.report.progress import watching
from oxlite.bench.report.terminal import ReportConsole, show

EXIT_FAILED = 1

Scenarios = Annotated[
    list[str] | None,
    typer.Option("--scenario", help="Only these: driver=oxlite,journal=wal. Repeatable."),
]
Interpreters = Annotated[
    list[str] | None,
    typer.Option("--interpreter", help="Measure on this Python, which has Oxlite. Repeatable."),
]
Every = Annotated[bool, typer.Option("--all", help="Every scenario of the workload.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer scenarios and less work.")]
Repeats = Annotated[int | None, typer.Option(help="Measured rounds (default 7).")]
TimeBudget = Annotated[
    float | None,
    typer.Option(help="Seconds after which no further round begins (default 600, quick 90)."),
]
Seed = Annotated[int | None, typer.Option(help="Of all random streams (default 1).")]
Directory = Annotated[
    Path | None, typer.Option(help="Where to put the databases (default: the temporary directory).")
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the databases and say where.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the complete result here.")]
MarkdownFile = Annotated[
    Path | None, typer.Option("--markdown", help="Write the tables here, for a paper.")
]
WarmUp = Annotated[
    bool | None,
    typer.Option(
        "--warm-up/--no-warm-up",
        help="A round before the measured ones that is not measured.",
    ),
]


def given(options: Mapping[str, object | None]) -> dict[str, object]:
    """The options that the user gave."""
    return {name: value for name, value in options.items() if value is not None}


def run(request: Request) -> None:
    """Run the workload, print the report, and end with the code that it deserves."""
    console = ReportConsole()
    unwritten: UnwrittenError | None = None
    part: InterruptedRun | None = None
    with watching(console) as listener:
        try:
            result = perform(request, listener)
        except UnwrittenError as error:
            result, unwritten = error.result, error
        except InterruptedRun as stop:
            part = stop
        except Interrupted as stop:
            typer.echo(f"oxlite: {stop} before anything was measured: nothing is kept", err=True)
            raise
    if part is not None:
        show(part.result, console)
        raise part
    show(result, console)
    if unwritten is not None:
        typer.echo(harmless(f"oxlite: error: {unwritten}"), err=True)
    if unwritten is not None or result.failed():
        raise typer.Exit(EXIT_FAILED)
