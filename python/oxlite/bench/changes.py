"""Two runs of the same workload: which rows differ by more than their noise.

The runs may be compared only if they were made under equal conditions (see
:mod:`oxlite.bench.conditions`). What differs is named.

A row is judged by the figures of its repeats and, where both runs have a row of the same baseline
beside it that is no row of Oxlite's, by the paired ratios to that too. A machine that has become
slower changes figures and not ratios; a peer that has changes ratios and not figures. So a row has
changed when both say so:

* a permutation test of the logarithms (see :mod:`oxlite.bench.permutation`): how often would chance
  alone divide the rounds of both runs into two groups of which *any* judged row differs as much? So
  the probability of calling any of two identical runs' rows different is at most ``alpha``, and
  more rows do not ask for more repeats;
* the medians differ by more than ``threshold``.

Rows of Oxlite's are judged, if there are any; those of its peers stand beside them in both runs.
One that fails now, wholly or in more than a few of its operations, or that is gone, is worse.

Invariants: figures come from samples, never from stored summaries; the same files give the same
verdict; a row with too few repeats for any verdict is said to have, not called the same; what is
not compared is named with the reason; failing fast is not being fast.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oxlite.bench import permutation
from oxlite.bench.conditions import SUBJECT, common_rows, differences, subject
from oxlite.bench.errors import UsageError
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import noise, paired, times_better
from oxlite.bench.layout import ABSENT, Drawing, Line, number
from oxlite.bench.workloads.catalogue import WORKLOADS

ALPHA = 0.05
THRESHOLD = 0.03

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "no difference", "too few repeats"


class UnlikeError(UsageError):
    """Two runs were not made under equal conditions."""


@dataclass(frozen=True)
class Change:
    """A row in both runs.

    Attributes:
        label: of the row.
        metric: what is compared.
        before: the median of the old run.
        after: that of the new one.
        times: how many times better the new one is; below 1 is worse.
        probability: that chance makes any judged row differ so much; ``None`` with too few
            repeats.
        verdict: one of :data:`BETTER`, :data:`WORSE`, :data:`SAME`, :data:`UNKNOWN`.
        noise: the larger one of both runs: changes below it are hardly found.
    """

    label: str
    metric: Metric
    before: float
    after: float
    times: float
    probability: float | None
    verdict: str
    noise: float


@dataclass(frozen=True)
class Verdicts:
    """What a comparison has found.

    Attributes:
        changes: for each row and metric that can be compared.
        missing: why others are not, by their names.
        broken: the names of those among them that worked before, which is worse.
        unlike: in which conditions they differ, if they were compared all the same.
        subject: what of Oxlite itself differs, which is no reason not to compare.
        remarks: sentences the reader should know.
        alpha: as asked for.
    """

    changes: Sequence[Change]
    missing: Mapping[str, str]
    broken: Sequence[str] = ()
    unlike: Sequence[str] = ()
    subject: Sequence[str] = ()
    remarks: Sequence[str] = ()
    alpha: float = ALPHA

    def worse(self) -> bool:
        """Whether anything has become worse, fails that did not, or is gone."""
        return bool(self.broken) or any(change.verdict == WORSE for change in self.changes)

    def require_judged(self) -> None:
        """Refuse a comparison that has judged nothing, which is no verdict of "the same".

        Raises:
            UsageError: every row has too few repeats; the message says how many it takes.
        """
        if all(change.verdict == UNKNOWN for change in self.changes):
            needed = permutation.repeats_needed(self.alpha)
            raise UsageError(
                f"no row can be judged, for want of repeats: it takes {needed} in each run "
                f"(--repeats {needed}, and a --time-budget that allows them)"
            )

    def drawing(self) -> Drawing:
        """A table of all changes."""
        lines = [
            Line(
                f"{one.label}: {one.metric.title}",
                (
                    number(one.before),
                    number(one.after),
                    number(one.times),
                    f"{one.noise:.1%}",
                    ABSENT if one.probability is None else f"{one.probability:.3f}",
                    one.verdict,
                ),
            )
            for one in self.changes
        ]
        headings = ("old", "new", "times better", "noise", "p", "verdict")
        return Drawing("Medians of the old and the new run", "row", headings, lines)


def compare(
    old: Result,
    new: Result,
    *,
    metrics: Sequence[str] = (),
    alpha: float = ALPHA,
    threshold: float = THRESHOLD,
    anyway: bool = False,
) -> Verdicts:
    """Compare two runs.

    Args:
        old: the run before.
        new: the run after.
        metrics: names of those to compare; without any the workload's first.
        alpha: the probability of calling identical runs different.
        threshold: smaller changes are none, in parts of the old median.
        anyway: compare runs of unlike conditions too.

    Raises:
        UnlikeError: they were not made under equal conditions; the message says which.
        UsageError: they are of different workloads, have no row in common, or lack the metric.
    """
    if old.workload != new.workload:
        raise UsageError(f"the runs are of different workloads: {old.workload} and {new.workload}")
    unlike = differences(old, new)
    if unlike and not anyway:
        raise UnlikeError(
            f"the runs cannot be compared, for they differ in {'; '.join(unlike)} "
            f"(--anyway compares them all the same)"
        )
    chosen = _metrics(old.workload, metrics)
    common = common_rows(old, new)
    # Peers are what Oxlite's rows are measured against.
    ours = [pair for pair in common if pair[0].scenario.driver == SUBJECT]
    missing, broken = _missing(old, new)
    found = []
    for before, after in ours or common:
        _compare_failures(before, after, missing, broken)
        for metric in chosen:
            pair = _Pair(old, new, before, after, metric)
            reason = pair.incomparable()
            if reason is None:
                found.append(pair)
            elif reason:
                missing[pair.name] = reason
                if metric.name in after.failed_figures():
                    broken.append(pair.name)
    if not found and not broken:
        why = "".join(f"; {name}: {reason}" for name, reason in missing.items())
        raise UsageError(f"the runs have no row in common that can be compared{why}")
    return Verdicts(
        _judged(found, alpha, threshold),
        missing,
        list(dict.fromkeys(broken)),
        unlike,
        subject(old, new),
        _remarks(old, new),
        alpha,
    )


class _Pair:
    """One metric of one row in both runs."""

    def __init__(self, old: Result, new: Result, before: Row, after: Row, metric: Metric) -> None:
        self._metric = metric
        self._rows = before, after
        self._label = before.label
        self.name = f"{before.label}: {metric.title}"
        self.figures = permutation.Groups(before.figures(metric.name), after.figures(metric.name))
        self.ratios = _ratios(old, before, new, after, metric)

    def incomparable(self) -> str | None:
        """Why not to compare it, in words; none if neither run has it; ``None`` if it can be."""
        before, after = self.figures.known()
        reason = None
        if not before and not after:
            reason = ""
        elif not after:
            failed = self._rows[1].failed_figures().get(self._metric.name)
            reason = "only in the old run" if failed is None else f"fails now: {failed}"
        elif not before:
            reason = "only in the new run"
        elif self._metric.of_all_work and not all(row.did_its_work() for row in self._rows):
            reason = "it is of all the work, which was not done"
        elif min(*before, *after) <= 0:
            reason = "it has zeros, of which there are no ratios"
        return reason

    def judgeable(self, alpha: float) -> bool:
        """Whether there are repeats enough for any verdict."""
        every = [self.figures, *([self.ratios] if self.ratios is not None else [])]
        # With too few, not even the most extreme division would be rare.
        return all(groups.rarest() <= alpha for groups in every)

    def change(self, probability: float | None, alpha: float, threshold: float) -> Change:
        known = self.figures.known()
        before, after = (statistics.median(values) for values in known)
        times = times_better(after, before, self._metric.better)
        every = [times]
        if self.ratios is not None:
            # A ratio is the better the higher, whichever way its metric counts.
            first, second = (statistics.median(values) for values in self.ratios.known())
            every.append(second / first)
        verdict = SAME
        if probability is None:
            verdict = UNKNOWN
        elif probability <= alpha:
            if all(one > 1 + threshold for one in every):
                verdict = BETTER
            elif all(one < 1 / (1 + threshold) for one in every):
                verdict = WORSE
        scatter = max(noise(values) or 0.0 for values in known)
        return Change(
            self._label, self._metric, before, after, times, probability, verdict, scatter
        )


def _judged(pairs: Sequence[_Pair], alpha: float, threshold: float) -> list[Change]:
    """The verdicts of all pairs, each with the larger probability of figures and ratios."""
    able = [pair for pair in pairs if pair.judgeable(alpha)]
    beside = [(pair, pair.ratios) for pair in able if pair.ratios is not None]
    probabilities = dict(
        zip(able, permutation.together([one.figures for one in able]), strict=True)
    )
    others = permutation.together([ratios for _, ratios in beside])
    for (pair, _), other in zip(beside, others, strict=True):
        probabilities[pair] = max(probabilities[pair], other)
    return [pair.change(probabilities.get(pair), alpha, threshold) for pair in pairs]


def _compare_failures(before: Row, after: Row, missing: dict[str, str], broken: list[str]) -> None:
    """Name a row of which operations failed; it is broken if they did not before."""
    if not after.did_its_work():
        if before.did_its_work():
            missing[after.label] = f"fails now: {_failed(after)}"
            broken.append(after.label)
        else:
            missing[after.label] = f"fails: {_failed(after)}"
    elif not before.did_its_work():
        missing[after.label] = f"failed in the old run: {_failed(before)}"


def _failed(row: Row) -> str:
    failed, asked = sum(row.errors().values()), sum(sample.asked for sample in row.samples)
    part = f" of {asked:,}" if asked else ""
    return f"{failed:,}{part} operations"


def _remarks(old: Result, new: Result) -> list[str]:
    found = [
        f"the {name} run was interrupted: it is a part, of {result.repeats} repeats"
        for name, result in (("old", old), ("new", new))
        if result.interrupted
    ]
    if old.plan.warm_ups != new.plan.warm_ups:
        found.append(
            f"the old run had {old.plan.warm_ups} warm-up rounds, the new one {new.plan.warm_ups}"
        )
    return found


def _missing(old: Result, new: Result) -> tuple[dict[str, str], list[str]]:
    """Why rows are not compared, by label, and the labels of those that have broken since."""
    found, broken = {}, []
    olds, news = ({row.label: row for row in result.rows} for result in (old, new))
    for label in dict.fromkeys([*olds, *news]):
        before, after = olds.get(label), news.get(label)
        worked = before is not None and before.failure is None
        if after is not None and after.failure is not None:
            found[label] = f"{'fails now' if worked else 'fails'}: {after.failure}"
            broken += [label] if worked and after.scenario.driver == SUBJECT else []
        elif before is None:
            found[label] = "only in the new run"
        elif after is None:
            found[label] = "only in the old run"
            broken += [label] if worked and before.scenario.driver == SUBJECT else []
        elif before.failure is not None:
            found[label] = f"failed in the old run: {before.failure}"
    return found, broken


def _metrics(workload: str, names: Sequence[str]) -> list[Metric]:
    known = WORKLOADS.get(workload)
    if names:
        return [known.metric(name) for name in dict.fromkeys(names)]
    return list(known.first_metrics())


def _ratios(
    old: Result, before: Row, new: Result, after: Row, metric: Metric
) -> permutation.Groups | None:
    """The paired ratios to the first peer that both runs have, if the row is Oxlite's."""
    if before.scenario.driver != SUBJECT:
        return None
    for label in old.compared_with(before):
        bases = old.row(label), new.row(label)
        if bases[0] is None or bases[1] is None or bases[0].scenario.driver == SUBJECT:
            continue
        first, second = (
            _by_round(row, base, metric) for row, base in ((before, bases[0]), (after, bases[1]))
        )
        found = permutation.Groups(first, second)
        if all(found.known()):
            return found
    return None


def _by_round(row: Row, base: Row, metric: Metric) -> list[float | None]:
    """How many times better than ``base`` in each round; ``None`` where it cannot be said."""
    if metric.of_all_work and not (row.did_its_work() and base.did_its_work()):
        return []
    return paired(row.figures(metric.name), base.figures(metric.name), metric.better)
