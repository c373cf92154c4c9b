"""What ``aio.Database`` has to be worth, judged on the medians of the repeats.

A bar is the least that a ratio to aiosqlite may be (as many times better).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import Drawing, Line, number, spread_of
from oxlite.bench.verdict import judged
from oxlite.bench.workloads.tasks.figures import DELAY_P95, P99, RATE

WORDS = {"cursor": "a cursor", "fetchall": "execute_fetchall"}
WHAT = {RATE: "calls/s", P99: "shorter p99", DELAY_P95: "shorter delay of the loop, p95"}


@dataclass(frozen=True)
class Bar:
    """A bar.

    Attributes:
        operation: of both rows.
        tasks: of both rows.
        call: how aiosqlite is called.
        limit: how many times better than it, at least.
        metric: in what.
    """

    operation: str
    tasks: str
    call: str
    limit: float
    metric: Metric = RATE

    def beyond(self, value: float) -> bool:
        """Whether ``value`` is too little."""
        return value < self.limit

    def title(self) -> str:
        """The bar for a reader."""
        tasks = "1 task" if self.tasks == "1" else f"{self.tasks} tasks"
        return f"{self.operation}, {tasks}: {WHAT[self.metric]} than by {WORDS[self.call]}"

    def found(self, result: Result, row: Row) -> Summary | None:
        """The paired ratios, if both rows were measured."""
        peer = replace(row.scenario, driver="aiosqlite", build="own", call=self.call)
        return result.improvement(row, self.metric, peer.label)


BARS = (
    *(
        Bar("read", tasks, "cursor", limit)
        for tasks, limit in (("1", 4.0), ("16", 12.0), ("64", 15.0))
    ),
    *(
        Bar("read", tasks, "fetchall", limit)
        for tasks, limit in (("1", 1.5), ("16", 5.0), ("64", 7.0))
    ),
    *(
        Bar("insert", tasks, "cursor", limit)
        for tasks, limit in (("1", 1.0), ("16", 7.0), ("64", 20.0))
    ),
    *(
        Bar(operation, tasks, "cursor", 1.0, P99)
        for operation in ("read", "insert")
        for tasks in ("1", "16", "64")
    ),
    *(Bar("read", tasks, "fetchall", 1.0, P99) for tasks in ("1", "16", "64")),
    *(Bar("read", "64", call, 1.0, DELAY_P95) for call in ("cursor", "fetchall")),
)


class BarsTable:
    """Every bar of which both rows are there."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        lines = []
        for bar in BARS:
            for row in result.rows:
                scenario = row.scenario
                if scenario.call != "database" or scenario.tasks != bar.tasks:
                    continue
                if scenario.operation != bar.operation:
                    continue
                found = bar.found(result, row)
                if found is not None:
                    cells = (f"≥ {number(bar.limit)}", spread_of(found), judged(bar, found))
                    lines.append(Line(bar.title(), cells))
        if not lines:
            return []
        headings = ("bar", "times", "verdict")
        return [Drawing("aio.Database against aiosqlite", "claim", headings, lines)]
