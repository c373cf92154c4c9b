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

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary, jains_index
from oxlite.bench.layout import ABSENT, WITHHELD, Drawing, Line, capital, number
from oxlite.bench.workloads.base import FEW_METRICS, Workload

LARGEST_GROUP = 12
MOST_CURVES = 5
"""More lines in one plot could not be told apart."""


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
            found += _bars(group, workload)
    for group in groups:
        found += _stacks(group)
    for group in grouped(result, MOST_CURVES):
        found += _curves(group)
    for group in groups:
        found += _strips(group)
    return _numbered(found)


def _numbered(found: Sequence[Chart]) -> list[Chart]:
    """Charts of one title, told apart: ``… (2)``."""
    seen: Counter[str] = Counter()
    named: list[Chart] = []
    for chart in found:
        seen[chart.title] += 1
        again = f" ({seen[chart.title]})" if seen[chart.title] > 1 else ""
        named.append(replace(chart, title=f"{chart.title}{again}"))
    return named


def grouped(result: Result, largest: int = LARGEST_GROUP) -> list[Group]:
    """The rows of a result, in groups that can be read together.

    A row with fewer axes than the others, a server's, stands in every group that it fits, so that
    it is drawn on the scale of what it is compared with.
    """
    by_axes: dict[frozenset[str], list[Row]] = {}
    for row in result.rows:
        if row.failure is None:
            by_axes.setdefault(frozenset(row.scenario), []).append(row)
    guests = [
        row
        for axes, rows in by_axes.items()
        for row in rows
        if any(axes < other for other in by_axes)
    ]
    parts = [
        part
        for rows in by_axes.values()
        for part in _divided([row for row in rows if row not in guests], SPLITTING, largest)
    ]
    parts = [[*part, *(row for row in guests if _fits(row, part))] for part in parts if part]
    alone = [row for row in guests if not any(row in part for part in parts)]
    return [_named(part) for part in (*parts, *_divided(alone, SPLITTING, largest)) if part]


def _fits(guest: Row, rows: Sequence[Row]) -> bool:
    """Whether a row has the values of others on the axes that it has, but for the driver."""
    mine = {a: v for a, v in guest.scenario.items() if a not in {"driver", "build"}}
    return any(mine.items() <= row.scenario.items() for row in rows)


def _divided(rows: list[Row], axes: Sequence[str], largest: int) -> list[list[Row]]:
    if len(rows) <= largest:
        return [rows]
    if not axes:
        return [rows[at : at + largest] for at in range(0, len(rows), largest)]
    parts: dict[str | None, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.scenario.get(axes[0]), []).append(row)
    return [part for each in parts.values() for part in _divided(each, axes[1:], largest)]


def _named(rows: Sequence[Row]) -> Group:
    every = [row.scenario for row in rows]
    common = {
        axis: value
        for axis, value in every[0].items()
        if axis not in {"driver", "build"} and all(one.get(axis) == value for one in every)
    }
    words = ", ".join(rows[0].scenario.label_of({axis}) for axis in common)
    axes = {axis for one in every for axis in one} - common.keys()
    return Group(words, rows, {row.label: row.scenario.label_of(axes) for row in rows})


def _titled(what: str, group: Group) -> str:
    return f"{what}: {group.common}" if group.common else what


def _bars(group: Group, workload: Workload[Any]) -> list[Chart]:
    metric = workload.metrics[0]
    ladder = all(workload.ladder in row.scenario for row in group.rows)
    bars = []
    for row in group.rows:
        summary = row.summary(metric.name)
        if summary is not None:
            noted = f"{failed:,} failed" if (failed := sum(row.errors().values())) else ""
            known = workload.elsewhere.get(row.scenario.get(workload.ladder, ""))
            bars.append(Bar(group.names[row.label], summary, row.scenario.driver, known, noted))
    if not ladder:
        bars.sort(key=lambda bar: bar.summary.median, reverse=metric.better == "higher")
    said = metric.title_with_unit
    what = f"The ladder, each step on top of the one before: {said}" if ladder else capital(said)
    return [Bars(_titled(what, group), metric.better, bars, ladder)] if bars else []


def _ratios(result: Result, metrics: Sequence[Metric]) -> list[Chart]:
    found: list[Chart] = []
    drawn: set[frozenset[str]] = set()
    # Oxlite's first: of a pair there is one chart, and it is said what Oxlite is.
    for row in sorted(result.rows, key=lambda row: row.scenario.driver != "oxlite"):
        for baseline in result.compared_with(row):
            bars = []
            for metric in metrics:
                summary = result.improvement(row, metric, baseline)
                if summary is not None:
                    bars.append(Bar(metric.title, summary, row.scenario.driver))
            pair = frozenset({row.label, baseline})
            if bars and pair not in drawn:
                drawn.add(pair)
                bars.sort(key=lambda bar: bar.summary.median, reverse=True)
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
        chart = Curves(_titled(f"Latency, {kind}, ms", group), curves)
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
    return row.scenario.counts()


def _strips(group: Group) -> list[Chart]:
    for detail, title in SHARES.items():
        strips = [
            Strip(group.names[row.label], row.scenario.driver, values)
            for row in group.rows
            if len(values := _values(row, detail)) > len(row.samples)
        ]
        if strips:
            return [Strips(_titled(capital(title), group), strips)]
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
