"""Claims: what a figure is said to be, as data beside the workload that measures it.

A :class:`Claim` is a bar of ours, judged by the median of the repeats; where its interval reaches
to the other side of the bar, that is said, and one repeat decides nothing. A :class:`Published`
claim is somebody else's, of other machines, languages and versions; only ratios can agree with it.

Invariants: a published figure is as its source prints it; a claim of which the rows were not
measured is neither held nor missed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness import statistics
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import ABSENT, Drawing, Line, number, spread_of
from oxlite.bench.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Claim:
    """The least, or the most, that a figure or its ratio to another row's may be.

    Attributes:
        title: what is claimed, in words.
        metric: of which figure.
        limit: the bar.
        rows: the axes' values of the rows that it is of.
        against: what is different in the row that each is compared with: how many times better
            it must be, or at most as much. ``None``: the figure itself is judged.
        at_least: whether the limit is the least, else it is the most.
        named: the axes whose values stand before the title.
        only: of those rows, the ones that it is of.
        pooled: the kind of latency whose 99th percentile of all repeats together is taken where
            not every repeat has enough samples for one of its own.
    """

    title: str
    metric: Metric
    limit: float
    rows: Mapping[str, str]
    against: Mapping[str, str] | None = None
    at_least: bool = True
    named: Sequence[str] = ()
    only: Callable[[Scenario], bool] = lambda _: True
    pooled: str = ""

    def lines(self, result: Result) -> Iterator[Line]:
        """A line for each row that it is of, if what that is compared with was measured too."""
        for row in result.rows:
            if not (self.rows.items() <= row.scenario.items() and self.only(row.scenario)):
                continue
            other = None if self.against is None else beside(result, row, self.against)
            if other is row or (self.against is not None and other is None):
                continue
            found, repeats = self._found(result, row, other)
            name = row.scenario.label_of(self.named)
            title = f"{name}: {self.title}" if name else self.title
            bar = f"{'≥' if self.at_least else '≤'} {number(self.limit)}"
            measured = ABSENT if found is None else spread_of(found)
            if found is not None and repeats > found.count:
                measured = f"{number(found.median)} (repeats together)"
            yield Line(title, (bar, measured, self.judged(found, repeats)))

    def judged(self, found: Summary | None, repeats: int) -> str:
        """``held``, or ``missed by`` so much of the bar, or that it is not known.

        Args:
            found: what was measured.
            repeats: how many repeats that is of.
        """
        if found is None:
            return "not known"
        if repeats == 1:
            return "not known: one repeat"
        missed, low, high = (
            value < self.limit if self.at_least else value > self.limit
            for value in (found.median, found.interval.low, found.interval.high)
        )
        by = f" by {abs(found.median / self.limit - 1):.0%}" if self.limit else ""
        verdict = f"missed{by}" if missed else "held"
        return f"{verdict}, with the bar inside the interval" if low != high else verdict

    def _found(self, result: Result, row: Row, other: Row | None) -> tuple[Summary | None, int]:
        """What was measured, and of how many repeats."""
        if other is None:
            found = row.summary(self.metric.name)
        elif self.at_least:
            found = result.improvement(row, self.metric, other.label)
        else:
            times = result.ratios(row, self.metric, other.label)
            as_much = times if self.metric.better == "higher" else [1 / one for one in times]
            found = statistics.summarise(as_much)
        if self.pooled and other is not None and (found is None or found.count < result.repeats):
            mine, its = (one.percentile_ns(self.pooled, 99.0) for one in (row, other))
            found = statistics.summarise([its / mine]) if mine and its else None
            return found, result.repeats
        return found, 0 if found is None else found.count


@dataclass(frozen=True)
class NoneFail(Claim):
    """That no operation fails."""

    def lines(self, result: Result) -> Iterator[Line]:
        """See the base class."""
        for row in result.rows:
            if not (self.rows.items() <= row.scenario.items() and self.only(row.scenario)):
                continue
            title = f"{row.scenario.label_of(self.named)}: {self.title}"
            if row.failure is not None:
                yield Line(title, ("0", ABSENT, "not known"))
                continue
            failed, asked = sum(row.errors().values()), sum(one.asked for one in row.samples)
            verdict = "missed" if failed else "held"
            yield Line(title, ("0", f"{failed:,} of {asked:,}", verdict))


@dataclass(frozen=True)
class ClaimsTable:
    """Every claim of which the rows are there."""

    title: str
    claims: Sequence[Claim]

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        lines = [line for claim in self.claims for line in claim.lines(result)]
        if not lines:
            return []
        return [Drawing(self.title, "claim", ("bar", "measured", "verdict"), lines)]


@dataclass(frozen=True)
class Published:
    """A published claim that a ratio of two rows answers.

    Attributes:
        claim: what is better than what, in words.
        figure: the published figures, as printed.
        ratio: how many times better that is, computed from them; ``None`` where the print gives
            no such number.
        source: whose they are.
        metric: the name of the one that is compared; of latencies of all repeats together, their
            kind and percentile.
        rows: the axes' values of the rows that answer it.
        against: what is different in the row that each is compared with.
    """

    claim: str
    figure: str
    ratio: float | None
    source: str
    metric: str | tuple[str, float]
    rows: Mapping[str, str] = field(default_factory=dict)
    against: Mapping[str, str] = field(default_factory=dict)

    def measured(self, result: Result, metric: Callable[[str], Metric]) -> "list[Measured]":
        """What a result says about it: one answer for each row that has both sides.

        Args:
            result: of the workload that has the claim.
            metric: gives a metric of it by its name.
        """
        found = []
        for row in result.rows:
            if not self.rows.items() <= row.scenario.items():
                continue
            other = beside(result, row, self.against)
            if other is None or other is row:
                continue
            times = self._times(result, row, other, metric)
            if times is not None:
                found.append(Measured(row.label, other.label, times))
        return found

    def _times(
        self, result: Result, row: Row, other: Row, metric: Callable[[str], Metric]
    ) -> Summary | float | None:
        if isinstance(self.metric, str):
            return result.improvement(row, metric(self.metric), other.label)
        mine, its = (one.percentile_ns(*self.metric) for one in (row, other))
        return its / mine if mine and its else None


@dataclass(frozen=True)
class Measured:
    """What one row answers to a published claim.

    Attributes:
        row: its label.
        against: that of the other.
        times: the paired ratios, or that of latencies of all repeats together.
    """

    row: str
    against: str
    times: Summary | float

    def __str__(self) -> str:
        """How many times better, with the spread if there is one."""
        if isinstance(self.times, float):
            return f"{number(self.times)} (all repeats together)"
        return spread_of(self.times)


def beside(result: Result, row: Row, changes: Mapping[str, str]) -> Row | None:
    """The row that differs from another one by the changes alone, if it was measured."""
    wanted = {**row.scenario, **changes}
    if "driver" in changes:
        wanted["build"] = DRIVERS.get(changes["driver"]).default_build
    # Where it has not an axis, its value is no difference: PostgreSQL has no journal.
    for other in result.rows:
        if other.failure is None and other.scenario.items() <= wanted.items():
            return other
    return None
