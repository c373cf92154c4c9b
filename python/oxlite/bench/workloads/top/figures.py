"""From what workers, and the one who watches them, handed over to the figures of a sample.

Rates, times and errors are of the time in which is counted; what ended in it is of it. Percentiles
are of operations that were done. What was told is a rate from one look to the next; the mean of all
these is set beside the rate that the workers have counted from the first look to the last one. A
look begins with the commits, so that this is the instant that counts.
"""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness import outcomes
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import LOCKED, NS_PER_SECOND, percentiles_ms, together, unpacked
from oxlite.bench.workloads.top.work import OPERATIONS, WRITE

OPERATION = "operation"
"""The kind of latency."""

RATE = Metric("operations_per_second", "transactions in a second", "higher", of_all_work=True)
P99 = Metric("p99_ms", "99th percentile of a transaction", "lower")
LOOK = Metric("look_ms", "time of a look of the watch", "lower")
COMMITS = Metric("commits_told", "commits told, times those counted", "higher")
ADMISSIONS = Metric("admissions_told", "admissions told, times the writes counted", "higher")
STATEMENTS = Metric("statements_told", "statements told, times those counted", "higher")
DISAGREEMENT = Metric("disagreement", "largest part by which what was told is wrong", "lower")

METRICS = (RATE, P99, LOOK, COMMITS, ADMISSIONS, STATEMENTS, DISAGREEMENT)


@dataclass
class Outcome(outcomes.Outcome):
    """What one process did: one entry per round.

    Attributes:
        ended_ns: the instant of the end of each.
        in_round: how many operations make one.
        process_id: its number.
        last: the key and the text of the row that it read last, if it read.
    """

    ended_ns: "array[int]"
    in_round: int
    process_id: int
    last: tuple[int, Any] | None

    def during(self, begun_ns: int, ended_ns: int) -> "Outcome":
        """Those rounds that ended in a time."""
        of_it = slice(*(bisect_right(self.ended_ns, one) for one in (begun_ns, ended_ns)))
        return Outcome(
            self.times_ns[of_it], self.numbers[of_it], self.errors, self.ended_ns[of_it],
            self.in_round, self.process_id, self.last,
        )  # fmt: skip

    def operations_done(self) -> int:
        """How many operations were done, in rounds of which none failed."""
        return self.done() * self.in_round

    def has_unknown(self) -> bool:
        """Whether one failed and may have been made all the same."""
        return any(LOCKED not in text for text in self.errors)


def unpack(facts: Message, payload: bytes, load: str) -> Outcome:
    """Read what a worker handed over.

    Raises:
        VerificationError: it does not account for what it did.
    """
    count, last = facts["count"], facts["last"]
    ended, times, numbers = unpacked(payload, (("Q", count), ("Q", count), ("H", count)))
    return Outcome(
        times, numbers, facts["errors"], ended, OPERATIONS[load].in_round, facts["process_id"],
        last and (last[0], last[1]),
    )  # fmt: skip


def sample(found: Sequence[Outcome], begun_ns: int, seconds: float) -> Sample:
    """The figures of those who work.

    Args:
        found: what each of them did.
        begun_ns: the instant at which counting begins.
        seconds: how long it goes on.

    Raises:
        VerificationError: one did nothing in that time.
    """
    ended_ns = begun_ns + round(seconds * NS_PER_SECOND)
    during = [one.during(begun_ns, ended_ns) for one in found]
    if not all(one.numbers for one in during):
        raise VerificationError("a process did nothing")
    times_ns = together(one.times_of_done_ns() for one in during)
    errors: Counter[str] = Counter()
    for one in during:
        errors += one.failed()
    figures = {
        RATE.name: sum(one.operations_done() for one in during) / seconds,
        **percentiles_ms(times_ns, {P99: 99.0}),
    }
    asked = sum(len(one.numbers) * one.in_round for one in during)
    return Sample(figures, asked, dict(errors), {OPERATION: times_ns})


def told(found: Sequence[Outcome], watcher: Message, load: str) -> dict[str, float]:
    """The figures of the one who watches: what was told beside what was counted.

    Args:
        found: what each of the workers did.
        watcher: what the one who watches handed over.
        load: what they did.

    Raises:
        VerificationError: a look has not told how much there was, or nothing was counted.
    """
    first, *looks = watcher["looks"]
    begun_ns, ended_ns = first["begun_ns"], looks[-1]["begun_ns"]
    done = sum(one.during(begun_ns, ended_ns).operations_done() for one in found)
    if not done:
        raise VerificationError("nothing was done from the first look to the last one")
    counted = done * NS_PER_SECOND / (ended_ns - begun_ns)
    ratios = {STATEMENTS.name: _mean(looks, "statements") / counted}
    if load == WRITE:
        ratios[COMMITS.name] = _mean(looks, None) / counted
        ratios[ADMISSIONS.name] = _mean(looks, "admissions") / counted
    return {
        **ratios,
        DISAGREEMENT.name: max(abs(ratio - 1) for ratio in ratios.values()),
        LOOK.name: watcher["look_ms"],
    }


def _mean(looks: Sequence[Message], name: str | None) -> float:
    """How much of it was told in a second, over all looks; without a name, of commits."""
    total = seconds = 0.0
    for look in looks:
        rate = look["commits_per_second"] if name is None else (look["per_second"] or {}).get(name)
        if rate is None:
            raise VerificationError(f"a look has not told the rate of {name or 'commits'}")
        total += rate * look["since_before_seconds"]
        seconds += look["since_before_seconds"]
    return total / seconds
