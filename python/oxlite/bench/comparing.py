"""Two runs of the same workload: which rows differ by more than their noise.

The runs may be compared only if all else is equal: the workload, its parameters and work, the
machine, the Python, the file system, and the versions of every driver but Oxlite, which is what
changes from run to run. What differs is named.

A row is judged by the figures of its repeats and, where both runs have a row of the same baseline
beside it that is no row of Oxlite's, by the paired ratios to that too. A machine that has become
slower changes figures and not ratios; a peer that has changes ratios and not figures. So a row has
changed when both say so:

* a permutation test of the logarithms (see :mod:`oxlite.bench.permuting`): how often would chance
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
from typing import Any

from oxlite.bench import permuting
from oxlite.bench.errors import UsageError
from oxlite.bench.harness.model import JsonObject, Metric, Result, Row
from oxlite.bench.harness.statistics import noise
from oxlite.bench.layout import ABSENT, Drawing, Line, number
from oxlite.bench.report.charts import FEW_METRICS
from oxlite.bench.workloads.catalogue import WORKLOADS

ALPHA = 0.05
THRESHOLD = 0.03
SUBJECT = "oxlite"

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "no difference", "too few repeats"

TRANSIENT = frozenset({"data_version", "freelist_count", "page_count"})
"""Pragmas that count what has happened, so that no two runs agree on them."""


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
            needed = permuting.repeats_needed(self.alpha)
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
    common = _common(old, new)
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
        self.figures = permuting.Groups(before.figures(metric.name), after.figures(metric.name))
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
        times = _times(before, after, self._metric)
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
    probabilities = dict(zip(able, permuting.together([one.figures for one in able]), strict=True))
    others = permuting.together([ratios for _, ratios in beside])
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


def differences(old: Result, new: Result) -> list[str]:
    """In which conditions two runs differ, in words; nothing about Oxlite itself."""
    found = [
        f"parameter {name} ({before} and {after})"
        for name, before, after in _unequal(plain(old.parameters), plain(new.parameters))
    ]
    if not found and old.work_digest != new.work_digest:
        found.append("the work (its digests)")
    facts, others = (conditions(result) for result in (old, new))
    found += [f"{name} ({before} and {after})" for name, before, after in _unequal(facts, others)]
    for before, after in _common(old, new):
        found += _row_differences(before, after)
    return list(dict.fromkeys(found))


def plain(parameters: Mapping[str, Any]) -> JsonObject:
    """Parameters as they are read back from a file: JSON knows no tuples."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in parameters.items()}


def _unequal(before: JsonObject, after: JsonObject) -> list[tuple[str, Any, Any]]:
    names = dict.fromkeys([*before, *after])
    return [
        (name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def conditions(result: Result) -> JsonObject:
    """What a run was made on, by names for a reader."""
    for row in result.rows:
        if row.environment is not None:
            machine = row.environment["machine"]
            cpu = machine["cpu"]
            files, system = machine["file_system"], machine["operating_system"]
            return {
                "processor": cpu["model"],
                "processors": cpu["usable_cores"],
                "memory": machine["memory_total_bytes"],
                "kernel": f"{system['name']} {system['kernel']}",
                "file system": files["type"],
                "mount options": ",".join(files["options"]),
            }
    return {}


def _row_differences(before: Row, after: Row) -> list[str]:
    first, second = before.environment or {}, after.environment or {}
    if not first or not second:
        return []
    found = []
    pythons = [
        (one["machine"]["python"]["version"], one["machine"]["python"]["gil_enabled"])
        for one in (first, second)
    ]
    if pythons[0] != pythons[1]:
        found.append(f"Python ({pythons[0][0]} and {pythons[1][0]})")
    driver = before.scenario.driver
    if driver != SUBJECT:
        versions = [_versions(row) for row in (before, after)]
        found += [f"{driver}'s {n} ({a} and {b})" for n, a, b in _unequal(versions[0], versions[1])]
    pragmas = [_pragmas(one) for one in (first, second)]
    found += [
        f"PRAGMA {name} of {before.label} ({a} and {b})"
        for name, a, b in _unequal(pragmas[0], pragmas[1])
    ]
    return found


def _pragmas(environment: JsonObject) -> JsonObject:
    pragmas = (environment.get("connection") or {}).get("pragmas") or {}
    return {name: value for name, value in pragmas.items() if name not in TRANSIENT}


def _versions(row: Row) -> JsonObject:
    """The driver's version and its SQLite's, as the samples say."""
    return dict(row.samples[0].detail.get("versions") or {}) if row.samples else {}


def subject(old: Result, new: Result) -> list[str]:
    """What of Oxlite itself differs, in words."""
    found: dict[str, None] = {}
    for before, after in _common(old, new):
        if before.scenario.driver == SUBJECT:
            for name, a, b in _unequal(_versions(before), _versions(after)):
                found[f"{SUBJECT}'s {name}: {a}, then {b}"] = None
            revisions = [_revision(row) for row in (before, after)]
            if revisions[0] != revisions[1]:
                found[f"revision: {revisions[0]}, then {revisions[1]}"] = None
    return list(found)


def _revision(row: Row) -> str:
    git = ((row.environment or {}).get("machine") or {}).get("git") or {}
    revision = str(git.get("revision") or "unknown")[:12]
    return f"{revision} with changes" if git.get("dirty") else revision


def _common(old: Result, new: Result) -> list[tuple[Row, Row]]:
    pairs = ((row, new.row(row.label)) for row in old.rows if row.failure is None)
    return [(before, after) for before, after in pairs if after is not None]


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
    # Of a workload with many there is no first: all are alike.
    return list(known.metrics[: None if len(known.metrics) > FEW_METRICS else 1])


def _ratios(
    old: Result, before: Row, new: Result, after: Row, metric: Metric
) -> permuting.Groups | None:
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
        found = permuting.Groups(first, second)
        if all(found.known()):
            return found
    return None


def _by_round(row: Row, base: Row, metric: Metric) -> list[float | None]:
    """How many times better than ``base`` in each round; ``None`` where it cannot be said."""
    if metric.of_all_work and not (row.did_its_work() and base.did_its_work()):
        return []
    pairs = zip(row.figures(metric.name), base.figures(metric.name), strict=False)
    return [_times(its, mine, metric) if mine and its else None for mine, its in pairs]


def _times(before: float, after: float, metric: Metric) -> float:
    return before / after if metric.better == "lower" else after / before
