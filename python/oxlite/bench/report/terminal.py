"""A result on the terminal: tables, what could not run, noise, environment, command.

Readable in 120 columns; everything that is not here is in the JSON file.

Invariant: text from files does not command the terminal: control characters are written out.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from oxlite import harmless
from oxlite.bench.advice import Recommendation
from oxlite.bench.comparing import Verdicts
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import Drawing
from oxlite.bench.report import facts
from oxlite.bench.workloads.catalogue import WORKLOADS

NARROWEST = 120


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
    title, *settings = facts.head(result, workload)
    _say(console, [f"\n{title}"], "bold")
    _say(console, settings)
    for table in workload.tables:
        for drawing in table.drawings(result):
            console.print()
            console.print(_table(result, drawing))
            _say(console, drawing.remarks, "bold")
    _say(console, facts.withheld(result, workload))
    _say(console, facts.errors(result), "yellow")
    _say(console, facts.failures(result, workload), "red")
    _say(console, facts.lacking(result, workload))
    _say(console, facts.absences(result))
    _say(console, [f"\n{line}" for line in facts.noise(result, workload)])
    _say(console, [f"Note: {note}" for note in result.notes], "yellow")
    environment = facts.environment(result)
    if environment:
        _say(console, ["\nEnvironment (complete, for every row, in the JSON file)"], "bold")
        _say(console, [f"  {line}" for line in environment])
    _say(console, [f"\n{facts.stamp(result)}", f"repeat with: {result.command}"])


def _say(console: Console, lines: Sequence[str], style: str = "") -> None:
    for line in lines:
        console.print(Text(_plain(line), style=style), soft_wrap=True, highlight=False)


def show_comparison(found: Verdicts, console: Console) -> None:
    """Print what the comparison of two runs has found."""
    if not console.is_terminal:
        console.width = max(console.width, NARROWEST)
    _say(
        console,
        [f"compared all the same, though unlike in {one}" for one in found.unlike],
        "yellow",
    )
    _say(console, found.remarks, "yellow")
    _say(console, found.subject)
    if found.changes:
        console.print(_table(None, found.drawing()))
    _say(console, [f"not compared  {name}: {why}" for name, why in found.missing.items()])
    counts = Counter(change.verdict for change in found.changes)
    if found.broken:
        counts["failing or gone now, which is worse"] = len(found.broken)
    _say(console, [", ".join(f"{count} {verdict}" for verdict, count in counts.items())], "bold")


def show_recommendation(found: Recommendation, console: Console) -> None:
    """Print what to set, why, and how it is written."""
    for one in found.advice:
        _say(console, [f"{one.setting} = {one.value}"], "bold")
        _say(console, [f"  {one.reason}"])
    for setting, why in found.lacking.items():
        _say(console, [f"{setting}: {why}"], "yellow")
    if found.advice:
        for name, text in found.forms().items():
            _say(console, [f"\n{name}"], "bold")
            _say(console, [f"  {text}"])


def _table(result: Result | None, drawing: Drawing) -> RichTable:
    drawn = RichTable(
        title=Text(_plain(drawing.title), "table.title"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    drawn.add_column(Text(_plain(drawing.heading)), overflow="fold")
    for heading in drawing.headings:
        drawn.add_column(Text(_plain(heading)), justify="right", no_wrap=True)
    for line in drawing.lines:
        style = "" if result is None else _style(result, line.row)
        cells = [Text(_plain(text)) for text in (line.name, *line.cells)]
        drawn.add_row(*cells, style=style)
    return drawn


def _plain(text: str) -> str:
    """The text with its ends of lines, and nothing else that a terminal obeys."""
    return "\n".join(map(harmless, text.split("\n")))


def _style(result: Result, row: Row | None) -> str:
    if row is None:
        return ""
    return "red" if row.failure else ("dim" if row.label in result.baselines else "")
