"""The tables of ``orm``: each operation in every scenario of a mapper, and which are slower.

Drivers are compared where mapper and settings are equal. The bar is that no operation is slower
on Oxlite than on the stock driver: the lower end of the interval of the paired ratios' median is
not below 0.95. An interval that lies below 1 as a whole shows that it is slower; one that begins
below the bar and does not, that it was not measured well enough to tell.

Invariant: a ratio is of paired turns, and stands with its interval.
"""

from collections.abc import Iterator, Sequence

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import CONFIDENCE
from oxlite.bench.layout import ABSENT, Drawing, Line, brackets, number, spread_of
from oxlite.bench.workloads.orm.figures import METRICS, SUM, ratio
from oxlite.bench.workloads.orm.published import SumsTable

BAR = 0.95
PEER = "stdlib"
OURS = "oxlite"

Settings = tuple[str | None, str | None, str | None]
"""The mapper, the journal and the pragmas of a scenario."""


class OperationTables:
    """A table for each mapper with the same settings."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        groups: dict[Settings, list[Row]] = {}
        for row in result.rows:
            scenario = row.scenario
            settings = (scenario.get("mapper"), scenario.get("journal"), scenario.get("pragmas"))
            groups.setdefault(settings, []).append(row)
        # PostgreSQL has none of SQLite's settings: it stands beside all of them.
        for mapper in {settings[0] for settings in groups}:
            without = (mapper, None, None)
            served = [one for one in groups if one[0] == mapper and one != without]
            beside = groups.pop(without, []) if served else []
            for settings in served:
                groups[settings] += beside
        drawings = []
        for settings, rows in groups.items():
            usual = [row for row in rows if not _has_another_build(row)]
            others = [row for row in rows if _has_another_build(row)]
            ours = [row for row in usual if row.scenario.driver == OURS]
            if any(row.scenario.driver != "postgresql" for row in usual) or not others:
                drawings.append(_drawing(result, settings, usual))
            if others:
                drawings.append(_drawing(result, settings, [*ours, *others]))
        return [drawing for drawing in drawings if drawing.lines]


def _drawing(result: Result, settings: Settings, rows: Sequence[Row]) -> Drawing:
    called = {row.label: row.scenario.label_of(("driver", "build")) for row in rows}
    pairs = list(_pairs(rows))
    lines = []
    confidences = set()
    for metric in _longest_first(rows):
        found = [ratio(result, row, metric, peer) for row, peer in pairs]
        confidences |= {one.interval.confidence for one in found if one is not None}
        summaries = [row.summary(metric.name) for row in rows]
        cells = (
            *(ABSENT if summary is None else number(summary.median) for summary in summaries),
            *(ABSENT if one is None else spread_of(one) for one in found),
        )
        lines.append(Line(metric.title, cells))
    named = " ".join(value for value in settings if value is not None)
    what = f"; times faster{brackets(confidences)}" if confidences else ""
    return Drawing(
        f"{named}: milliseconds of each operation, longest first{what}",
        "operation",
        [
            *called.values(),
            *(f"{called[row.label]} than {called[one.label]}" for row, one in pairs),
        ],
        lines,
        [
            *(
                _verdict(result, called[row.label], row, peer)
                for row, peer in pairs
                if peer.scenario.driver == PEER
            ),
            *(remark for row in rows for remark in _degenerate(called[row.label], row)),
        ],
    )


def _has_another_build(row: Row) -> bool:
    """Whether it is of Oxlite with SQLite compiled in another way than usual."""
    scenario = row.scenario
    return scenario.get("build") != DRIVERS.get(scenario.driver).default_build


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """What is compared: Oxlite's row with all others, of other drivers or of its other builds."""
    for row in rows:
        if row.scenario.driver == OURS and not _has_another_build(row):
            for peer in rows:
                if peer is not row:
                    yield row, peer


def _longest_first(rows: Sequence[Row]) -> list[Metric]:
    """The metrics that a row has or should have: by their time in the first row, the sum last."""
    present = [
        metric
        for metric in METRICS
        if any(row.summary(metric.name) or metric.name in row.failed_figures() for row in rows)
    ]

    def length(metric: Metric) -> tuple[bool, float]:
        summaries = (row.summary(metric.name) for row in rows)
        first = next((summary for summary in summaries if summary is not None), None)
        return metric is SUM, -first.median if first is not None else 0.0

    return sorted(present, key=length)


def _verdict(result: Result, name: str, row: Row, peer: Row) -> str:
    """Which operations are slower than the peer's, and of which it is not known."""
    found = {
        metric.title: one
        for metric in METRICS
        if (one := ratio(result, row, metric, peer)) is not None
    }
    if not found:
        return f"{name}: nothing was compared with {PEER}"
    confidence = min(one.interval.confidence for one in found.values())
    if confidence < CONFIDENCE:
        return f"{name}: no verdict: six rounds or more make an interval {CONFIDENCE:.0%} sure"
    doubtful = {title: one for title, one in found.items() if one.interval.low < BAR}
    slower = {title: one for title, one in doubtful.items() if one.interval.high < 1}
    unclear = {title: one for title, one in doubtful.items() if title not in slower}
    # Of so many lines that are all equal, the intervals of some lie below 1 by chance.
    chance = len(found) * (1 - confidence) / 2
    parts = [
        f"{len(found) - len(doubtful)} of {len(found)} lines are not slower than {PEER} "
        f"(the interval does not go below {BAR})"
    ]
    for what, some in (("slower", slower), ("not known", unclear)):
        if some:
            parts.append(
                f"{what}: {', '.join(f'{title} {spread_of(one)}' for title, one in some.items())}"
            )
    if slower:
        parts.append(f"of lines that are all equal, up to {number(chance)} would look slower")
    return f"{name}: {'; '.join(parts)}"


def _degenerate(name: str, row: Row) -> Iterator[str]:
    """The operations that did not do their work, and were not to."""
    if not row.samples:
        return
    for title, why in row.samples[0].detail.get("degenerate", {}).items():
        yield f"{name}: {title}: {why}: no figure of a mapper"


TABLES = (OperationTables(), SumsTable())
