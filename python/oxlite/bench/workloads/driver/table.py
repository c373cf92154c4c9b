"""The table of ``driver``, and under it which operations are slower than the first peer's.

Invariant: a verdict is about the operations that both drivers did.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from oxlite.bench.driver_table import DriverTable, times_better
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import spread_of

SLOWER = 0.95
"""Where a ratio's interval begins below this, the operation may be slower; nearer to 1 is noise."""


class OperationTable(DriverTable):
    """A line for each operation."""

    title: ClassVar[str] = (
        "Microseconds per operation (fastest batch of each repeat), and times faster than each peer"
    )
    heading: ClassVar[str] = "operation"

    def remarks(self, result: Result, row: Row, name: str) -> Sequence[str]:
        """Which operations are slower than the first peer's."""
        peer = self.peers[0]
        found = {
            metric.title: ratio
            for metric in self.metrics
            if (ratio := times_better(result, row, metric, peer)) is not None
        }
        slower = slower_of(found)
        if not found:
            return [f"{name}: nothing was compared with {peer}"]
        if not slower:
            return [
                f"{name}: nothing is slower than {peer} "
                f"(of {len(found)} operations, no interval begins below {SLOWER})"
            ]
        listed = ", ".join(f"{title} {spread_of(ratio)}" for title, ratio in slower.items())
        return [
            f"{name}: perhaps slower than {peer} (the interval begins below {SLOWER}; "
            f"{len(slower)} of {len(found)} operations): {listed}"
        ]


def slower_of(ratios: Mapping[str, Summary]) -> dict[str, Summary]:
    """Those that may be slower."""
    return {title: ratio for title, ratio in ratios.items() if ratio.interval.low < SLOWER}
