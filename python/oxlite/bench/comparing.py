"""Two runs of the same workload: which rows differ by more than their noise.

The runs may be compared only if all else is equal: the workload, its parameters and work, the
machine, the Python, the file system, and the versions of every driver but Oxlite, which is what
changes from run to run. What differs is named.

A row is judged by the figures of its repeats and, where both runs have a row of the same baseline
beside it that is no row of Oxlite's, by the paired ratios to that too. A machine that has become
slower changes figures and not ratios; a peer that has changes ratios and not figures. So a row has
changed when both say so:

* a permutation test of the logarithms (exact up to :data:`EXACT` partitions, else of seeded random
  ones): how often would chance alone divide the repeats of both runs into two groups as far apart?
  Corrected by Holm for the number of rows that are judged, so that the probability of calling any
  of two identical runs' rows different is at most ``alpha``;
* the medians differ by more than ``threshold``.

Rows of Oxlite's are judged, if there are any; those of its peers stand beside them in both runs.

Invariants: figures come from samples, never from stored summaries; the same files give the same
verdict; a row with too few repeats for any verdict is said to have, not called the same.
"""

import itertools
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oxlite.bench.errors import UsageError
from oxlite.bench.harness.model import JsonObject, Metric, Result, Row
from oxlite.bench.harness.statistics import improvements, noise
from oxlite.bench.layout import ABSENT, Drawing, Line, number
from oxlite.bench.report.charts import FEW_METRICS, baselines_of
from oxlite.bench.workloads.catalogue import WORKLOADS

ALPHA = 0.05
THRESHOLD = 0.03
EXACT = 20_000
DRAWN = 20_000
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
        probability: of such a difference by chance, corrected; ``None`` with too few repeats.
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
        changes: for each row and metric that both runs have.
        missing: labels of rows that one of the runs lacks, with which one.
        unlike: in which conditions they differ, if they were compared all the same.
        subject: what of Oxlite itself differs, which is no reason not to compare.
    """

    changes: Sequence[Change]
    missing: Mapping[str, str]
    unlike: Sequence[str] = ()
    subject: Sequence[str] = ()

    def worse(self) -> bool:
        """Whether anything has become worse, or fails that did not."""
        failing = any(why.startswith("fails now") for why in self.missing.values())
        return failing or any(change.verdict == WORSE for change in self.changes)

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
    # Peers are what Oxlite's rows are measured against; judging them too would only ask for more
    # repeats, since more tests have to be more certain each.
    ours = [pair for pair in common if pair[0].scenario.driver == SUBJECT]
    pairs = [
        _Pair(old, new, before, after, metric)
        for before, after in ours or common
        for metric in chosen
    ]
    found = [pair for pair in pairs if pair.comparable()]
    if not found:
        raise UsageError("the runs have no row in common that succeeded in both")
    corrected = _holm([pair.probability(alpha / len(found)) for pair in found])
    return Verdicts(
        [pair.change(p, alpha, threshold) for pair, p in zip(found, corrected, strict=True)],
        _missing(old, new),
        unlike,
        _subject(old, new),
    )


class _Pair:
    """One metric of one row in both runs."""

    def __init__(self, old: Result, new: Result, before: Row, after: Row, metric: Metric) -> None:
        self._label = before.label
        self._metric = metric
        self._before = _positive(before.figures(metric.name))
        self._after = _positive(after.figures(metric.name))
        self._ratios = _ratios(old, before, new, after, metric)

    def comparable(self) -> bool:
        return bool(self._before and self._after)

    def probability(self, needed: float) -> float | None:
        """The larger one of figures and ratios; ``None`` if it cannot be as low as ``needed``."""
        sides = [(self._before, self._after), *([self._ratios] if self._ratios else [])]
        # With so few repeats, not even the most extreme division would be rare.
        if any(2 / math.comb(len(a) + len(b), len(a)) > needed for a, b in sides):
            return None
        return max(permutation(a, b) for a, b in sides)

    def change(self, probability: float | None, alpha: float, threshold: float) -> Change:
        before, after = statistics.median(self._before), statistics.median(self._after)
        times = _times(before, after, self._metric)
        every = [times]
        if self._ratios is not None:
            # A ratio is the better the higher, whichever way its metric counts.
            first, second = (statistics.median(values) for values in self._ratios)
            every.append(second / first)
        verdict = SAME
        if probability is None:
            verdict = UNKNOWN
        elif probability <= alpha:
            if all(one > 1 + threshold for one in every):
                verdict = BETTER
            elif all(one < 1 / (1 + threshold) for one in every):
                verdict = WORSE
        scatter = max(noise(values) or 0.0 for values in (self._before, self._after))
        return Change(
            self._label, self._metric, before, after, times, probability, verdict, scatter
        )


def permutation(first: Sequence[float], second: Sequence[float]) -> float:
    """The probability that chance divides positive values into groups as far apart as these.

    Two-sided, on the difference of the means of logarithms.
    """
    logs = [math.log(value) for value in (*first, *second)]
    count, total = len(first), math.fsum(logs)
    others = len(logs) - count

    def apart(chosen: float) -> float:
        return abs(chosen / count - (total - chosen) / others)

    # What is as far apart but for rounding is as far apart.
    found = apart(math.fsum(logs[:count])) * (1 - 1e-9)
    if math.comb(len(logs), count) <= EXACT:
        sums = [math.fsum(part) for part in itertools.combinations(logs, count)]
        return sum(apart(one) >= found for one in sums) / len(sums)
    stream = random.Random(1)
    drawn = (math.fsum(stream.sample(logs, count)) for _ in range(DRAWN))
    return (1 + sum(apart(one) >= found for one in drawn)) / (DRAWN + 1)


def _holm(probabilities: Sequence[float | None]) -> list[float | None]:
    """Holm's correction for several tests at once; those without a probability are none."""
    known = sorted((p, index) for index, p in enumerate(probabilities) if p is not None)
    corrected: list[float | None] = [None] * len(probabilities)
    highest = 0.0
    for place, (p, index) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - place)))
        corrected[index] = highest
    return corrected


def differences(old: Result, new: Result) -> list[str]:
    """In which conditions two runs differ, in words; nothing about Oxlite itself."""
    found = [
        f"parameter {name} ({before} and {after})"
        for name, before, after in _unequal(_plain(old.parameters), _plain(new.parameters))
    ]
    if not found and old.work_digest != new.work_digest:
        found.append("the work (its digests)")
    facts, others = (conditions(result) for result in (old, new))
    found += [f"{name} ({before} and {after})" for name, before, after in _unequal(facts, others)]
    for before, after in _common(old, new):
        found += _row_differences(before, after)
    return list(dict.fromkeys(found))


def _plain(parameters: JsonObject) -> JsonObject:
    # JSON knows no tuples.
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


def _subject(old: Result, new: Result) -> list[str]:
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


def _missing(old: Result, new: Result) -> dict[str, str]:
    found = {}
    olds, news = ({row.label: row for row in result.rows} for result in (old, new))
    for label in dict.fromkeys([*olds, *news]):
        before, after = olds.get(label), news.get(label)
        if after is not None and after.failure is not None:
            now = before is not None and before.failure is None
            found[label] = f"{'fails now' if now else 'fails'}: {after.failure}"
        elif before is None:
            found[label] = "only in the new run"
        elif after is None:
            found[label] = "only in the old run"
        elif before.failure is not None:
            found[label] = f"failed in the old run: {before.failure}"
    return found


def _metrics(workload: str, names: Sequence[str]) -> list[Metric]:
    every = {metric.name: metric for metric in WORKLOADS.get(workload).metrics}
    for name in names:
        if name not in every:
            raise UsageError(f"{workload} has no metric {name!r}; it has {', '.join(every)}")
    # Of a workload with many there is no first: all are alike.
    first = list(every) if len(every) > FEW_METRICS else list(every)[:1]
    return [every[name] for name in dict.fromkeys(names or first)]


def _ratios(
    old: Result, before: Row, new: Result, after: Row, metric: Metric
) -> tuple[list[float], list[float]] | None:
    """The paired ratios to the first peer that both runs have, if the row is Oxlite's."""
    if before.scenario.driver != SUBJECT:
        return None
    for label in baselines_of(old, before):
        bases = old.row(label), new.row(label)
        if bases[0] is None or bases[1] is None or bases[0].scenario.driver == SUBJECT:
            continue
        first, second = (
            improvements(row.figures(metric.name), base.figures(metric.name), metric.better)
            for row, base in ((before, bases[0]), (after, bases[1]))
        )
        if first and second:
            return first, second
    return None


def _positive(values: Sequence[float | None]) -> list[float]:
    # Of nothing there is no logarithm; where a figure can be 0 its other repeats decide.
    return [value for value in values if value is not None and value > 0]


def _times(before: float, after: float, metric: Metric) -> float:
    return before / after if metric.better == "lower" else after / before
