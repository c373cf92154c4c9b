"""A result on the terminal: tables, what could not run, noise, environment, command.

Readable in 80 columns: what is wider is parted, column by column; everything that is not here is
in the JSON file.

Invariant: text from files does not command the terminal: control characters are written out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from oxlite.bench.advice import Recommendation
from oxlite.bench.changes import Verdicts
from oxlite.bench.contest import Finding
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import Drawing, number
from oxlite.bench.report import facts
from oxlite.bench.report.summary import failed_note, summary
from oxlite.bench.report.text import plain
from oxlite.bench.workloads.catalogue import WORKLOADS

NARROWEST = 80
"""The width of what is no terminal; a table that is wider is parted."""

WIDEST_NAME = 34
"""Of the names of a table that is parted."""

BAR = "\N{FULL BLOCK}"


class ReportConsole(Console):
    """A console that says when its reader has gone, instead of ending the process."""

    def on_broken_pipe(self) -> NoReturn:
        """Let the entry point deal with it, after everything has been cleaned up."""
        raise BrokenPipeError


def show(result: Result, console: Console) -> None:
    """Print the whole report of ``result``."""
    _widen(console)
    workload = WORKLOADS.get(result.workload)
    title, *settings = facts.head(result, workload)
    _say(console, [f"\n{title}"], "bold")
    _say(console, settings)
    for table in workload.tables:
        for drawing in table.drawings(result):
            _show(console, result, drawing)
            _say(console, drawing.remarks, "bold")
    _say(console, facts.withheld(result, workload))
    _say(console, facts.errors(result), "yellow", whole=True)
    _say(console, facts.failures(result, workload), "red", whole=True)
    _say(console, facts.lacking(result, workload))
    _say(console, facts.absences(result))
    _say(console, [f"\n{line}" for line in facts.noise(result, workload)])
    _say(console, [f"Note: {note}" for note in result.notes], "yellow", whole=True)
    environment = facts.environment(result)
    if environment:
        _say(console, ["\nEnvironment (complete, for every row, in the JSON file)"], "bold")
        _say(console, [f"  {line}" for line in environment])
    _say(console, [f"\n{facts.stamp(result)}", f"repeat with: {result.command}"], whole=True)
    show_summary([result], console)


def show_summary(results: Sequence[Result], console: Console) -> None:
    """Print what results come to: sentences, and a picture."""
    found = summary(results)
    console.print()
    _say(console, found.sentences, "bold")
    if found.pictured is not None:
        _picture(found.pictured, console)


def _widen(console: Console) -> None:
    """Give what is no terminal a width; below this the columns would wrap."""
    if not console.is_terminal:
        console.width = max(console.width, NARROWEST)


def _picture(finding: Finding, console: Console) -> None:
    """The rows of a finding as bars of characters."""
    metric, figures = finding.contest.metric, finding.figures()
    largest = max((figure.median for _, figure in figures.values()), default=0.0)
    if not largest:
        return
    room = min(console.width, 100) - 34
    _say(console, [f"\n{metric.title_with_unit} ({metric.better} is better)"])
    for name, (row, figure) in figures.items():
        bar = BAR * max(1, round(room * figure.median / largest))
        note = f"  {note}" if (note := failed_note(row)) else ""
        _say(console, [f"{name:>7}  {bar} {number(figure.median)}{note}"])
    _say(console, [f"{name:>7}: {row.label}" for name, (row, _) in figures.items()], "dim")


def _say(console: Console, lines: Sequence[str], style: str = "", *, whole: bool = False) -> None:
    """Print lines, wrapped between words; ``whole`` are those that somebody may copy."""
    for line in lines:
        console.print(Text(plain(line), style=style), soft_wrap=whole, highlight=False)


def show_comparison(found: Verdicts, console: Console) -> None:
    """Print what the comparison of two runs has found."""
    _widen(console)
    _say(
        console,
        [f"compared all the same, though unlike in {one}" for one in found.unlike],
        "yellow",
    )
    _say(console, found.remarks, "yellow")
    _say(console, found.subject)
    if found.changes:
        _show(console, None, found.drawing())
    _say(console, [f"not compared  {name}: {why}" for name, why in found.missing.items()])
    counts = Counter(change.verdict for change in found.changes)
    if found.broken:
        counts["failing or gone now, which is worse"] = len(found.broken)
    _say(console, [", ".join(f"{count} {verdict}" for verdict, count in counts.items())], "bold")


def show_recommendation(found: Recommendation, console: Console) -> None:
    """Print what to set, why, and how it is written."""
    for one in found.advice:
        _say(console, [one.change()], "bold")
        _say(console, [f"  {one.reason}"])
    if found.reached is not None:
        _say(console, ["writes a second"], "bold")
        _say(console, [f"  {found.reached.text()}"])
    for setting, why in found.lacking.items():
        _say(console, [f"{setting}: {why}"], "yellow")
    if found.advice:
        for name, text in found.forms().items():
            _say(console, [f"\n{name}"], "bold")
            _say(console, [f"  {text}"], whole=True)


def _show(console: Console, result: Result | None, drawing: Drawing) -> None:
    """Print a table, in as many parts as its width takes."""
    for part in _parts(drawing, console.width):
        _say(console, [f"\n{part.title}"], "italic")
        console.print(_table(result, part))


def _parts(drawing: Drawing, width: int) -> list[Drawing]:
    """A table as it is, or with some of its columns each, the names beside all of them."""
    widths = [
        2 + max(map(len, [*heading.split(), *(line.cells[place] for line in drawing.lines)]))
        for place, heading in enumerate(drawing.headings)
    ]
    names = max(map(len, [drawing.heading, *(line.name for line in drawing.lines)])) + 1
    if names + sum(widths) <= width:
        return [drawing]
    room = width - min(names, WIDEST_NAME)
    groups: list[list[int]] = [[]]
    for place, wide in enumerate(widths):
        if groups[-1] and sum(widths[each] for each in groups[-1]) + wide > room:
            groups.append([])
        groups[-1].append(place)
    return [
        replace(
            drawing,
            title=drawing.title if not index else f"{drawing.title} (continued)",
            headings=[drawing.headings[place] for place in places],
            lines=[
                replace(line, cells=[line.cells[place] for place in places])
                for line in drawing.lines
            ],
        )
        for index, places in enumerate(groups)
    ]


def _table(result: Result | None, drawing: Drawing) -> RichTable:
    drawn = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    drawn.add_column(Text(plain(drawing.heading)), overflow="fold")
    for heading in drawing.headings:
        drawn.add_column(Text(plain(heading)), justify="right", overflow="fold")
    for line in drawing.lines:
        style = "" if result is None else _style(result, line.row)
        cells = [Text(plain(text)) for text in (line.name, *line.cells)]
        drawn.add_row(*cells, style=style)
    return drawn


def _style(result: Result, row: Row | None) -> str:
    if row is None:
        return ""
    return "red" if row.failure else ("dim" if row.label in result.baselines else "")
