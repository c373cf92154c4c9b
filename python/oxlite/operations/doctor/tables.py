"""The report for a terminal, from 40 columns on.

Findings stand below one another and not in columns, and what is to be copied is printed as it is,
each line as one: a terminal that is narrower folds it by itself, and gives it back whole. So it is
to be printed with ``crop=False``.

Invariant: values are shown as text, never interpreted as rich's markup, nor obeyed by the terminal.
"""

from collections.abc import Iterable
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from oxlite import harmless
from oxlite.operations.doctor.report import SEVERITIES, Finding, Report
from oxlite.operations.files import size_text

__all__ = ["tables"]

_STYLES: Final = {"error": "bold red", "warning": "bold yellow", "hint": "bold cyan"}


def tables(report: Report) -> RenderableType:
    """The report as one renderable."""
    parts: list[RenderableType] = [
        Text("Database", style="bold"),
        _indented(_pairs(_facts(report))),
        Text(),
    ]
    if report.doors:
        parts += [
            Text(f"Settings other than the profile {report.profile} has", style="bold"),
            *_doors(report),
            Text(),
        ]
    if report.processes:
        parts += [
            Text("Open in", style="bold"),
            _indented(_pairs(_processes(report))),
            Text(),
        ]
    for finding in report.findings:
        parts += [_finding(finding), Text()]
    parts += [_indented(Text(harmless(f"• {note}"), style="dim")) for note in report.notes]
    if report.notes:
        parts.append(Text())
    return Group(*parts, _summary(report))


def _finding(finding: Finding) -> RenderableType:
    title = Text.assemble(
        (finding.severity, _STYLES[finding.severity]), " ", (finding.code, "bold")
    )
    how = "mend (safe: --fix does it):" if finding.is_safe else "mend:"
    return Group(
        title,
        _indented(Text(finding.what)),
        _indented(Text(finding.why, style="dim")),
        _indented(Text(how, style="dim")),
        *(_mend(line) for line in finding.mend.split("\n")),
    )


def _mend(line: str) -> RenderableType:
    if line[:1].isupper() and line.endswith((".", ":")):  # a sentence
        return _indented(Text(line, style="green", overflow="fold"), 4)
    return _AsItIs(f"    {line}", "green")


class _AsItIs:
    """A line that is neither folded nor cut: in the midst of a command a new line ends it."""

    def __init__(self, line: str, style: str) -> None:
        self._line = line
        self._style = style

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        yield Segment(self._line, console.get_style(self._style))
        yield Segment.line()


def _facts(report: Report) -> Iterable[tuple[str, str]]:
    facts = report.facts
    wal = f", WAL {size_text(facts['wal_bytes'])}" if facts["wal_bytes"] else ""
    yield "file", report.path
    yield "size", size_text(facts["size_bytes"]) + wal
    if "page_size" in facts:
        free = f", {facts['freelist_count']:,} free" if facts["freelist_count"] else ""
        yield "pages", f"{facts['page_count']:,} of {size_text(facts['page_size'])}{free}"
        yield "journal mode", str(facts["journal_mode"])
        if facts["application_id"] or facts["user_version"]:
            yield (
                "application",
                f"id {facts['application_id']}, user version {facts['user_version']}",
            )
    yield "file system", str(facts["file_system"] or "unknown")
    yield "examined", f"{'quick' if report.is_quick else 'full'}, SQLite {facts['sqlite_version']}"


def _doors(report: Report) -> Iterable[RenderableType]:
    for door in report.doors:
        yield _indented(Text(f"{door['door']}:", style="dim"))
        differing = (f"{name}={door['pragmas'].get(name)}" for name in door["differs"])
        yield _indented(Text(", ".join(differing) or "none"), 4)


def _processes(report: Report) -> Iterable[tuple[str, str]]:
    for process in report.processes:
        versions = sorted({one["version"] or "unknown" for one in process["sqlite"]})
        does = [word for word in ("reads", "writes") if process[word]]
        said = [f"SQLite {' and '.join(versions) or 'unknown'}", *does, process["command"]]
        yield str(process["process_id"]), ", ".join(said)


def _summary(report: Report) -> Text:
    counts = [
        (sum(one.severity == severity for one in report.findings), severity)
        for severity in SEVERITIES
    ]
    said = ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in counts if count)
    if report.is_well:
        return Text(f"The database is well{f' ({said})' if said else ''}.", style="green")
    return Text(f"{said}.", style="bold")


def _pairs(rows: Iterable[tuple[str, str]]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", overflow="fold", max_width=24)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(harmless(name)), Text(harmless(value)))
    return grid


def _indented(content: RenderableType, by: int = 2) -> Padding:
    return Padding(content, (0, 0, 0, by), expand=False)
