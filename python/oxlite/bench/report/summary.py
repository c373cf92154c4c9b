"""What a run comes to: some plain sentences, and one picture.

Of several results the first is told whole, the application before all others; of the rest it is
said in how many Oxlite's default is better or worse than the best tuned peer, and every loss is
named.

Invariant: of what has too few repeats no ratio is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.contest import FEWEST_REPEATS, Finding, failed_part
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.layout import capital, number, spread_of
from oxlite.bench.workloads.catalogue import WORKLOADS

APPLICATION = "web"
"""The workload that is told first: what a user's own application would meet."""

LISTED = 6
"""How many losses of a workload are named; more are counted."""

NAMES = {
    "stock": "as it comes",
    "tuned": "with the best tuning",
    "Oxlite": "with Oxlite's default",
}
"""What the rows of a finding are called."""

VERDICTS = {"better": "better", "worse": "worse", "alike": "as good", "unknown": "not decided"}


@dataclass(frozen=True)
class Summary:
    """What results come to.

    Attributes:
        sentences: from the most important.
        pictured: the finding of the picture; none where nothing was compared.
        findings: all of them, in the order of the report.
    """

    sentences: Sequence[str]
    pictured: Finding | None
    findings: Sequence[Finding]


def summary(results: Sequence[Result]) -> Summary:
    """What some results come to."""
    findings = [found for result in results for found in _findings(result)]
    if not findings:
        return Summary([_incomparable(results)], None, [])
    told = [one for one in findings if not one.contest.counted]
    if not told:
        return Summary([tallied(one) for one in findings], None, findings)
    pictured = min(told, key=lambda one: one.result.workload != APPLICATION)
    sentences = [_figures(pictured), *_others(pictured), _judged(pictured)]
    rest = [one for one in findings if one is not pictured]
    if rest:
        sentences.append(_rest(rest))
    return Summary(sentences, pictured, findings)


def _incomparable(results: Sequence[Result]) -> str:
    """Why there is no finding at all."""
    if any(row.failure is not None for result in results for row in result.rows):
        return "Rows failed; what is left has no peer that it can be compared with."
    return "Nothing here has a peer that it can be compared with."


def _findings(result: Result) -> list[Finding]:
    contest = WORKLOADS.get(result.workload).contest
    return [] if contest is None else contest.decided(result)


def named(finding: Finding) -> str:
    """The workload of a finding, with what tells it from its others: ``orm django``."""
    return f"{finding.result.workload} {finding.kind}".strip()


def value_of(row: Row, metric: Metric) -> str:
    """A row's figure for a sentence."""
    found = row.summary(metric.name)
    return "not known" if found is None else number(found.median)


def conditions(finding: Finding) -> str:
    """What all rows of a finding have in common that is counted: ``32 clients``."""
    counted = {axis for axis, value in finding.ours.scenario.items() if value.isdigit()}
    return finding.ours.scenario.label_of(counted)


def _figures(finding: Finding) -> str:
    """The figures of all rows in a sentence."""
    title = capital(WORKLOADS.get(finding.result.workload).title)
    where = f", {found}" if (found := conditions(finding)) else ""
    metric, unit = finding.contest.metric, finding.contest.unit
    parts = [
        f"{value_of(row, metric)}{'' if index else f' {unit}'} {NAMES[name]}"
        for index, (name, row) in enumerate(finding.rows().items())
    ]
    return f"{title}{where}: {', '.join(parts)}."


def _others(finding: Finding) -> list[str]:
    """Failures and the tail, in a sentence, where they can be told."""
    parts = []
    failed = {
        name: part for name, row in finding.rows().items() if (part := failed_part(row)) is not None
    }
    if any(failed.values()):
        each = [
            f"{_percent(part)}{'' if index else ' of the operations'} {NAMES[name]}"
            for index, (name, part) in enumerate(failed.items())
        ]
        parts.append(f"failed {', '.join(each)}")
    elif failed:
        parts.append("none of the operations failed")
    kind = finding.contest.tail
    tails = {name: row.percentile_ns(kind, 99.0) for name, row in finding.rows().items()}
    if all(tails.values()):
        said = ", ".join(
            f"{number(value / 1e6)} ms {NAMES[name]}" for name, value in tails.items() if value
        )
        parts.append(f"99 % of them took at most {said}" if failed else f"p99 {said}")
    return [f"{capital('; '.join(parts))}."] if parts else []


def _percent(part: float) -> str:
    return f"{part:.0%}" if part in {0, 1} or 0.01 <= part < 0.995 else f"{part:.2%}"


def _judged(finding: Finding) -> str:
    """Whether Oxlite's default is better or worse than the best tuned peer, and by how much."""
    if finding.ours.failure is not None:
        return f"Oxlite's row failed: {finding.ours.failure}."
    if not (finding.ours.did_its_work() and finding.tuned.did_its_work()):
        return "They cannot be compared: one of them did not do all of the work."
    metric = finding.contest.metric
    ratio = finding.ratios.get(metric)
    verdict = finding.verdict(metric)
    if ratio is None:
        return f"They cannot be compared: one of them has no {metric.title} above 0."
    if verdict == "unknown":
        counted = "One repeat is" if ratio.count == 1 else f"{ratio.count} repeats are"
        return f"{counted} no verdict: that takes {FEWEST_REPEATS} (--repeats {FEWEST_REPEATS})."
    said = "as good as the best tuned peer, within the noise"
    if verdict != "alike":
        said = f"{verdict} than the best tuned peer"
    return f"Oxlite's default is {said}: {spread_of(ratio)} times as good."


def tallied(finding: Finding) -> str:
    """Of a workload with many figures: in how many it is better, and in which worse."""
    peer, unit = finding.tuned.scenario.driver, finding.contest.unit
    count = len(finding.ratios)
    if not finding.may_judge():
        return f"{named(finding)}: {count} {unit} beside {peer}, too few repeats for a verdict."
    found = finding.tally()
    lost = [metric.title for metric in found["worse"]]
    losses = ""
    if lost:
        more = f" and {len(lost) - LISTED} more" if len(lost) > LISTED else ""
        losses = f": {', '.join(lost[:LISTED])}{more}"
    open_ones = f"; {len(found['unknown'])} not decided" if found["unknown"] else ""
    return (
        f"{named(finding)}: of {count} {unit} {len(found['better'])} better than {peer}'s, "
        f"{len(found['alike'])} as good, {len(lost)} worse{losses}{open_ones}."
    )


def _rest(findings: Sequence[Finding]) -> str:
    """In how many others it is better, and in which worse."""
    found: dict[str, list[str]] = {verdict: [] for verdict in (*VERDICTS, "failed")}
    for one in findings:
        verdict, by = _shortly(one)
        found[verdict].append(f"{named(one)}{by}")
    said = [
        f"{VERDICTS.get(verdict, verdict)} in {', '.join(names)}"
        for verdict, names in found.items()
        if names
    ]
    return f"The others, against the best tuned peer of each: {'; '.join(said)}."


def _shortly(finding: Finding) -> tuple[str, str]:
    """The verdict on a finding, and by how much in brackets."""
    if finding.ours.failure is not None:
        return "failed", ""
    if not finding.may_judge():
        return "unknown", ""
    if not finding.contest.counted:
        metric = finding.contest.metric
        return finding.verdict(metric), f" ({number(finding.ratios[metric].median)})"
    tally = finding.tally()
    verdict = next((each for each in ("worse", "better") if tally[each]), "alike")
    count = len(tally["worse"] or tally["better"])
    return verdict, f" ({count} of {len(finding.ratios)} {finding.contest.unit})" * bool(count)


def failed_note(row: Row) -> str:
    """Which part of a row's operations failed, if any did."""
    part = failed_part(row)
    return f"{_percent(part)} failed" if part else ""
