"""The charts of a report as HTML and SVG.

A line of a chart is a name, a drawing as wide as there is room, and its figure in words. Along the
width, places are percentages; across it, pixels. So a drawing becomes narrower and its words stay
as they are.

The colour of a mark says whose it is (its driver), and is the same in every chart; where one driver
has several curves, the dashes differ too, so that nothing depends on colours alone.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

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
from oxlite.bench.report.html.markup import Markup, element, empty, joined

LINE_HEIGHT = 22
PLOT_HEIGHT = 260
MIDDLE = LINE_HEIGHT / 2
SERIES = 8
"""How many colours there are for curves of one chart."""

DRIVERS = ("oxlite", "stdlib", "apsw", "aiosqlite", "postgresql")

Scale = Callable[[float], float]
"""From a value to a place, in percent of the width (or of the height)."""


def drawn(chart: Chart) -> Markup:
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


def summary_of(chart: Chart) -> str:
    """The drawing in a sentence, for those who do not see it."""
    table = chart.table()
    lines = len(table.lines)
    return (
        f"{table.title}. {lines} line{'s' if lines > 1 else ''}; the table below has the numbers."
    )


def colour(driver: str) -> str:
    """The class of a driver's colour."""
    return f"of-{driver}" if driver in DRIVERS else "of-other"


def percent(value: float) -> str:
    """A place for SVG."""
    return f"{value:.2f}%"


def linear(largest: float) -> Scale:
    """From nothing to ``largest``."""
    return lambda value: 100 * value / largest if largest else 0.0


def logarithmic(low: float, high: float) -> Scale:
    """From ``low`` to ``high``, both above 0."""
    span = math.log10(high / low) or 1.0
    return lambda value: 100 * math.log10(value / low) / span


def _row(name: str, drawing: Markup, figure: str, note: str = "") -> Markup:
    said = [figure, element("small", note)] if note else [figure]
    return element(
        "div",
        element("span", name, class_="name"),
        drawing,
        element("span", *said, class_="figure"),
        class_="row",
    )


def _svg(*marks: Markup, title: str) -> Markup:
    return element(
        "svg", element("title", title), *marks, width="100%", height=LINE_HEIGHT, class_="line"
    )


def _spread(one: Summary) -> str:
    if one.count == 1:
        return number(one.median)
    return spread_of(one)


def _whisker(one: Summary, place: Scale) -> list[Markup]:
    if one.count == 1:
        return []
    low, high = percent(place(one.interval.low)), percent(place(one.interval.high))
    ends = [
        empty("line", x1=x, x2=x, y1=MIDDLE - 4, y2=MIDDLE + 4, class_="whisker")
        for x in (low, high)
    ]
    return [empty("line", x1=low, x2=high, y1=MIDDLE, y2=MIDDLE, class_="whisker"), *ends]


def _bars(chart: Bars) -> Markup:
    highest = max(max(bar.summary.interval.high, bar.published or 0) for bar in chart.bars)
    lowest = min(min(bar.summary.interval.low, bar.published or math.inf) for bar in chart.bars)
    if chart.ladder and lowest > 0:
        # Steps are ratios, so each takes room by its ratio; a bar from nothing could not.
        low, high = decades(lowest, highest)
        place, scale = logarithmic(low, high), f"logarithmic, {_power(low)} to {_power(high)}; "
    else:
        # A little room, so that the end of a whisker is seen.
        place, scale = linear(1.01 * highest), ""
    lines = [_bar(bar, place, from_nothing=not scale) for bar in chart.bars]
    legend = _legend(dict.fromkeys(bar.driver for bar in chart.bars))
    hint = f"{scale}{chart.better} is better; the line is where the true median lies"
    if any(bar.published is not None for bar in chart.bars):
        hint += "; a diamond is what was published, of another machine"
    return joined(
        [legend, element("div", *lines, class_="rows"), element("p", hint, class_="hint")]
    )


def decades(low: float, high: float) -> tuple[float, float]:
    """Powers of ten around values that are above 0."""
    below, above = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return 10.0**below, 10.0 ** max(above, below + 1)


def _power(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _bar(bar: Bar, place: Scale, *, from_nothing: bool) -> Markup:
    x = percent(place(bar.summary.median))
    whose = colour(bar.driver)
    marks = []
    if from_nothing:
        height = LINE_HEIGHT - 6
        marks += [empty("rect", x="0", y=3, width=x, height=height, rx=1.5, class_=f"bar {whose}")]
        marks += _whisker(bar.summary, place)
    else:
        marks += [empty("line", x1="0", x2="100%", y1=MIDDLE, y2=MIDDLE, class_="grid")]
        marks += _whisker(bar.summary, place)
        marks += [empty("circle", cx=x, cy=MIDDLE, r=5, class_=f"dot {whose}")]
    if bar.published is not None:
        diamond = f"M0 {MIDDLE - 6}L6 {MIDDLE}L0 {MIDDLE + 6}L-6 {MIDDLE}Z"
        where = percent(place(bar.published))
        shape = empty("path", d=diamond, class_="published")
        marks.append(element("svg", shape, x=where, overflow="visible"))
    figure = _spread(bar.summary)
    return _row(bar.name, _svg(*marks, title=f"{bar.name}: {figure}"), figure, bar.note)


def _ratios(chart: Ratios) -> Markup:
    values = [
        v for bar in chart.bars for v in (bar.summary.interval.low, bar.summary.interval.high)
    ]
    reach = max(2.0, *(max(value, 1 / value) for value in values)) * 1.05
    place = logarithmic(1 / reach, reach)
    lines = []
    for bar in chart.bars:
        better = bar.summary.median >= 1
        marks = [
            empty("line", x1="50%", x2="50%", y1=0, y2=LINE_HEIGHT, class_="one"),
            *_whisker(bar.summary, place),
            empty("circle", cx=percent(place(bar.summary.median)), cy=MIDDLE, r=4.5,
                  class_=f"dot {'better' if better else 'worse'}"),
        ]  # fmt: skip
        figure = _spread(bar.summary)
        lines.append(_row(bar.name, _svg(*marks, title=f"{bar.name}: {figure}"), figure))
    hint = (
        f"logarithmic, the line in the middle is 1: as good as the other; from 1/{number(reach)} "
        f"on the left to {number(reach)} on the right, better is to the right"
    )
    return joined([element("div", *lines, class_="rows"), element("p", hint, class_="hint")])


def _curves(chart: Curves) -> Markup:
    values = [v for curve in chart.curves for v in curve.values_ms.values() if v]
    low, high = decades(min(values), max(values))
    up = logarithmic(low, high)
    percents = chart.percents()
    # Each further nine takes as much room as the one before.
    along = {p: math.log10(1 / (1 - p / 100)) for p in percents}
    first, last = along[percents[0]], along[percents[-1]]
    across = {p: 100 * (x - first) / ((last - first) or 1) for p, x in along.items()}
    grid, levels = [], []
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        y = _height(up(10.0**power))
        grid.append(empty("line", x1="0", x2="100%", y1=y, y2=y, class_="grid"))
        levels.append(element("span", _power(10.0**power), style=f"top:{y}px"))
    series = [_curve(number, curve, across, up) for number, curve in enumerate(chart.curves)]
    plot = element(
        "svg",
        element("title", summary_of(chart)),
        *grid,
        *series,
        width="100%",
        height=PLOT_HEIGHT,
        class_="plot",
    )
    scale = element("div", *levels, class_="levels", aria_hidden="true")
    ticks = element(
        "div",
        *(
            element("span", f"p{p:g}", style=f"left:{across[p]:.2f}%", class_=_edge(across[p]))
            for p in percents
        ),
        class_="axis",
        aria_hidden="true",
    )
    legend = element(
        "ul",
        *(
            element("li", _swatch(f"series s{n % SERIES} d{n // SERIES}"), curve.name)
            for n, curve in enumerate(chart.curves)
        ),
        class_="legend",
    )
    hint = (
        "both axes are logarithmic; lower is better; a point is missing where fewer than ten "
        "samples lie beyond it"
    )
    return joined([legend, element("div", scale, plot, ticks, class_="plotted"),
                   element("p", hint, class_="hint")])  # fmt: skip


def _edge(place: float) -> str | None:
    return "first" if place < 1 else ("last" if place > 99 else None)


def _height(place: float) -> float:
    # Eight pixels below and above, so that no line lies on the edge.
    return round(PLOT_HEIGHT - 8 - (PLOT_HEIGHT - 16) * place / 100, 1)


def _curve(index: int, curve: Curve, across: Mapping[float, float], up: Scale) -> Markup:
    points = [
        (percent(across[p]), _height(up(value)), p, value)
        for p, value in sorted(curve.values_ms.items())
        if value
    ]
    lines = [
        empty("line", x1=before[0], y1=before[1], x2=after[0], y2=after[1])
        for before, after in itertools.pairwise(points)
    ]
    dots = [
        element("circle", element("title", f"{curve.name}, p{p:g}: {number(value)} ms"),
                cx=x, cy=y, r=3.5)
        for x, y, p, value in points
    ]  # fmt: skip
    return element("g", *lines, *dots, class_=f"series s{index % SERIES} d{index // SERIES}")


def _stacks(chart: Stacks) -> Markup:
    kinds = chart.kinds()
    lines = []
    for stack in chart.stacks:
        asked = sum(stack.counts.values())
        failed = 1 - stack.counts.get(SUCCEEDED, 0) / asked
        begun, marks = 0.0, []
        for index, kind in enumerate(kinds):
            part = 100 * stack.counts.get(kind, 0) / asked
            marks.append(
                element("rect", element("title", f"{kind}: {stack.counts.get(kind, 0):,}"),
                        x=percent(begun), y=3, width=percent(part), height=LINE_HEIGHT - 6,
                        class_=_ending(index))
            )  # fmt: skip
            begun += part
        figure = f"{failed:.1%} failed" if failed >= 0.001 or not failed else "< 0.1% failed"
        lines.append(_row(stack.name, _svg(*marks, title=f"{stack.name}: {figure}"), figure))
    legend = element(
        "ul",
        *(element("li", _swatch(_ending(index)), kind) for index, kind in enumerate(kinds)),
        class_="legend",
    )
    return joined([legend, element("div", *lines, class_="rows")])


def _ending(index: int) -> str:
    return f"ending e{min(index, 4)}"


def _strips(chart: Strips) -> Markup:
    place = linear(1.02 * max(value for strip in chart.strips for value in strip.values))
    lines = []
    for strip in chart.strips:
        dots = [
            empty(
                "circle",
                cx=percent(place(value)),
                cy=MIDDLE,
                r=4,
                class_=f"share {colour(strip.driver)}",
            )
            for value in strip.values
        ]
        base = empty("line", x1="0", x2="100%", y1=MIDDLE, y2=MIDDLE, class_="grid")
        figure = f"{number(min(strip.values))}{DASH}{number(max(strip.values))}"
        lines.append(_row(strip.name, _svg(base, *dots, title=f"{strip.name}: {figure}"), figure))
    hint = "one dot for each, of all repeats, from 0 on the left; close together is fair"
    return joined([element("div", *lines, class_="rows"), element("p", hint, class_="hint")])


def _legend(drivers: Sequence[str] | Mapping[str, object]) -> Markup:
    if len(drivers) < 2:
        return Markup("")
    return element(
        "ul",
        *(element("li", _swatch(f"bar {colour(name)}"), name) for name in drivers),
        class_="legend",
    )


def _swatch(classes: str) -> Markup:
    shape = (
        empty("line", x1=0, x2=18, y1=6, y2=6)
        if "series" in classes
        else empty("rect", width=12, height=12, rx=1.5)
    )
    return element(
        "svg", element("g", shape, class_=classes), width=20, height=12, aria_hidden="true"
    )
