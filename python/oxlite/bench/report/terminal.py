"""A result on the terminal: tables, what could not run, noise, environment, command.

Readable in 120 columns; everything that is not here is in the JSON file.
"""

from collections import defaultdict
from typing import NoReturn

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from oxlite.bench.harness.model import JsonObject, Result
from oxlite.bench.harness.statistics import SAMPLES_BEYOND
from oxlite.bench.layout import WITHHELD, Table, names
from oxlite.bench.workloads.catalogue import WORKLOADS

NARROWEST = 120
MULTIPLIED = "\N{MULTIPLICATION SIGN}"


class ReportConsole(Console):
    """A console that says when its reader has gone, instead of ending the process."""

    def on_broken_pipe(self) -> NoReturn:
        """Let the entry point deal with it, after everything has been cleaned up."""
        raise BrokenPipeError


def show(result: Result, console: Console) -> None:
    """Print the whole report of ``result``."""
    if not console.is_terminal:
        # A pipe has no width; below this the columns would wrap.
        console.width = max(console.width, NARROWEST)
    workload = WORKLOADS.get(result.workload)
    _say(console, f"\n{workload.name}: {workload.title}", "bold")
    settings = ", ".join(f"{name}={value}" for name, value in result.parameters.items())
    _say(console, settings)
    _say(
        console,
        f"{result.repeats} interleaved repeats after {result.plan.warm_ups} warm-up; figures are "
        f"medians, ratios are of paired repeats with the smallest and largest in brackets",
    )
    for table in workload.tables:
        console.print()
        console.print(_table(result, table))
    columns = [column for table in workload.tables for column in table.columns]
    if any(column.text(result, row) == WITHHELD for column in columns for row in result.rows):
        _say(
            console,
            f"{WITHHELD}  withheld: fewer than {SAMPLES_BEYOND} samples lie beyond it; "
            f"latencies are over all repeats together",
        )
    _show_errors(result, console)
    _show_absent(result, console)
    metric = workload.metrics[0]
    called = names(result)
    noises = result.noise(metric.name)
    if noises:
        listed = ", ".join(f"{called[label]} {value:.1%}" for label, value in noises.items())
        _say(
            console,
            f"\nNoise of {metric.title} over the repeats (1.48 {MULTIPLIED} median absolute "
            f"deviation / median): {listed}",
        )
    for note in result.notes:
        _say(console, f"Note: {note}", "yellow")
    _show_environment(result, console)
    _say(
        console,
        f"\nwork {result.work_digest[:16]}  {result.started_at}  {result.duration_seconds:.0f} s",
    )
    _say(console, f"repeat with: {result.command}")


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True, highlight=False)


def _table(result: Result, table: Table) -> RichTable:
    drawn = RichTable(
        title=table.title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    drawn.add_column("scenario", overflow="fold")
    for column in table.columns:
        drawn.add_column(column.heading, justify="right", no_wrap=True)
    called = names(result)
    for row in result.rows:
        style = "red" if row.failure else ("dim" if row.label in result.baselines else "")
        drawn.add_row(
            called[row.label], *(column.text(result, row) for column in table.columns), style=style
        )
    return drawn


def _show_errors(result: Result, console: Console) -> None:
    for row in result.rows:
        for text, count in sorted(row.errors().items()):
            _say(console, f"errors  {row.label}: {count:,} {MULTIPLIED} {text}", "yellow")


def _show_absent(result: Result, console: Console) -> None:
    for row in result.rows:
        if row.failure is not None:
            _say(console, f"failed  {row.label}: {row.failure}", "red")
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for cell in result.impossible:
        by_reason[cell.reason or ""].append(cell.scenario.label)
    for reason, labels in by_reason.items():
        _say(console, f"not run  {', '.join(labels)}: {reason}")


def _show_environment(result: Result, console: Console) -> None:
    measured = [row for row in result.rows if row.environment is not None]
    if not measured:
        return
    _say(console, "\nEnvironment (complete, for every row, in the JSON file)", "bold")
    versions = dict.fromkeys(
        f"{row.scenario.driver} ({row.scenario.build} build): driver {found['driver']}, "
        f"SQLite {found['sqlite']}"
        for row in measured
        if (found := row.samples[0].detail.get("versions"))
    )
    for line in (*versions, *machine_lines(measured[0].environment or {})):
        _say(console, f"  {line}")


def machine_lines(report: JsonObject) -> list[str]:
    """The machine of an environment report, in a few lines."""
    machine = report["machine"]
    cpu, python, files = machine["cpu"], machine["python"], machine["file_system"]
    system = machine["operating_system"]
    memory_gib = machine["memory_total_bytes"] / (1 << 30)
    lines = [
        f"{cpu['model']}, {cpu['usable_cores']} processors, {memory_gib:.1f} GiB, "
        f"{system['distribution']}, {system['name']} {system['kernel']}",
        f"{python['implementation']} {python['version']}"
        f"{'' if python['gil_enabled'] else ' without the GIL'}, "
        f"{files['type']} ({','.join(files['options'])})",
    ]
    series = (report.get("fsync") or {}).get("series") or []
    if series:
        costs = ", ".join(f"{s['call']} {s['write']} {s['median_us']:.0f} us" for s in series)
        lines.append(f"sync of {report['fsync']['block_bytes']} bytes, median: {costs}")
    return lines
