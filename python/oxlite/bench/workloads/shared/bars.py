"""What sharing syncs has to be worth, judged on the medians of the repeats.

A bar is the least that a ratio to another row may be (as many times better), or the
least that a figure of the row itself may be. Where its interval reaches to the other
side of the bar, that is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from oxlite.bench.harness import statistics
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import number, spread_of
from oxlite.bench.verdict import judged
from oxlite.bench.workloads.gate.figures import JAIN, LONGEST, WRITES

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Bar:
    """A bar.

    Attributes:
        processes: of which row, with the gate.
        metric: what is judged.
        limit: the least that it may be.
        peer: how the row waits whose syncs are its own; ``None``: the figure itself is judged.
    """

    processes: str
    metric: Metric
    limit: float
    peer: str | None = None

    def beyond(self, value: float) -> bool:
        """Whether ``value`` is on the wrong side."""
        return value < self.limit


BARS = (
    Bar("25", WRITES, 5.0, "gate"),
    Bar("25", LONGEST, 50.0, "backoff"),
    Bar("25", JAIN, 0.99),
    Bar("4", WRITES, 1.6, "gate"),
    Bar("1", WRITES, 0.97, "gate"),
)


def remarks(result: Result) -> Sequence[str]:
    """A verdict for each bar of which there is the row."""
    lines = []
    for row in result.rows:
        scenario = row.scenario
        if (scenario.commit, scenario.busy, scenario.disturbance) != ("shared", "gate", "calm"):
            continue
        for bar in BARS:
            if bar.processes != scenario.processes:
                continue
            found = _found(result, row, bar)
            unit = "" if bar.peer is None else f" {TIMES} better than each by itself, {bar.peer}"
            measured = "" if found is None else f": {spread_of(found)}{unit}"
            lines.append(
                f"{bar.processes} processes {judged(bar, found)}: {bar.metric.title} ≥ "
                f"{number(bar.limit)}{unit}{measured}"
            )
    return lines


def _found(result: Result, row: Row, bar: Bar) -> Summary | None:
    if bar.peer is None:
        return row.summary(bar.metric.name)
    base = result.row(replace(row.scenario, commit="each", busy=bar.peer).label)
    if base is None or row.failure is not None or base.failure is not None:
        return None
    figures, others = row.figures(bar.metric.name), base.figures(bar.metric.name)
    better = statistics.improvements(figures, others, bar.metric.better)
    return statistics.summarise(better)
