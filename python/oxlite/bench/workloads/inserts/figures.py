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
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.statistics import latencies

NS_PER_SECOND = 1e9
NS_PER_MS = 1e6
BYTES_PER_INSERT = 18
KIND = "insert"

RATE = Metric("inserts_per_second", "inserts per second", "higher", of_all_work=True)
P50 = Metric("p50_ms", "median of the time of an insert", "lower")
P99 = Metric("p99_ms", "99th percentile of the time of an insert", "lower")
LONGEST = Metric("longest_ms", "longest time of an insert", "lower")
FEWEST = Metric("slowest_thread_per_second", "inserts per second of the slowest thread", "higher")
MOST = Metric("fastest_thread_per_second", "inserts per second of the fastest thread", "higher")

METRICS = (RATE, P50, P99, LONGEST, FEWEST, MOST)


@dataclass(frozen=True)
class Outcome:
    """What one thread did: one entry per insert, in the order of its rows.

    Attributes:
        begun_ns: the instants before each.
        ended_ns: those after it; they never decrease.
        outcomes: 0, or the number of the error, from 1.
    """

    begun_ns: "array[int]"
    ended_ns: "array[int]"
    outcomes: "array[int]"

    def done_between(self, from_ns: int, until_ns: int) -> int:
        """How many were committed after ``from_ns`` and until ``until_ns``."""
        first, last = (bisect_right(self.ended_ns, instant) for instant in (from_ns, until_ns))
        return self.outcomes[first:last].count(0)

    def times_ns(self) -> "array[int]":
        """How long each took that was acknowledged."""
        every = zip(self.begun_ns, self.ended_ns, self.outcomes, strict=True)
        return array("Q", (ended - begun for begun, ended, outcome in every if not outcome))


def unpack(facts: Message, payload: bytes, threads: int) -> list[Outcome]:
    """Read what a worker handed over.

    Raises:
        VerificationError: a thread has done nothing, or does not account for what it did.
    """
    counts = facts["counts"]
    if len(counts) != threads or not all(counts):
        raise VerificationError(f"{sum(map(bool, counts))} of {threads} threads inserted")
    if len(payload) != BYTES_PER_INSERT * sum(counts):
        raise VerificationError(f"a worker does not account for its {sum(counts)} inserts")
    found, place = [], 0
    for count in counts:
        arrays = array("Q"), array("Q"), array("H")
        for each in arrays:
            size = each.itemsize * count
            each.frombytes(payload[place : place + size])
            place += size
        found.append(Outcome(*arrays))
    return found


def sample(found: Sequence[Outcome], errors: Sequence[str], from_ns: int) -> Sample:
    """The figures of one run.

    Args:
        found: what each thread did.
        errors: the kinds of errors by number, from 1.
        from_ns: the instant at which it begins to count.

    Raises:
        VerificationError: a thread had come to its end by then.
    """
    until_ns = min(outcome.ended_ns[-1] for outcome in found)
    if until_ns <= from_ns:
        raise VerificationError("a thread had no rows left when it began to count: more --inserts")
    seconds = (until_ns - from_ns) / NS_PER_SECOND
    rates = [outcome.done_between(from_ns, until_ns) / seconds for outcome in found]
    times_ns, longest_ns = array("Q"), 0
    failed: Counter[str] = Counter()
    for outcome in found:
        times_ns.extend(outcome.times_ns())
        longest_ns = max(longest_ns, *map(sub, outcome.ended_ns, outcome.begun_ns))
        failed.update(errors[number - 1] for number in outcome.outcomes if number)
    figures = {
        RATE.name: sum(rates),
        LONGEST.name: longest_ns / NS_PER_MS,
        FEWEST.name: min(rates),
        MOST.name: max(rates),
    }
    percentiles = latencies(times_ns, (50.0, 99.0)).percentiles
    for metric, percent in ((P50, 50.0), (P99, 99.0)):
        value_ns = percentiles[percent]
        if value_ns is not None:
            figures[metric.name] = value_ns / NS_PER_MS
    asked = sum(len(outcome.outcomes) for outcome in found)
    detail = {"seconds": seconds, "threads": [len(outcome.outcomes) for outcome in found]}
    return Sample(figures, asked, dict(failed), {KIND: times_ns}, detail)
