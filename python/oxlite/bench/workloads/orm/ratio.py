"""How many times faster a row is than another, with the interval of that."""

from dataclasses import dataclass
from statistics import median

from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Interval, median_interval
from oxlite.bench.layout import DASH, number


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
