"""The tables of ``orm``: each operation in every scenario of a mapper, and which are slower.

Drivers are compared where mapper and settings are equal. The bar is that no operation is slower
on Oxlite than on the stock driver: the lower end of the interval of the paired ratios' median is
not below 0.95. An interval that lies below 1 as a whole shows that it is slower; one that begins
below the bar and does not, that it was not measured well enough to tell.

Invariant: a ratio is of paired rounds, and stands with its interval.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import CONFIDENCE, Interval, median_interval
from oxlite.bench.layout import ABSENT, DASH, Drawing, Line, number
from oxlite.bench.workloads.orm.figures import METRICS, SUM

BAR = 0.95
PEER = "stdlib"

Settings = tuple[str | None, str | None, str | None]
"""The mapper, the journal and the pragmas of a scenario."""


@dataclass(frozen=True)
class Ratio:
    """How many times faster: the median over the paired rounds, and where the true one lies."""

    median: float
    interval: Interval

    def __str__(self) -> str:
        """``1.07 (0.99-1.12)``."""
        low, high = number(self.interval.low), number(self.interval.high)
        return f"{number(self.median)} ({low}{DASH}{high})"


def ratio(result: Result, row: Row, metric: Metric, peer: Row) -> Ratio | None:
    """How many times faster ``row`` is than ``peer``, if that can be said."""
    ratios = result.ratios(row, metric, peer.label)
    interval = median_interval(ratios)
    return None if interval is None else Ratio(median(ratios), interval)


def said(confidence: float) -> str:
    """What an interval is, in a few words."""
    return f"the interval of the true median ({confidence:.0%} sure, by order statistics)"


class OperationTables:
    """A table for each mapper with the same settings."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        groups: dict[Settings, list[Row]] = {}
        served: set[str | None] = set()
        for row in result.rows:
            scenario = row.scenario
            settings = (scenario.mapper, scenario.journal, scenario.pragmas)
            groups.setdefault(settings, []).append(row)
        # PostgreSQL has none of SQLite's settings: it stands beside all of them.
        for (mapper, journal, pragmas), rows in list(groups.items()):
            beside = groups.get((mapper, None, None), [])
            if journal is not None and beside:
                groups[mapper, journal, pragmas] = [*rows, *beside]
                served.add(mapper)
        for mapper in served:
            del groups[mapper, None, None]
        return [_drawing(result, settings, rows) for settings, rows in groups.items()]


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
            *(ABSENT if one is None else str(one) for one in found),
        )
        lines.append(Line(metric.title, cells))
    named = " ".join(value for value in settings if value is not None)
    what = f"; times faster, with {said(min(confidences))} in brackets" if confidences else ""
    return Drawing(
        f"{named}: milliseconds of each operation, longest first{what}",
        "operation",
        [
            *called.values(),
            *(f"{called[row.label]} than {called[peer.label]}" for row, peer in pairs),
        ],
        lines,
        [
            *(
                _verdict(result, called[row.label], row, peer)
                for row, peer in pairs
                if row.scenario.driver == "oxlite" and peer.scenario.driver == PEER
            ),
            *(remark for row in rows for remark in _degenerate(called[row.label], row)),
        ],
    )


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """What is compared: Oxlite's rows with those of every other driver."""
    for row in rows:
        for peer in rows:
            if row.scenario.driver == "oxlite" != peer.scenario.driver:
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
    parts = [
        f"{len(found) - len(doubtful)} of {len(found)} lines are not slower than {PEER} "
        f"(the interval does not go below {BAR})"
    ]
    for what, some in (("slower", slower), ("not known", unclear)):
        if some:
            parts.append(f"{what}: {', '.join(f'{title} {one}' for title, one in some.items())}")
    return f"{name}: {'; '.join(parts)}"


def _degenerate(name: str, row: Row) -> Iterator[str]:
    """The operations that did not do their work, and were not to."""
    if not row.samples:
        return
    for title, why in row.samples[0].detail.get("degenerate", {}).items():
        yield f"{name}: {title}: {why}: no figure of a mapper"


TABLES = (OperationTables(),)
