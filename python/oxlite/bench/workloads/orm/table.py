"""The table of ``orm``, and under it which operations are slower than on the stock driver."""

from collections.abc import Sequence
from typing import ClassVar

from oxlite.bench.comparison import Comparison, times_better
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.layout import spread_of
from oxlite.bench.workloads.orm.operations import TIMED

SLOWER = 0.95
"""A ratio below this in some repeat is called slower; nearer to 1 is noise."""

SUM = Metric("sum_ms", "all of them", "lower")
METRICS = (*(Metric(timed.metric, timed.title, "lower") for timed in TIMED), SUM)
PEERS = ("stdlib",)


class OperationTable(Comparison):
    """A line for each operation, and one for their sum."""

    title: ClassVar[str] = "Milliseconds of each operation, and times faster than the stock driver"
    heading: ClassVar[str] = "operation"

    def remarks(self, result: Result, row: Row, name: str) -> Sequence[str]:
        """Which operations are slower than the stock driver's."""
        peer = self.peers[0]
        found = {
            metric.title: ratio
            for metric in self.metrics
            if (ratio := times_better(result, row, metric, peer)) is not None
        }
        slower = {title: ratio for title, ratio in found.items() if ratio.minimum < SLOWER}
        if not found:
            return [f"{name}: nothing was compared with {peer}"]
        listed = ", ".join(f"{title} {spread_of(ratio)}" for title, ratio in slower.items())
        what = f"slower: {listed}" if slower else "none is slower"
        return [
            f"{name}: of {len(found)} lines, those below {SLOWER} of {peer} in some repeat: {what}"
        ]


TABLES = (OperationTable(METRICS, PEERS),)
