"""The sum of all operations in each scenario, beside what was published.

Published are four scenarios of SQLite, {stock, tuned} settings times {stock, tuned} build, and
PostgreSQL with its defaults, on another machine and another mapper. What can be compared are the
ratios to the first: the same driver on the stock build with stock settings. The build of those
figures is the one called ``seed`` here; the project's own is ``tuned``.
"""

from collections.abc import Mapping, Sequence

from oxlite.bench.claims import Published
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import ABSENT, Drawing, Line, brackets, number, spread_of
from oxlite.bench.workloads.orm.figures import SUM, ratio

MS_PER_SECOND = 1e3
STOCK = ("oxlite", "stock", "rollback", "stock")

Place = tuple[str, str | None, str | None, str | None]
"""The driver, the build, the journal and the pragmas of a scenario."""

SECONDS: Mapping[Place, float] = {
    STOCK: 13.59,
    ("oxlite", "stock", "wal", "tuned"): 6.79,
    ("oxlite", "seed", "rollback", "stock"): 13.22,
    ("oxlite", "seed", "wal", "tuned"): 6.55,
    ("postgresql", "own", None, None): 11.46,
}
"""The published sums."""

_SOURCE = "jeremyevans/simple_orm_benchmark with Rails' settings for SQLite, on an M1 Max"
_STOCK, _PRAGMAS, _BUILD, _BOTH, _SERVER = SECONDS.values()

PUBLISHED = (
    Published(
        "the four tuned pragmas against SQLite's defaults, all operations",
        f"{_PRAGMAS} s against {_STOCK} s", _STOCK / _PRAGMAS, _SOURCE,
        SUM.name, {"pragmas": "tuned"}, {"pragmas": "stock", "journal": "rollback"},
    ),
    Published(
        "compile-time options against the stock build, all operations",
        f"{_BUILD} s against {_STOCK} s", _STOCK / _BUILD, _SOURCE,
        SUM.name, {"build": "seed"}, {"build": "stock"},
    ),
    Published(
        "tuned SQLite against PostgreSQL 14 with its defaults, all operations",
        f"{_BOTH} s against {_SERVER} s", _SERVER / _BOTH, _SOURCE,
        SUM.name, {"pragmas": "tuned"}, {"driver": "postgresql"},
    ),
)  # fmt: skip


class SumsTable:
    """A line for each row of a mapper that was measured on the stock build with stock settings."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        lines = []
        confidences = set()
        stock = {row.scenario.get("mapper"): row for row in result.rows if _place(row) == STOCK}
        for row in result.rows:
            base = stock.get(row.scenario.get("mapper"))
            if base is None:
                continue
            summary = row.summary(SUM.name)
            found = None if row is base else ratio(result, row, SUM, base)
            if found is not None:
                confidences.add(found.interval.confidence)
            seconds = SECONDS.get(_place(row))
            cells = (
                ABSENT if summary is None else number(summary.median / MS_PER_SECOND),
                "1" if row is base else ABSENT if found is None else spread_of(found),
                ABSENT if seconds is None else number(SECONDS[STOCK] / seconds),
                ABSENT if seconds is None else number(seconds),
            )
            lines.append(Line(row.label, cells, row))
        if not lines:
            return []
        return [
            Drawing(
                "All operations together; times faster than the stock build with stock settings"
                f"{brackets(confidences)}; and what was published, on another machine",
                "scenario",
                ["seconds", "times faster", "published", "published seconds"],
                lines,
            )
        ]


def _place(row: Row) -> Place:
    scenario = row.scenario
    return scenario.driver, scenario.get("build"), scenario.get("journal"), scenario.get("pragmas")
