"""The geometry of a report's charts: which marks stand where; the templates make SVG of them.

A line of a chart is a name, a drawing as wide as there is room, and its figure in words. Along the
width, places are percentages; across it, pixels. So a drawing becomes narrower and its words stay
as they are.

The colour of a mark says whose it is (its driver), and is the same in every chart. A plot of curves
has few enough for a colour each.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import DASH, number, spread_of
from oxlite.bench.report.charts import (
    SUCCEEDED,
    Bar,
    Bars,
    Chart,
    Curve,
    Curves,
    Ratios,
    Stacks,
    Strips,
)

HEIGHT = 22
PLOT_HEIGHT = 260
MIDDLE = HEIGHT / 2

DRIVERS = (
    "oxlite", "stdlib", "apsw", "aiosqlite", "postgresql", "redis", "honker", "channels_redis",
    "channels_lite", "memory", "diskcache", "filebased", "locmem",
)  # fmt: skip
"""Those that have a colour; some never stand in a chart together, and share one."""

Scale = Callable[[float], float]
"""From a value to a place, in percent of the width (or of the height)."""


@dataclass(frozen=True)
class Mark:
    """A shape: its element, its class, its attributes, and what it says when pointed at."""

    tag: str
    classes: str
    attributes: Mapping[str, object]
    title: str = ""
    at: str = ""
    """Where its own origin is, in percent of the width, if not on the left."""


@dataclass(frozen=True)
class Lane:
    """A line of a chart."""

    name: str
    figure: str
    marks: Sequence[Mark]
    note: str = ""


@dataclass(frozen=True)
class Tick:
    """A word on an axis, at a place."""

    text: str
    place: str
    classes: str = ""


@dataclass(frozen=True)
class Picture:
    """A chart as the templates draw it.

    Attributes:
        lanes: lines, one below the other; or
        marks: of one plot, with ``levels`` beside and ``ticks`` below it.
        legend: classes of a swatch, with what they stand for.
        hint: how to read it.
    """

    kind: str
    legend: Sequence[tuple[str, str]] = ()
    lanes: Sequence[Lane] = ()
    marks: Sequence[Mark] = ()
    levels: Sequence[Tick] = ()
    ticks: Sequence[Tick] = ()
    hint: str = ""
    height: int = field(default=PLOT_HEIGHT)


def drawn(chart: Chart) -> Picture:
    """The drawing of a chart, without its title and table."""
    match chart:
        case Bars():
            return _bars(chart)
        case Ratios():
            return _ratios(chart)
        case Curves():
            return _curves(chart)
        case Stacks():
            return _stacks(chart)
        case Strips():
            return _strips(chart)


def _colour(driver: str) -> str:
    return f"of-{driver}" if driver in DRIVERS else "of-other"


def _percent(value: float) -> str:
    return f"{value:.2f}%"


def _linear(largest: float) -> Scale:
    return lambda value: 100 * value / largest if largest else 0.0


def _logarithmic(low: float, high: float) -> Scale:
    span = math.log10(high / low) or 1.0
    return lambda value: 100 * math.log10(value / low) / span


def _decades(low: float, high: float) -> tuple[float, float]:
    """Powers of ten around values that are above 0."""
    below, above = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return 10.0**below, 10.0 ** max(above, below + 1)


def _power(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _line(x1: str, x2: str, classes: str, y1: float = MIDDLE, y2: float = MIDDLE) -> Mark:
    return Mark("line", classes, {"x1": x1, "x2": x2, "y1": y1, "y2": y2})


def _spread(one: Summary) -> str:
    return number(one.median) if one.count == 1 else spread_of(one)


def _whisker(one: Summary, place: Scale) -> list[Mark]:
    if one.count == 1:
        return []
    low, high = _percent(place(one.interval.low)), _percent(place(one.interval.high))
    ends = [_line(x, x, "whisker", MIDDLE - 4, MIDDLE + 4) for x in (low, high)]
    return [_line(low, high, "whisker"), *ends]


def _bars(chart: Bars) -> Picture:
    highest = max(max(bar.summary.interval.high, bar.published or 0) for bar in chart.bars)
    lowest = min(min(bar.summary.interval.low, bar.published or math.inf) for bar in chart.bars)
    hint = f"{chart.better} is better; the line is where the true median lies"
    steps = chart.ladder and lowest > 0
    if steps:
        # Steps are ratios, so each takes room by its ratio; a bar from nothing could not.
        low, high = _decades(lowest, highest)
        place = _logarithmic(low, high)
        hint = f"logarithmic, {_power(low)} to {_power(high)}; {hint}"
    else:
        # A little room, so that the end of a whisker is seen.
        place = _linear(1.01 * highest)
    if any(bar.published is not None for bar in chart.bars):
        hint += "; a diamond is what was published, of another machine"
    lanes = [_bar(bar, place, from_nothing=not steps) for bar in chart.bars]
    return Picture("bars", _legend(bar.driver for bar in chart.bars), lanes, hint=hint)


def _bar(bar: Bar, place: Scale, *, from_nothing: bool) -> Lane:
    x, whose = _percent(place(bar.summary.median)), _colour(bar.driver)
    if from_nothing:
        shape = {"x": 0, "y": 3, "width": x, "height": HEIGHT - 6, "rx": 1.5}
        marks = [Mark("rect", f"bar {whose}", shape), *_whisker(bar.summary, place)]
    else:
        dot = Mark("circle", f"dot {whose}", {"cx": x, "cy": MIDDLE, "r": 5})
        marks = [_line("0", "100%", "grid"), *_whisker(bar.summary, place), dot]
    if bar.published is not None:
        diamond = {"d": f"M0 {MIDDLE - 6}L6 {MIDDLE}L0 {MIDDLE + 6}L-6 {MIDDLE}Z"}
        marks.append(Mark("path", "published", diamond, at=_percent(place(bar.published))))
    return Lane(bar.name, _spread(bar.summary), marks, bar.note)


def _ratios(chart: Ratios) -> Picture:
    values = [
        v for bar in chart.bars for v in (bar.summary.interval.low, bar.summary.interval.high)
    ]
    reach = max(2.0, *(max(value, 1 / value) for value in values)) * 1.05
    place = _logarithmic(1 / reach, reach)
    lanes = []
    for bar in chart.bars:
        side = "better" if bar.summary.median >= 1 else "worse"
        x = _percent(place(bar.summary.median))
        marks = [
            _line("50%", "50%", "one", 0, HEIGHT),
            *_whisker(bar.summary, place),
            Mark("circle", f"dot {side}", {"cx": x, "cy": MIDDLE, "r": 4.5}),
        ]
        lanes.append(Lane(bar.name, _spread(bar.summary), marks))
    hint = (
        f"logarithmic, the line in the middle is 1: as good as the other; from 1/{number(reach)} "
        f"on the left to {number(reach)} on the right, better is to the right"
    )
    return Picture("ratios", (), lanes, hint=hint)


def _curves(chart: Curves) -> Picture:
    percents = chart.percents()
    values = [v for curve in chart.curves for v in curve.values_ms.values() if v]
    low, high = _decades(min(values), max(values))
    up = _logarithmic(low, high)
    # Each further nine takes as much room as the one before.
    tails = [-math.log10(1 - percent / 100) for percent in percents]
    first, last = tails[0], tails[-1]
    across = {
        p: 100 * (t - first) / ((last - first) or 1) for p, t in zip(percents, tails, strict=True)
    }
    marks, levels = [], []
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        y = _height(up(10.0**power))
        marks.append(_line("0", "100%", "grid", y, y))
        levels.append(Tick(_power(10.0**power), f"{y}px"))
    colours = _of_curves(chart.curves)
    for curve, colour in zip(chart.curves, colours, strict=True):
        marks += _curve(curve, f"series {colour}", across, up)
    legend = [
        (f"series {colour}", curve.name)
        for curve, colour in zip(chart.curves, colours, strict=True)
    ]
    ticks = [Tick(f"p{p:g}", f"{x:.2f}%", _edge(x)) for p, x in across.items()]
    hint = (
        "both axes are logarithmic; lower is better; a point is missing where fewer than ten "
        "samples lie beyond it"
    )
    return Picture("curves", legend, (), marks, levels, ticks, hint)


def _of_curves(curves: Sequence[Curve]) -> list[str]:
    """A colour for each: the driver's for the last of its curves, others for the rest."""
    last = {curve.driver: curve for curve in curves}
    spare = itertools.count(1)
    return [
        _colour(curve.driver) if last[curve.driver] is curve else f"s{next(spare)}"
        for curve in curves
    ]


def _edge(place: float) -> str:
    return "first" if place < 1 else ("last" if place > 99 else "")


def _height(place: float) -> float:
    # Eight pixels below and above, so that no line lies on the edge.
    return round(PLOT_HEIGHT - 8 - (PLOT_HEIGHT - 16) * place / 100, 1)


def _curve(curve: Curve, classes: str, across: dict[float, float], up: Scale) -> list[Mark]:
    points = [
        (_percent(across[p]), _height(up(value)), p, value)
        for p, value in sorted(curve.values_ms.items())
        if value
    ]
    return [
        *(
            _line(before[0], after[0], classes, before[1], after[1])
            for before, after in itertools.pairwise(points)
        ),
        *(
            Mark(
                "circle",
                classes,
                {"cx": x, "cy": y, "r": 3.5},
                f"{curve.name}, p{p:g}: {number(value)} ms",
            )
            for x, y, p, value in points
        ),
    ]


def _stacks(chart: Stacks) -> Picture:
    kinds = chart.kinds()
    lanes = []
    for stack in chart.stacks:
        asked = sum(stack.counts.values())
        failed = 1 - stack.counts.get(SUCCEEDED, 0) / asked
        begun, marks = 0.0, []
        for index, kind in enumerate(kinds):
            count = stack.counts.get(kind, 0)
            part = 100 * count / asked
            shape = {"x": _percent(begun), "y": 3, "width": _percent(part), "height": HEIGHT - 6}
            marks.append(Mark("rect", _ending(index), shape, f"{kind}: {count:,}"))
            begun += part
        figure = f"{failed:.1%} failed" if failed >= 0.001 or not failed else "< 0.1% failed"
        lanes.append(Lane(stack.name, figure, marks))
    legend = [(_ending(index), kind) for index, kind in enumerate(kinds)]
    return Picture("stacks", legend, lanes)


def _ending(index: int) -> str:
    return f"ending e{min(index, 4)}"


def _strips(chart: Strips) -> Picture:
    place = _linear(1.02 * max(value for strip in chart.strips for value in strip.values))
    lanes = []
    for strip in chart.strips:
        whose = f"share {_colour(strip.driver)}"
        dots = [
            Mark("circle", whose, {"cx": _percent(place(value)), "cy": MIDDLE, "r": 4})
            for value in strip.values
        ]
        figure = f"{number(min(strip.values))}{DASH}{number(max(strip.values))}"
        lanes.append(Lane(strip.name, figure, [_line("0", "100%", "grid"), *dots]))
    hint = "one dot for each, of all repeats, from 0 on the left; close together is fair"
    return Picture("strips", _legend(strip.driver for strip in chart.strips), lanes, hint=hint)


def _legend(drivers: Iterable[str]) -> list[tuple[str, str]]:
    names = list(dict.fromkeys(drivers))
    return [(f"bar {_colour(name)}", name) for name in names] if len(names) > 1 else []
