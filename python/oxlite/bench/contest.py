"""What a workload comes to: Oxlite's default beside the best that tuning alone gives, and stock.

A workload declares one contest. Its rows are those of the result in which the most are at work,
since that is where it matters; the best tuned peer is the one with the best median there.

Invariants: Oxlite is never compared with itself; below three repeats, or where rows failed their
operations, nothing is better or worse; a loss is said in the same words as a gain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from oxlite.bench.claims import beside
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary

FEWEST_REPEATS = 3
"""What a headline rests on at least."""

Changes = Mapping[str, str]
Verdict = Literal["better", "worse", "alike", "unknown"]


@dataclass(frozen=True)
class Contest:
    """Which rows compete, and in what.

    Attributes:
        metrics: the first is the one of the picture; of several that are counted, all count alike.
        unit: what stands behind a figure of it, in a sentence; of those that are counted, what
            they are.
        ours: the axes' values of Oxlite's default.
        tuned: what is different in each peer that was tuned; the best of them is the one compared.
        stock: what is different in what one has without tuning, if that was measured.
        counted: whether it is in how many of the metrics one is better, and not by how much in the
            first.
        tail: the kind of latency whose 99th percentile is told too.
    """

    metrics: Sequence[Metric]
    unit: str
    ours: Changes
    tuned: Sequence[Changes]
    stock: Changes | None = None
    counted: bool = False
    tail: str = ""

    @property
    def metric(self) -> Metric:
        """The one of the picture."""
        return self.metrics[0]

    def decided(self, result: Result) -> "list[Finding]":
        """What a result says: one finding for each combination of what is not counted.

        Mixes, mappers and operations each have their own, so that a loss in one is not hidden by
        a gain in another. None if the result lacks ours, or every peer.
        """
        largest: dict[frozenset[tuple[str, str]], Row] = {}
        for row in result.rows:
            if self.ours.items() <= row.scenario.items():
                kind = frozenset(one for one in row.scenario.items() if not one[1].isdigit())
                if kind not in largest or at_work(row) > at_work(largest[kind]):
                    largest[kind] = row
        made = (self._finding(result, row) for row in largest.values())
        found = [one for one in made if one is not None]
        return [replace(one, kind=_kind(one, found)) for one in found]

    def _finding(self, result: Result, row: Row) -> "Finding | None":
        peers = [
            other
            for changes in self.tuned
            if (other := beside(result, row, changes)) is not None and other is not row
        ]
        best = _best(peers, self.metric)
        if best is None:
            return None
        stock = None if self.stock is None else beside(result, row, self.stock)
        # Failing is fast, and leaves the others more of the machine.
        may_compare = row.did_its_work() and best.did_its_work()
        ratios = {
            one: ratio
            for one in (self.metrics if self.counted else (self.metric,))
            if may_compare and (ratio := result.improvement(row, one, best.label)) is not None
        }
        return Finding(self, result, row, best, stock, ratios)


@dataclass(frozen=True)
class Finding:
    """What a result says about a contest.

    Attributes:
        ours: the row of Oxlite's default, which may have failed.
        tuned: that of the best tuned peer.
        stock: that without tuning.
        ratios: how many times better ours is than the tuned one, by metric.
        kind: what tells it from the others of its result: ``django``; empty if it is the only one.
    """

    contest: Contest
    result: Result
    ours: Row
    tuned: Row
    stock: Row | None
    ratios: Mapping[Metric, Summary] = field(default_factory=dict)
    kind: str = ""

    def rows(self) -> dict[str, Row]:
        """The rows by what they are, from stock to ours."""
        known = {"stock": self.stock, "tuned": self.tuned, "Oxlite": self.ours}
        return {name: row for name, row in known.items() if row is not None}

    def figures(self) -> dict[str, tuple[Row, Summary]]:
        """Those of the rows that have a figure, with that of the picture."""
        name = self.contest.metric.name
        return {
            called: (row, figure)
            for called, row in self.rows().items()
            if (figure := row.summary(name)) is not None
        }

    def may_judge(self) -> bool:
        """Whether some ratio has repeats enough."""
        return any(ratio.count >= FEWEST_REPEATS for ratio in self.ratios.values())

    def verdict(self, metric: Metric) -> Verdict:
        """What ours is, by the whole interval of the ratio."""
        ratio = self.ratios.get(metric)
        if ratio is None or ratio.count < FEWEST_REPEATS:
            return "unknown"
        if ratio.interval.low > 1:
            return "better"
        return "worse" if ratio.interval.high < 1 else "alike"

    def tally(self) -> dict[Verdict, list[Metric]]:
        """The metrics by what ours is in them."""
        found: dict[Verdict, list[Metric]] = {"better": [], "alike": [], "worse": [], "unknown": []}
        for metric in self.ratios:
            found[self.verdict(metric)].append(metric)
        return found


def _kind(finding: Finding, findings: Sequence[Finding]) -> str:
    """What tells a finding from the others of its result, counts apart."""
    ours = finding.ours.scenario
    axes = {
        axis
        for axis, value in ours.items()
        if not value.isdigit() and any(one.ours.scenario.get(axis) != value for one in findings)
    }
    return ours.label_of(axes)


def failed_part(row: Row) -> float | None:
    """Which part of a row's operations failed; ``None`` where they cannot singly."""
    asked = sum(sample.asked for sample in row.samples)
    return sum(row.errors().values()) / asked if asked else None


def at_work(row: Row) -> int:
    """How many are at work in it, all counts together."""
    return prod(count or 1 for count in row.scenario.counts())


def _best(rows: Sequence[Row], metric: Metric) -> Row | None:
    """The row with the best median of those that did their work, if any did."""
    able = [row for row in rows if row.did_its_work()] or list(rows)
    known = {
        row.label: found.median for row in able if (found := row.summary(metric.name)) is not None
    }
    if not known:
        return None
    choose = min if metric.better == "lower" else max
    best = choose(known, key=lambda label: known[label])
    return next(row for row in able if row.label == best)
