"""What a report draws, said without saying how: the charts of a result, each with its table.

Charts are made from any result alike: a workload says nothing about them. Rows are put into
groups small enough to be read together, by the axes on which they differ.

======== ======================================================================
Bars     the first metric of a workload, median with its interval
Ratios   where a workload has many metrics: how many times better than a baseline
Ladder   settings one on top of the other, with what was published beside it
Curves   latency percentiles, by kind of operation
Stacks   which part of the operations failed, and how
Strips   what each process (thread, task, child) got: one dot each
======== ======================================================================

Invariants: every chart has a table with every number that it shows; a figure that is not known
is left out of the chart and a dash in the table; nothing here knows HTML.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary, jains_index
from oxlite.bench.layout import ABSENT, WITHHELD, Drawing, Line, number
from oxlite.bench.scenarios.scenario import COUNTS
from oxlite.bench.workloads.base import Workload
from oxlite.bench.workloads.inserts.steps import published

LARGEST_GROUP = 12
FEW_METRICS = 12
"""Of a workload with more, ratios are drawn instead of bars."""

SPLITTING = (
    "interpreter", "operation", "disturbance", "mapper", "mix", "clients", "pragmas", "long",
    "tasks", "processes", "threads", "driver", "style", "journal", "busy",
)  # fmt: skip
"""The axes by which too large a group is divided, the first first."""

SHARES: Mapping[str, str] = {
    "done_in_fixed_time": "statements of each process in the same time",
    "children_ms": "how long each child took, ms",
    "threads": "operations of each thread",
    "tasks": "operations of each task",
    "processes": "operations of each process",
}
"""The details of a sample in which each that took part has an entry, the first found first."""

SUCCEEDED = "succeeded"


@dataclass(frozen=True)
class Group:
    """Rows that are drawn together, what they have in common, and their names beside that."""

    common: str
    rows: Sequence[Row]
    names: Mapping[str, str]


@dataclass(frozen=True)
class Bar:
    """A name, its figure with the spread, whose it is, and what was published of it."""

    name: str
    summary: Summary
    driver: str
    published: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Bars:
    """Lines with a figure each, from nothing; ``ladder`` if each stands on the one above."""

    title: str
    better: str
    bars: Sequence[Bar]
    ladder: bool = False

    def table(self) -> Drawing:
        """The numbers."""
        published = any(bar.published is not None for bar in self.bars)
        headings = ["median", "from", "to", "smallest", "largest", "noise", "repeats"]
        lines = []
        for bar in self.bars:
            one = bar.summary
            cells = [
                *map(number, (*_three(one), one.minimum, one.maximum)),
                noise(one),
                f"{one.count}",
            ]
            if published:
                cells.append(ABSENT if bar.published is None else number(bar.published))
            lines.append(Line(bar.name, cells))
        if published:
            headings.append("published elsewhere")
        return Drawing(self.title, "scenario", headings, lines)


@dataclass(frozen=True)
class Ratios:
    """Lines with how many times better than a baseline each is; 1 is the same."""

    title: str
    bars: Sequence[Bar]

    def table(self) -> Drawing:
        """The numbers."""
        lines = [
            Line(bar.name, [*map(number, _three(bar.summary)), f"{bar.summary.count}"])
            for bar in self.bars
        ]
        headings = ("times better", "from", "to", "repeats")
        return Drawing(self.title, "measured", headings, lines)


@dataclass(frozen=True)
class Curve:
    """A row's latencies: milliseconds by percent, ``None`` where withheld, and the largest."""

    name: str
    driver: str
    values_ms: Mapping[float, float | None]
    maximum_ms: float | None
    count: int


@dataclass(frozen=True)
class Curves:
    """The latencies of one kind of operation."""

    title: str
    curves: Sequence[Curve]

    def percents(self) -> list[float]:
        """Every percentile that some curve has a value of."""
        return sorted({p for curve in self.curves for p, value in curve.values_ms.items() if value})

    def table(self) -> Drawing:
        """The numbers."""
        percents = self.percents()
        lines = []
        for curve in self.curves:
            values = [curve.values_ms.get(percent) for percent in percents]
            cells = [WITHHELD if value is None else number(value) for value in values]
            largest = ABSENT if curve.maximum_ms is None else number(curve.maximum_ms)
            lines.append(Line(curve.name, [*cells, largest, f"{curve.count:,}"]))
        headings = [*(f"p{percent:g}" for percent in percents), "max", "samples"]
        return Drawing(self.title, "scenario", headings, lines)


@dataclass(frozen=True)
class Stack:
    """A row's operations by how they ended: counts, :data:`SUCCEEDED` first."""

    name: str
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Stacks:
    """What part of the operations of each row failed."""

    title: str
    stacks: Sequence[Stack]

    def kinds(self) -> list[str]:
        """Every way to end, :data:`SUCCEEDED` first."""
        return list(dict.fromkeys(kind for stack in self.stacks for kind in stack.counts))

    def table(self) -> Drawing:
        """The numbers."""
        kinds = self.kinds()
        lines = []
        for stack in self.stacks:
            asked = sum(stack.counts.values())
            failed = 1 - stack.counts.get(SUCCEEDED, 0) / asked
            cells = [f"{failed:.2%}", *(f"{stack.counts.get(kind, 0):,}" for kind in kinds)]
            lines.append(Line(stack.name, cells))
        return Drawing(self.title, "scenario", ["failed", *kinds], lines)


@dataclass(frozen=True)
class Strip:
    """What each that took part in a row got, of all repeats."""

    name: str
    driver: str
    values: Sequence[float]


@dataclass(frozen=True)
class Strips:
    """How evenly those who took part were served."""

    title: str
    strips: Sequence[Strip]

    def table(self) -> Drawing:
        """The numbers."""
        lines = []
        for strip in self.strips:
            low, high = min(strip.values), max(strip.values)
            evenness = jains_index(strip.values)
            cells = [*map(number, (low, median(strip.values), high))]
            cells += [ABSENT if evenness is None else number(evenness), f"{len(strip.values)}"]
            lines.append(Line(strip.name, cells))
        headings = ("smallest", "median", "largest", "Jain's index", "dots")
        return Drawing(self.title, "scenario", headings, lines)


Chart = Bars | Ratios | Curves | Stacks | Strips


def charts(result: Result, workload: Workload[Any]) -> list[Chart]:
    """Every chart of a result that it has figures for, in the order of a report."""
    groups = grouped(result)
    found: list[Chart] = []
    if len(workload.metrics) > FEW_METRICS:
        found += _ratios(result, workload.metrics)
    else:
        for group in groups:
            found += _bars(group, workload.metrics[0])
    for group in groups:
        found += _stacks(group)
    for group in groups:
        found += _curves(group)
    for group in groups:
        found += _strips(group)
    return found


def grouped(result: Result) -> list[Group]:
    """The rows of a result, in groups that can be read together."""
    by_axes: dict[frozenset[str], list[Row]] = {}
    for row in result.rows:
        if row.failure is None:
            by_axes.setdefault(frozenset(row.scenario.used()), []).append(row)
    parts = [part for rows in by_axes.values() for part in _divided(rows, SPLITTING)]
    return [_named(rows) for rows in parts]


def _divided(rows: list[Row], axes: Sequence[str]) -> list[list[Row]]:
    if len(rows) <= LARGEST_GROUP or not axes:
        return [rows]
    parts: dict[str | None, list[Row]] = {}
    for row in rows:
        parts.setdefault(getattr(row.scenario, axes[0], None), []).append(row)
    return [part for each in parts.values() for part in _divided(each, axes[1:])]


def _named(rows: Sequence[Row]) -> Group:
    every = [row.scenario.used() for row in rows]
    common = {
        axis: value
        for axis, value in every[0].items()
        if axis not in {"driver", "build"} and all(one.get(axis) == value for one in every)
    }
    words = ", ".join(
        f"{value} {axis}" if axis in COUNTS else value for axis, value in common.items()
    )
    axes = {axis for one in every for axis in one} - common.keys()
    return Group(words, rows, {row.label: row.scenario.label_of(axes) for row in rows})


def _titled(what: str, group: Group) -> str:
    return f"{what}: {group.common}" if group.common else what


def _bars(group: Group, metric: Metric) -> list[Chart]:
    ladder = all(row.scenario.step is not None for row in group.rows)
    elsewhere = published() if ladder else {}
    bars = []
    for row in group.rows:
        summary = row.summary(metric.name)
        if summary is not None:
            noted = f"{failed:,} failed" if (failed := sum(row.errors().values())) else ""
            step = elsewhere.get(row.scenario.step or "")
            bars.append(Bar(group.names[row.label], summary, row.scenario.driver, step, noted))
    title = "The ladder, each step on top of the one before" if ladder else ""
    what = f"{title}: {metric.title}" if ladder else _capital(metric.title)
    return [Bars(_titled(what, group), metric.better, bars, ladder)] if bars else []


def _ratios(result: Result, metrics: Sequence[Metric]) -> list[Chart]:
    found: list[Chart] = []
    for row in result.rows:
        for baseline in result.compared_with(row):
            bars = []
            for metric in metrics:
                summary = result.improvement(row, metric, baseline)
                if summary is not None:
                    bars.append(Bar(metric.title, summary, row.scenario.driver))
            if bars:
                found.append(Ratios(f"{row.label}: times better than {baseline}", bars))
    return found


def _curves(group: Group) -> list[Chart]:
    kinds = dict.fromkeys(kind for row in group.rows for kind in row.latencies)
    found: list[Chart] = []
    for kind in kinds:
        curves = []
        for row in group.rows:
            one = row.latencies.get(kind)
            if one is not None and one.count:
                values = {p: None if ns is None else ns / 1e6 for p, ns in one.percentiles.items()}
                largest = None if one.maximum_ns is None else one.maximum_ns / 1e6
                name = group.names[row.label]
                curves.append(Curve(name, row.scenario.driver, values, largest, one.count))
        chart = Curves(_titled(f"Latency of a {kind}, ms", group), curves)
        # Of one percentile there is no curve.
        if len(chart.percents()) > 1:
            found.append(chart)
    return found


def _stacks(group: Group) -> list[Chart]:
    rows = sorted(group.rows, key=_concurrency)
    if not any(row.errors() for row in rows):
        return []
    stacks = []
    for row in rows:
        errors = row.errors()
        asked = sum(sample.asked for sample in row.samples)
        if asked:
            succeeded = max(0, asked - sum(errors.values()))
            stacks.append(Stack(group.names[row.label], {SUCCEEDED: succeeded, **errors}))
    return [Stacks(_titled("How operations ended", group), stacks)] if stacks else []


def _concurrency(row: Row) -> list[int]:
    return [int(value) for axis in COUNTS if (value := getattr(row.scenario, axis))]


def _strips(group: Group) -> list[Chart]:
    for detail, title in SHARES.items():
        strips = [
            Strip(group.names[row.label], row.scenario.driver, values)
            for row in group.rows
            if len(values := _values(row, detail)) > len(row.samples)
        ]
        if strips:
            return [Strips(_titled(_capital(title), group), strips)]
    return []


def _values(row: Row, detail: str) -> list[float]:
    """A detail of all repeats: numbers, or what each did, as the workloads store it."""
    values: list[float] = []
    for sample in row.samples:
        for one in sample.detail.get(detail) or ():
            value = one.get("in_time", one.get("done")) if isinstance(one, dict) else one
            if isinstance(value, int | float):
                values.append(float(value))
    return values


def _three(summary: Summary) -> Iterable[float]:
    return (summary.median, summary.interval.low, summary.interval.high)


def noise(summary: Summary) -> str:
    """The noise of a figure for a reader."""
    return ABSENT if summary.noise is None else f"{summary.noise:.1%}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
