"""What was published beside what these results say of it."""

from collections.abc import Sequence

from oxlite.bench.claims import Measured, Published
from oxlite.bench.harness.model import Result
from oxlite.bench.layout import ABSENT, Drawing, Line, number
from oxlite.bench.workloads.catalogue import WORKLOADS

TITLE = "Published and measured"
HEADINGS = ("published", "times", "measured here", "by")
CAUTION = (
    "The published figures are of other machines and in part of other languages: only ratios can "
    "agree. A dash: these files do not say."
)


def answered(results: Sequence[Result]) -> list[tuple[str, Published, list[Measured]]]:
    """The claims that concern workloads of these results, and what each of them says of each."""
    measured = {result.workload for result in results}
    return [
        (
            workload.name,
            claim,
            [
                one
                for result in results
                if result.workload == workload.name
                for one in claim.measured(result, workload.metric)
            ],
        )
        for workload in WORKLOADS
        if workload.name in measured
        for claim in workload.published
    ]


def table(results: Sequence[Result]) -> Drawing | None:
    """What was published beside what was measured; ``None`` without a claim of these workloads."""
    found = answered(results)
    lines = []
    for workload, claim, answers in found:
        ratio = ABSENT if claim.ratio is None else number(claim.ratio)
        said = [(str(one), f"{one.row} / {one.against}") for one in answers] or [(ABSENT, ABSENT)]
        lines.append(Line(f"{workload}: {claim.claim}", (claim.figure, ratio, *said[0])))
        # Of several answers the first line says of what.
        lines += [Line("also", ("", "", *one)) for one in said[1:]]
    if not lines:
        return None
    sources = dict.fromkeys(f"{workload}: {claim.source}" for workload, claim, _ in found)
    return Drawing(TITLE, "claim", HEADINGS, lines, [*sources, CAUTION])
