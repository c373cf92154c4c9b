"""The table of ``driver``: a line for each operation, a column for each driver.

Invariant: drivers are compared where all else is equal, so each interpreter has
a table of its own; a verdict is about the operations that both drivers did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import ABSENT, Drawing, Line, number, spread_of

SLOWER = 0.95
"""A ratio below this in some repeat is called slower; nearer to 1 is noise."""

NAMED_AXES = ("driver", "build")


@dataclass(frozen=True)
class OperationTable:
    """Medians of every metric for each row, and ratios to the drivers ``peers``.

    Attributes:
        metrics: one a line.
        peers: the drivers that all others are compared with; the verdict is about the first.
    """

    metrics: Sequence[Metric]
    peers: Sequence[str]

    def drawings(self, result: Result) -> list[Drawing]:
        """A table for each interpreter."""
        groups: dict[str | None, list[Row]] = {}
        for row in result.rows:
            groups.setdefault(row.scenario.interpreter, []).append(row)
        return [self._drawing(result, rows) for rows in groups.values()]

    def _drawing(self, result: Result, rows: Sequence[Row]) -> Drawing:
        called = {row.label: row.scenario.label_of(NAMED_AXES) for row in rows}
        ours = [row for row in rows if row.scenario.driver not in self.peers]
        pairs = [(row, peer) for row in ours for peer in self.peers]
        alone = len(ours) == 1
        headings = [
            *called.values(),
            *(f"{'' if alone else called[row.label]} than {peer}".strip() for row, peer in pairs),
        ]
        lines = []
        for metric in self.metrics:
            summaries = [row.summary(metric.name) for row in rows]
            if not any(summaries) and not any(_asked(row, metric) for row in rows):
                continue
            ratios = [_ratio(result, row, metric, peer) for row, peer in pairs]
            cells = (
                *(ABSENT if found is None else number(found.median) for found in summaries),
                *(ABSENT if found is None else spread_of(found) for found in ratios),
            )
            lines.append(Line(metric.title, cells))
        title = (
            "Microseconds per operation (fastest batch of each repeat), "
            "and times faster than each peer"
        )
        interpreter = rows[0].scenario.interpreter
        return Drawing(
            f"{title}: {_python(rows)} ({interpreter})" if interpreter else title,
            "operation",
            headings,
            lines,
            [self._verdict(result, row, called[row.label]) for row in ours],
        )

    def _verdict(self, result: Result, row: Row, name: str) -> str:
        """Which operations are slower than the first peer's."""
        found = {
            metric.title: ratio
            for metric in self.metrics
            if (ratio := _ratio(result, row, metric, self.peers[0])) is not None
        }
        slower = slower_of(found)
        peer = self.peers[0]
        if not found:
            return f"{name}: nothing was compared with {peer}"
        if not slower:
            return (
                f"{name}: nothing is slower than {peer} "
                f"(of {len(found)} operations, none below {SLOWER} in any repeat)"
            )
        listed = ", ".join(f"{title} {spread_of(ratio)}" for title, ratio in slower.items())
        return (
            f"{name}: slower than {peer} (below {SLOWER} in some repeat; "
            f"{len(slower)} of {len(found)} operations): {listed}"
        )


def slower_of(ratios: Mapping[str, Summary]) -> dict[str, Summary]:
    """Those whose lower bound says that they may be slower."""
    return {title: ratio for title, ratio in ratios.items() if ratio.minimum < SLOWER}


def _ratio(result: Result, row: Row, metric: Metric, peer: str) -> Summary | None:
    """How many times faster than ``peer`` where all else is equal."""
    scenario = replace(row.scenario, driver=peer, build=DRIVERS.get(peer).default_build)
    return result.improvement(row, metric, scenario.label)


def _asked(row: Row, metric: Metric) -> bool:
    """Whether the row was to have the metric."""
    return any(metric.name in {**one.absent, **one.failed} for one in row.samples)


def _python(rows: Sequence[Row]) -> str:
    for row in rows:
        if row.environment is not None:
            python = row.environment["machine"]["python"]
            return f"{python['implementation']} {python['version']}"
    return "unknown Python"
