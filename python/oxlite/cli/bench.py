"""``oxlite bench``: run a workload of the lab and print its report.

Exit codes: 0 every row was measured and every file written, 1 a row failed or a
file could not be written after the run; for the others see :mod:`oxlite.cli`.
No logic here: options in, :mod:`oxlite.bench.lab` does it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from oxlite.bench.lab import Request, UnwrittenError, perform
from oxlite.bench.report.progress import watching
from oxlite.bench.report.terminal import ReportConsole, show

EXIT_FAILED = 1

bench = typer.Typer(
    no_args_is_help=True,
    help="The lab: benchmarks on this machine, with everything to repeat them.",
)

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


@bench.callback()
def lab() -> None:
    """Benchmarks on this machine, with everything needed to repeat them."""


@bench.command()
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
    _run(
        Request(
            "kv",
            _given(parameters),
            scenario or (),
            every,
            quick,
            repeats,
            time_budget,
            directory,
            keep,
            json,
            markdown,
        )
    )


@bench.command()
def driver(
    scenario: Scenarios = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(help="Only the operations whose name contains this. Repeatable."),
    ] = None,
    interpreter: Interpreters = None,
    quick: Quick = False,
    batches: Annotated[
        int | None,
        typer.Option(help="Batches in a repeat; the fastest counts (default 3, quick 1)."),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(help="Size of a batch in parts of the usual (default 1, quick 0.3)."),
    ] = None,
    seed: Seed = None,
    repeats: Repeats = None,
    time_budget: TimeBudget = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """What each thing a driver does costs, in one thread: the standard library, apsw, Oxlite."""
    parameters = {
        "operation": operation,
        "interpreter": interpreter,
        "batches": batches,
        "scale": scale,
        "seed": seed,
    }
    _run(
        Request(
            "driver",
            _given(parameters),
            scenario or (),
            False,
            quick,
            repeats,
            time_budget,
            directory,
            keep,
            json,
            markdown,
        )
    )


@bench.command()
def gil(
    scenario: Scenarios = None,
    interpreter: Interpreters = None,
    quick: Quick = False,
    scale: Annotated[
        float | None,
        typer.Option(help="Length of a turn in parts of the usual (default 1, quick 0.2)."),
    ] = None,
    seed: Seed = None,
    repeats: Annotated[
        int | None, typer.Option(help="Measured rounds (default 5, quick 2).")
    ] = None,
    time_budget: TimeBudget = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """How kind a driver is to the other threads: the standard library, apsw, Oxlite."""
    parameters = {"interpreter": interpreter, "scale": scale, "seed": seed}
    _run(
        Request(
            "gil",
            _given(parameters),
            scenario or (),
            False,
            quick,
            repeats,
            time_budget,
            directory,
            keep,
            json,
            markdown,
        )
    )


@bench.command()
def gate(
    scenario: Scenarios = None,
    every: Every = False,
    quick: Quick = False,
    processes: Annotated[
        list[int] | None,
        typer.Option(help="Processes that write (default 4 and 25, quick 25). Repeatable."),
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
    time_budget: Annotated[
        float | None,
        typer.Option(help="Seconds after which no further round begins (default 900, quick 90)."),
    ] = None,
    directory: Directory = None,
    keep: Keep = False,
    json: JsonFile = None,
    markdown: MarkdownFile = None,
) -> None:
    """Processes that do nothing but write: how each busy policy shares out the write lock."""
    parameters = {
        "processes": processes,
        "duration_seconds": duration,
        "keys": keys,
        "kills": kills,
        "seed": seed,
        "timeout_seconds": timeout,
    }
    _run(
        Request(
            "gate",
            _given(parameters),
            scenario or (),
            every,
            quick,
            repeats,
            time_budget,
            directory,
            keep,
            json,
            markdown,
        )
    )


@bench.command()
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
    _run(
        Request(
            "busy",
            _given(parameters),
            scenario or (),
            every,
            quick,
            repeats,
            time_budget,
            directory,
            keep,
            json,
            markdown,
        )
    )


def _given(options: Mapping[str, object | None]) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}


def _run(request: Request) -> None:
    console = ReportConsole()
    unwritten = None
    with watching(console) as listener:
        try:
            result = perform(request, listener)
        except UnwrittenError as error:
            result, unwritten = error.result, error
    show(result, console)
    if unwritten is not None:
        typer.echo(f"oxlite: error: {unwritten}", err=True)
    if unwritten is not None or result.failed():
        raise typer.Exit(EXIT_FAILED)
