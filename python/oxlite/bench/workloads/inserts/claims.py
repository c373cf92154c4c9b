"""What group commit is claimed to do, and whether it is held: a table below the others.

A claim is the least that the median of the paired ratios may be. It compares rows of one
driver in which all but the style is equal: ``mutex`` is one connection behind one lock, and
``own`` with one caller is a plain commit. Both wait for locks as SQLite does, so that
nothing of the queue for writers is part of what they cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from oxlite.bench.harness.model import Metric, Result
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import Drawing, Line, number, spread_of
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.verdict import judged
from oxlite.bench.workloads.inserts.figures import P99, RATE

PEER_BUSY = "backoff"
WORDS = {"mutex": "one mutex", "own": "a plain commit"}
SYNCHRONOUS = {"tuned": "NORMAL", "durable": "FULL"}


@dataclass(frozen=True)
class Claim:
    """A bar for group commit.

    Attributes:
        pragmas: of both rows.
        threads: of both rows.
        peer: the style of the other.
        limit: how many times better than it, at least.
        metric: in what.
    """

    pragmas: str
    threads: str
    peer: str
    limit: float
    metric: Metric = RATE

    def beyond(self, value: float) -> bool:
        """Whether ``value`` is too little."""
        return value < self.limit

    def title(self) -> str:
        """The claim for a reader."""
        callers = "1 caller" if self.threads == "1" else f"{self.threads} callers"
        what = "inserts/s" if self.metric is RATE else "shorter p99"
        return f"{SYNCHRONOUS[self.pragmas]}, {callers}: {what} than {WORDS[self.peer]}"

    def found(self, result: Result) -> Summary | None:
        """The paired ratios, if both rows were measured."""
        ours = Scenario(
            "oxlite",
            pragmas=self.pragmas,
            busy="gate",
            build="tuned",
            style="group",
            threads=self.threads,
        )
        row = result.row(ours.label)
        if row is None:
            return None
        other = replace(ours, busy=PEER_BUSY, style=self.peer)
        return result.improvement(row, self.metric, other.label)


CLAIMS = (
    Claim("durable", "1", "own", 0.97),
    Claim("durable", "16", "mutex", 5.0),
    Claim("durable", "16", "mutex", 1.0, P99),
    Claim("durable", "64", "mutex", 7.0),
    Claim("durable", "64", "mutex", 1.0, P99),
    Claim("tuned", "1", "own", 0.97),
    *(Claim("tuned", threads, "mutex", 1.0) for threads in ("1", "4", "16", "64")),
)


class ClaimsTable:
    """Every claim of which both rows are there."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        lines = []
        for claim in CLAIMS:
            found = claim.found(result)
            if found is not None:
                cells = (f"≥ {number(claim.limit)}", spread_of(found), judged(claim, found))
                lines.append(Line(claim.title(), cells))
        if not lines:
            return []
        headings = ("bar", "times", "verdict")
        return [Drawing("Oxlite's group commit against its bars", "claim", headings, lines)]
