"""What a workload's tables contain, said without saying how they are drawn.

A workload lists tables; a table turns the result into lines of text. Most have
a line for each row of the result and columns that turn the row into text. The
terminal draws them, and any other form of report can do the same from a stored
result.

Invariants: nothing here knows a terminal; a figure that is not known is a dash;
a percentile that was withheld for want of samples is a raised dot.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary

DASH = "\N{EN DASH}"
ABSENT = DASH
WITHHELD = "\N{MIDDLE DOT}"

Text = Callable[[Result, Row], str]


@dataclass(frozen=True)
class Column:
    """A heading and what stands below it for each row."""

    heading: str
    text: Text


@dataclass(frozen=True)
class Line:
    """A line of a table: its name, its cells, and the row of the result, if it is of one."""

    name: str
    cells: Sequence[str]
    row: Row | None = None


@dataclass(frozen=True)
class Drawing:
    """A table with everything in it as text.

    Attributes:
        title: stands above it.
        heading: of the names of the lines.
        headings: of the cells.
        lines: from the top.
        remarks: sentences that stand below it.
    """

    title: str
    heading: str
    headings: Sequence[str]
    lines: Sequence[Line]
    remarks: Sequence[str] = ()


class Drawable(Protocol):
    """Whatever makes tables of a result."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """The tables, in order."""
        ...


@dataclass(frozen=True)
class Table:
    """A titled table with a line for each row of the result, or for some of them.

    Attributes:
        title: stands above.
        columns: from the left.
        only: the rows that it is of: those with these values on these axes. Without such
            rows, or any figure of them, there is no table.
        uses: axes that they must have, where rows of one result have different ones.
        grouped: axes whose values keep together, in the order in which they first appear.
        remarks: sentences that stand below it.
    """

    title: str
    columns: tuple[Column, ...]
    only: Mapping[str, str] = field(default_factory=dict)
    grouped: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    remarks: Sequence[str] = ()

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`Drawable`."""
        rows = [row for row in result.rows if self._is_of(row.scenario)]
        if (self.only or self.uses) and not rows:
            return []
        for axis in reversed(self.grouped):
            values = list(dict.fromkeys(row.scenario.get(axis) for row in rows))
            rows.sort(
                key=lambda row, axis=axis, values=values: values.index(  # type: ignore[misc]
                    row.scenario.get(axis)
                )
            )
        called = names(result, self.only)
        lines = [
            Line(called[row.label], [column.text(result, row) for column in self.columns], row)
            for row in rows
        ]
        cells = [cell for line in lines for cell in line.cells]
        if self.only and cells and not {*cells} - {ABSENT, WITHHELD}:
            return []
        headings = [column.heading for column in self.columns]
        return [Drawing(self.title, "scenario", headings, lines, self.remarks)]

    def _is_of(self, used: Mapping[str, str]) -> bool:
        return self.only.items() <= used.items() and used.keys() >= set(self.uses)


def names(result: Result, said: Iterable[str] = ()) -> dict[str, str]:
    """What to call each row, by label: without axes that are ``said`` or on which all agree."""
    axes = {axis for row in result.rows for axis in row.scenario}
    named = (axes - shared(result).keys() - set(said)) | {"driver", "build"}
    return {row.label: row.scenario.label_of(named) for row in result.rows}


def shared(result: Result) -> dict[str, str]:
    """The axes on which all rows agree, but for those that every row's name has."""
    agreed = [set(row.scenario.items()) for row in result.rows]
    common = set.intersection(*agreed) if agreed else set()
    axes = result.rows[0].scenario if agreed else {}
    return {
        axis: value
        for axis, value in axes.items()
        if (axis, value) in common and axis not in {"driver", "build"}
    }


def number(value: float) -> str:
    """A figure with about three significant digits and thousands separated."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.1 or size == 0:
        return f"{value:.2f}"
    return f"{value:.3f}"


def spread_of(summary: Summary) -> str:
    """The median with its interval: ``2.06 (1.82-2.16)``.

    Of one repeat there is none: ``2.06 (one repeat)``.
    """
    if summary.count == 1:
        return f"{number(summary.median)} (one repeat)"
    return f"{number(summary.median)} ({interval_of(summary)})"


def interval_of(summary: Summary) -> str:
    """Where the true median lies: ``1.82-2.16``."""
    return f"{number(summary.interval.low)}{DASH}{number(summary.interval.high)}"


def brackets(confidences: Iterable[float]) -> str:
    """What stands in brackets behind ratios, to end a phrase with; of one repeat nothing does."""
    known = [confidence for confidence in confidences if confidence > 0]
    if not known:
        return ""
    return (
        f", with the interval of the true median ({min(known):.0%} sure, by order statistics) "
        "in brackets"
    )


def median(heading: str, metric: Metric) -> Column:
    """The median over the repeats."""
    return _summed_up(heading, metric, lambda summary: number(summary.median))


def spread(heading: str, metric: Metric) -> Column:
    """The median with its interval."""
    return _summed_up(heading, metric, spread_of)


def _summed_up(heading: str, metric: Metric, said: Callable[[Summary], str]) -> Column:
    """What is ``said`` of a metric over the repeats."""

    def text(_: Result, row: Row) -> str:
        summary = row.summary(metric.name)
        return ABSENT if summary is None else said(summary)

    return Column(heading, text)


def extent(heading: str, low: Metric, high: Metric) -> Column:
    """From the median of one metric to that of another: ``0.12-0.31``."""

    def text(_: Result, row: Row) -> str:
        first, last = row.summary(low.name), row.summary(high.name)
        if first is None or last is None:
            return ABSENT
        return f"{number(first.median)}{DASH}{number(last.median)}"

    return Column(heading, text)


def improvement(heading: str, metric: Metric, baseline: str) -> Column:
    """How many times better than ``baseline``: median and spread of the paired repeats.

    Without a unit: the heading or the title says what the figure is.
    """

    def text(result: Result, row: Row) -> str:
        summary = result.improvement(row, metric, baseline)
        if summary is None:
            return ABSENT
        return "1" if row.label == baseline else spread_of(summary)

    return Column(heading, text)


def against(heading: str, metric: Metric, **conditions: str) -> Column:
    """How many times better than the row that has other ``conditions`` and else is the same."""

    def text(result: Result, row: Row) -> str:
        baseline = row.scenario.but(**conditions)
        return improvement(heading, metric, baseline.label).text(result, row)

    return Column(heading, text)


def largest(heading: str, metric: Metric) -> Column:
    """The largest value of all repeats."""
    return _summed_up(heading, metric, lambda summary: number(summary.maximum))


def total(heading: str, metric: Metric) -> Column:
    """The sum over the repeats."""

    def text(_: Result, row: Row) -> str:
        figures = [sample.figures.get(metric.name) for sample in row.samples]
        known = [figure for figure in figures if figure is not None]
        return f"{sum(known):,.0f}" if known and row.failure is None else ABSENT

    return Column(heading, text)


def percentile(heading: str, kind: str, percent: float) -> Column:
    """A latency percentile in milliseconds, over all repeats together."""

    def text(_: Result, row: Row) -> str:
        found = row.latencies.get(kind)
        if found is None or row.failure is not None:
            return ABSENT
        value_ns = found.percentiles.get(percent)
        return WITHHELD if value_ns is None else number(value_ns / 1e6)

    return Column(heading, text)


def percentile_of(heading: str, kind: str, percent: float, **conditions: str) -> Column:
    """The percentile of the row that has other ``conditions`` and else is the same."""

    def text(result: Result, row: Row) -> str:
        other = result.row(row.scenario.but(**conditions).label)
        return ABSENT if other is None else percentile("", kind, percent).text(result, other)

    return Column(heading, text)


def percentile_ratio(heading: str, kind: str, percent: float, **conditions: str) -> Column:
    """The percentile by that of the row that has other ``conditions``: below 1 is shorter.

    Of all repeats together, so it has no spread; where a repeat has enough samples for a
    percentile of its own, a metric has one.
    """

    def text(result: Result, row: Row) -> str:
        other = result.row(row.scenario.but(**conditions).label)
        if other is None or row.failure is not None:
            return ABSENT
        mine, its = (each.percentile_ns(kind, percent) for each in (row, other))
        return number(mine / its) if mine and its else WITHHELD

    return Column(heading, text)


def maximum(heading: str, kind: str) -> Column:
    """The largest latency in milliseconds, over all repeats together."""

    def text(_: Result, row: Row) -> str:
        found = row.latencies.get(kind)
        if found is None or found.maximum_ns is None or row.failure is not None:
            return ABSENT
        return number(found.maximum_ns / 1e6)

    return Column(heading, text)


def errors(heading: str) -> Column:
    """How many operations failed, over all repeats together."""

    def text(_: Result, row: Row) -> str:
        return ABSENT if row.failure is not None else f"{sum(row.errors().values()):,}"

    return Column(heading, text)


def capital(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]
