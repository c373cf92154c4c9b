"""A result as a page of Markdown, for papers: captured output instead of typed figures.

Tables as GitHub draws them, everything the terminal says around them, and the
command that repeats the run.

Invariant: text from outside (labels, messages, names of processors) cannot end
a cell or begin a tag.
"""

from oxlite.bench.harness.model import Result
from oxlite.bench.layout import Table, names
from oxlite.bench.report import facts
from oxlite.bench.workloads.catalogue import WORKLOADS


def render(result: Result) -> str:
    """The page, ending with a newline."""
    workload = WORKLOADS.get(result.workload)
    title, *settings = facts.head(result, workload)
    remarks = [
        *facts.withheld(result, workload),
        *facts.errors(result),
        *facts.failures(result),
        *facts.absences(result),
        *facts.noise(result, workload),
        *(f"Note: {note}" for note in result.notes),
    ]
    blocks = [
        f"**{_escaped(title)}**",
        _items(settings),
        *(_table(result, table) for table in workload.tables),
        _items(remarks),
        _items([*facts.environment(result), facts.stamp(result)]),
        f"```console\n$ {result.command}\n```",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(result: Result, table: Table) -> str:
    called = names(result)
    headings = ["scenario", *(column.heading for column in table.columns)]
    lines = [
        [_escaped(heading) for heading in headings],
        ["---", *("---:" for _ in table.columns)],
        *(
            [
                _escaped(called[row.label]),
                *(_escaped(column.text(result, row)) for column in table.columns),
            ]
            for row in result.rows
        ),
    ]
    drawn = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{_escaped(table.title)}\n\n{drawn}"


def _items(lines: list[str]) -> str:
    return "\n".join(f"- {_escaped(line)}" for line in lines)


def _escaped(text: str) -> str:
    """The text on one line, with what Markdown would read as its own made harmless."""
    for mark in "\\`*_|<>[]":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
