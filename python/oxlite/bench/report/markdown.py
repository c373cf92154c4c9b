"""A result as a page of Markdown, for papers: captured output instead of typed figures.

Tables as GitHub draws them, everything the terminal says around them, and the
command that repeats the run.

Invariant: text from outside (labels, messages, names of processors) cannot end
a cell, a block of code, or begin a tag.
"""

import re
from collections.abc import Sequence

from oxlite.bench.harness.model import Result
from oxlite.bench.layout import Drawing
from oxlite.bench.report import facts, published
from oxlite.bench.report.text import plain
from oxlite.bench.workloads.catalogue import WORKLOADS


def render(result: Result) -> str:
    """The page, ending with a newline."""
    workload = WORKLOADS.get(result.workload)
    title, *settings = facts.head(result, workload)
    remarks = [
        *facts.withheld(result, workload),
        *facts.errors(result),
        *facts.failures(result, workload),
        *facts.lacking(result, workload),
        *facts.absences(result),
        *facts.noise(result, workload),
        *(f"Note: {note}" for note in result.notes),
    ]
    blocks = [
        f"**{_escaped(title)}**",
        _items(settings),
        *(_table(drawing) for table in workload.tables for drawing in table.drawings(result)),
        _items(remarks),
        _items([*facts.environment(result), facts.stamp(result)]),
        _console(result.command),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def render_all(results: Sequence[Result]) -> str:
    """The pages of several results, and what was published beside what they have measured."""
    table = published.table(results)
    claims = [] if table is None else [f"{_table(table)}\n"]
    return "\n".join([*map(render, results), *claims])


def _table(drawing: Drawing) -> str:
    lines = [
        [_escaped(heading) for heading in (drawing.heading, *drawing.headings)],
        ["---", *("---:" for _ in drawing.headings)],
        *([_escaped(line.name), *map(_escaped, line.cells)] for line in drawing.lines),
    ]
    drawn = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    remarks = f"\n\n{_items(drawing.remarks)}" if drawing.remarks else ""
    return f"{_escaped(drawing.title)}\n\n{drawn}{remarks}"


def _items(lines: Sequence[str]) -> str:
    return "\n".join(f"- {_escaped(line)}" for line in lines)


def _console(command: str) -> str:
    """A block of code with the command on one line, which nothing in it can end."""
    line = plain(" ".join(command.split()))
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}console\n$ {line}\n{fence}"


def _escaped(text: str) -> str:
    """The text on one line, with what Markdown would read as its own made harmless."""
    text = plain(" ".join(text.split()))
    for mark in "\\`*_|<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text
