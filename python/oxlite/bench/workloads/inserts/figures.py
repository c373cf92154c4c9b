"""From the instants of every insert to the figures of a sample.

All threads are at work from the instant at which it begins to count to the end of
whichever thread's last insert came first. A rate is the inserts that were committed
between the two, by the seconds between them; so neither the one that begins alone nor the
one that waits longest in the end moves it.

Percentiles are of acknowledged inserts, because a fast failure must not improve them; the
longest is of all, because one who waited in vain has waited.
"""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness import outcomes
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import (
    NS_PER_MS,
    NS_PER_SECOND,
    percentiles_ms,
    together,
    unpacked,
)

KIND = "insert"

RATE = Metric("inserts_per_second", "inserts per second", "higher", of_all_work=True)
P50 = Metric("p50_ms", "median of the time of an insert", "lower")
P99 = Metric("p99_ms", "99th percentile of the time of an insert", "lower")
LONGEST = Metric("longest_ms", "longest time of an insert", "lower")
FEWEST = Metric("slowest_thread_per_second", "inserts per second of the slowest thread", "higher")
MOST = Metric("fastest_thread_per_second", "inserts per second of the fastest thread", "higher")

METRICS = (RATE, P50, P99, LONGEST, FEWEST, MOST)


@dataclass
class Outcome(outcomes.Outcome):
    """What one thread did: one entry per insert, in the order of its rows.

    Attributes:
        ended_ns: the instants after each; they never decrease.
    """

    ended_ns: "array[int]"

    def done_between(self, from_ns: int, until_ns: int) -> int:
        """How many were committed after ``from_ns`` and until ``until_ns``."""
        first, last = (bisect_right(self.ended_ns, instant) for instant in (from_ns, until_ns))
        return self.numbers[first:last].count(0)


def unpack(facts: Message, payload: bytes, threads: int) -> list[Outcome]:
    """Read what a worker handed over.

    Raises:
        VerificationError: a thread has done nothing, or does not account for what it did.
    """
    counts = facts["counts"]
    if len(counts) != threads or not all(counts):
        raise VerificationError(f"{sum(map(bool, counts))} of {threads} threads inserted")
    arrays = iter(unpacked(payload, ((code, count) for count in counts for code in "QQH")))
    return [
        Outcome(array("Q", map(sub, ended_ns, begun_ns)), numbers, facts["errors"], ended_ns)
        for begun_ns, ended_ns, numbers in zip(arrays, arrays, arrays, strict=True)
    ]


def sample(found: Sequence[Outcome], from_ns: int) -> Sample:
    """The figures of one run.

    Args:
        found: what each thread did.
        from_ns: the instant at which it begins to count.

    Raises:
        VerificationError: a thread had come to its end by then.
    """
    until_ns = min(outcome.ended_ns[-1] for outcome in found)
    if until_ns <= from_ns:
        raise VerificationError("a thread had no rows left when it began to count: more --inserts")
    seconds = (until_ns - from_ns) / NS_PER_SECOND
    rates = [outcome.done_between(from_ns, until_ns) / seconds for outcome in found]
    times_ns = together(outcome.times_of_done_ns() for outcome in found)
    failed: Counter[str] = Counter()
    for outcome in found:
        failed += outcome.failed()
    figures = {
        RATE.name: sum(rates),
        LONGEST.name: max(max(outcome.times_ns) for outcome in found) / NS_PER_MS,
        FEWEST.name: min(rates),
        MOST.name: max(rates),
        **percentiles_ms(times_ns, {P50: 50.0, P99: 99.0}),
    }
    counts = [len(outcome.numbers) for outcome in found]
    detail = {"seconds": seconds, "threads": counts}
    return Sample(figures, sum(counts), dict(failed), {KIND: times_ns}, detail)
