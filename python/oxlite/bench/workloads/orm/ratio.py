"""How many times faster a row is than another, with the interval of that.

Each turn of an operation is paired with the peer's turn beside it, a moment before or after, and
a round has the median of its pairs. The interval is of the rounds, each of which has processes of
its own: pairs of the same processes have in common by how much those differ.
"""

from dataclasses import dataclass
from statistics import median

from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Interval, improvements, median_interval
from oxlite.bench.layout import DASH, number

TURNS = "turns_ms"
"""The detail of a sample that has every turn's time, by metric."""


@dataclass(frozen=True)
class Ratio:
    """How many times faster: the median over the pairs, and where the true one lies."""

    median: float
    interval: Interval

    def __str__(self) -> str:
        """``1.07 (0.99-1.12)``."""
        low, high = number(self.interval.low), number(self.interval.high)
        return f"{number(self.median)} ({low}{DASH}{high})"


def ratio(result: Result, row: Row, metric: Metric, peer: Row) -> Ratio | None:
    """How many times faster ``row`` is than ``peer``, if that can be said."""
    ratios = result.ratios(row, metric, peer.label)
    if not ratios:
        return None
    rounds = [
        median(found)
        for ours, theirs in zip(_turns(row, metric), _turns(peer, metric), strict=False)
        if (found := improvements(ours, theirs, metric.better))
    ]
    ratios = rounds or ratios
    interval = median_interval(ratios)
    return None if interval is None else Ratio(median(ratios), interval)


def said(confidence: float) -> str:
    """What an interval is, in a few words."""
    return f"the interval of the true median ({confidence:.0%} sure, by order statistics)"


def _turns(row: Row, metric: Metric) -> list[list[float]]:
    """The times of all turns of each round, in order."""
    return [sample.detail.get(TURNS, {}).get(metric.name, []) for sample in row.samples]
