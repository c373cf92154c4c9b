"""The tables of docs/evidence, read back: what charts are drawn from.

A record is the output of the lab or of a campaign. A table of it has the line before as its title;
a figure may be followed by the interval of its median: ``167 (159-176)``, with an en dash.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oxlite.bench.harness.statistics import Interval, Summary

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence"

_FIGURE = re.compile(
    r"(?P<median>[\d,.]+)(?: ?[a-zA-Z%]+)?(?: \((?P<low>[\d,.]+)\N{EN DASH}(?P<high>[\d,.]+)\))?$"
)
_RULE = re.compile(r"\| -+:? \|")


@dataclass(frozen=True)
class Table:
    """A table: its title, and of each row (by its first cell) the other cells by their heading."""

    title: str
    headings: Sequence[str]
    rows: Mapping[str, Mapping[str, str]]

    def summary(self, row: str, heading: str) -> Summary | None:
        """A figure with the interval of its median, ``None`` if there is none.

        Raises:
            KeyError: the table has no such row or column.
        """
        cell = self.rows[row][heading]
        found = _FIGURE.match(cell)
        if found is None:
            return None
        median = _number(found["median"])
        low, high = (_number(found[name] or found["median"]) for name in ("low", "high"))
        count = 1 if found["low"] is None else 2  # of how many repeats a record's table is silent
        return Summary(count, median, Interval(low, high, 0.0), low, high, None)


@cache
def tables(name: str) -> tuple[Table, ...]:
    """The tables of a record, in their order."""
    lines = _text(name).splitlines()
    found = []
    for at, line in enumerate(lines):
        if _RULE.match(line):
            headings = _cells(lines[at - 1])
            title = next((one for one in reversed(lines[: at - 1]) if one), "")
            rows = {}
            for row in lines[at + 1 :]:
                if not row.startswith("|"):
                    break
                first, *rest = _cells(row)
                rows[first] = dict(zip(headings[1:], rest, strict=True))
            found.append(Table(title, headings, rows))
    return tuple(found)


def table(name: str, title: str, heading: str) -> Table:
    """The first table of a record whose title begins so and that has such a column.

    Raises:
        KeyError: there is none.
    """
    for one in tables(name):
        if one.title.startswith(title) and heading in one.headings:
            return one
    raise KeyError(f"docs/evidence/{name}.md has no table {title!r} with a column {heading!r}")


def day(name: str) -> str:
    """When a record was captured: ``26 November 2026``.

    Raises:
        ValueError: it does not say so.
    """
    found = re.search(r"^- \S+ \S+ (\d{4}-\d\d-\d\d)T", _text(name), flags=re.MULTILINE)
    if found is None:
        raise ValueError(f"docs/evidence/{name}.md does not say when it was captured")
    when = datetime.date.fromisoformat(found[1])
    return f"{when.day} {when:%B} {when.year}"


def _text(name: str) -> str:
    return (EVIDENCE / f"{name}.md").read_text()


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in cells]


def _number(text: str) -> float:
    return float(text.replace(",", ""))
