"""A table that compares drivers: a line for each metric, a column for each driver.

Invariant: drivers are compared where all else is equal, so each interpreter has
a table of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import ABSENT, Drawing, Line, number, spread_of
from oxlite.bench.scenarios.axes import DRIVER, INTERPRETER, JOURNAL, PRAGMAS
from oxlite.bench.scenarios.scenario import Scenario

PEERS = ("stdlib", "apsw")
"""The drivers that Oxlite's is compared with."""

SETTINGS = {"journal": "wal", "pragmas": "tuned"}
"""Those of all drivers alike."""

AXES = (DRIVER.of(*PEERS, "oxlite"), JOURNAL.of("wal"), PRAGMAS.of("tuned"), INTERPRETER)
BASELINES = tuple(SETTINGS | {"driver": peer} for peer in PEERS)

NAMED_AXES = ("driver", "build")


@dataclass(frozen=True)
class DriverTable:
    """Medians of every metric for each row, and ratios to the drivers ``peers``.

    Attributes:
        title: stands above.
        heading: of the metrics.
        metrics: one a line.
        peers: the drivers that all others are compared with.
    """

    title: ClassVar[str]
    heading: ClassVar[str]

    metrics: Sequence[Metric]
    peers: Sequence[str]

    def remarks(self, result: Result, row: Row, name: str) -> Sequence[str]:
        """What to say below the table of a row that is no peer's, and is called ``name`` there."""
        return ()

    def drawings(self, result: Result) -> list[Drawing]:
        """A table for each interpreter."""
        groups: dict[str | None, list[Row]] = {}
        for row in result.rows:
            groups.setdefault(row.scenario.get("interpreter"), []).append(row)
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
            ratios = [times_better(result, row, metric, peer) for row, peer in pairs]
            cells = (
                *(ABSENT if found is None else number(found.median) for found in summaries),
                *(ABSENT if found is None else spread_of(found) for found in ratios),
            )
            lines.append(Line(metric.title, cells))
        interpreter = rows[0].scenario.get("interpreter")
        return Drawing(
            f"{self.title}: {_python(rows)} ({interpreter})" if interpreter else self.title,
            self.heading,
            headings,
            lines,
            [remark for row in ours for remark in self.remarks(result, row, called[row.label])],
        )


def peer_of(scenario: Scenario, driver: str) -> Scenario:
    """The scenario of ``driver`` in which all else is equal."""
    return scenario.but(driver=driver, build=DRIVERS.get(driver).default_build)


def times_better(result: Result, row: Row, metric: Metric, peer: str) -> Summary | None:
    """How many times better than ``peer``, over paired repeats."""
    return result.improvement(row, metric, peer_of(row.scenario, peer).label)


def _asked(row: Row, metric: Metric) -> bool:
    """Whether the row was to have the metric."""
    return any(metric.name in {**one.absent, **one.failed} for one in row.samples)


def _python(rows: Sequence[Row]) -> str:
    for row in rows:
        if row.environment is not None:
            python = row.environment["machine"]["python"]
            return f"{python['implementation']} {python['version']}"
    return "unknown Python"
