"""The table of ``gil``, and under it whether each bar is held.

A bar is the least or the most that the median of the repeats may be: of a figure,
or of its paired ratios to the standard library's. Where its interval reaches to the
other side of the bar, that is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from oxlite.bench.comparison import Comparison, peer_of
from oxlite.bench.harness import statistics
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import number, spread_of
from oxlite.bench.verdict import judged
from oxlite.bench.workloads.gil import turns

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Bar:
    """A bar.

    Attributes:
        metric: what is judged.
        limit: the bar.
        at_least: whether the limit is the least, else it is the most.
        of_peer: whether the ratio to the first peer's is judged.
    """

    metric: Metric
    limit: float
    at_least: bool = True
    of_peer: bool = True

    def beyond(self, value: float) -> bool:
        """Whether ``value`` is on the wrong side."""
        return value < self.limit if self.at_least else value > self.limit


BARS = (
    Bar(turns.LOOKUPS_BESIDE[1], 100.0),
    Bar(turns.LOOKUPS_BESIDE[8], 20.0),
    *(Bar(metric, 0.5) for metric in turns.CPU_KEPT.values()),
    Bar(turns.WAKE_P99[4], 2.0, at_least=False),
    Bar(turns.SCALING, 1.8, of_peer=False),
)


class GilTable(Comparison):
    """All figures of all drivers, and the verdicts."""

    title: ClassVar[str] = "Medians of the repeats, and times better than each peer"
    heading: ClassVar[str] = "measure"

    def remarks(self, result: Result, row: Row, name: str) -> Sequence[str]:
        """A verdict for each bar."""
        peer = self.peers[0]
        lines = []
        for bar in BARS:
            found = _found(result, row, bar, peer)
            unit = f" {TIMES} {peer}" if bar.of_peer else ""
            limit = f"{'≥' if bar.at_least else '≤'} {number(bar.limit)}{unit}"
            measured = "" if found is None else f": {spread_of(found)}{unit}"
            lines.append(f"{name} {judged(bar, found)}: {bar.metric.title} {limit}{measured}")
        return lines


def _found(result: Result, row: Row, bar: Bar, peer: str) -> Summary | None:
    """What the bar is about: the figure, or its paired ratios to the peer's."""
    if not bar.of_peer:
        return row.summary(bar.metric.name)
    base = result.row(peer_of(row.scenario, peer).label)
    if base is None or row.failure is not None:
        return None
    figures, others = row.figures(bar.metric.name), base.figures(bar.metric.name)
    # As many times as much, whichever way the metric counts.
    return statistics.summarise(statistics.improvements(figures, others, "higher"))
