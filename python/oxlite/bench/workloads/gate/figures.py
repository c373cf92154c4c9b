"""From the waits of every write to the figures of a sample.

Rates are acknowledged writes that ended in time, per second of it. Percentiles
are of acknowledged writes, because a fast failure must not improve them; the
longest wait is of all, because one who waited in vain has waited.

Fairness is Jain's index over the processes' rates in the same time. Where half of
the processes are outsiders, each half has its own figures, and Jain's index is of ours.

Where writers are killed, there is for each kill the time until another process commits.
"""

import statistics
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.statistics import jains_index, latencies

NS_PER_MS = 1e6
BYTES_PER_WRITE = 10

WRITES = Metric("writes_per_second", "writes per second", "higher", of_all_work=True)
P99 = Metric("p99_wait_ms", "99th percentile of the wait", "lower")
LONGEST = Metric("longest_wait_ms", "longest wait", "lower")
JAIN = Metric("jain", "Jain's index", "higher")
FEWEST = Metric("slowest_process_per_second", "writes per second of the slowest process", "higher")
MOST = Metric("fastest_process_per_second", "writes per second of the fastest process", "higher")
OUTSIDERS_WRITES = Metric(
    "outsiders_writes_per_second", "writes per second of the outsiders", "higher", of_all_work=True
)
OUTSIDERS_LONGEST = Metric("outsiders_longest_wait_ms", "longest wait of the outsiders", "lower")

RECOVERY_MEDIAN = Metric("recovery_median_ms", "median time from a kill to a commit", "lower")
RECOVERY_LONGEST = Metric("recovery_longest_ms", "longest time from a kill to a commit", "lower")
KILLS = Metric("kills", "kills", "higher")

METRICS = (
    WRITES,
    P99,
    LONGEST,
    JAIN,
    FEWEST,
    MOST,
    OUTSIDERS_WRITES,
    OUTSIDERS_LONGEST,
    RECOVERY_MEDIAN,
    RECOVERY_LONGEST,
    KILLS,
)

LOCKED = "database is locked"
OUTSIDERS = "outsiders: "
"""Stands before an error that befell an outsider."""


@dataclass
class Outcome:
    """What one process did: one entry per write.

    Attributes:
        waits_ns: how long each took.
        outcomes: 0, or the number of the error, from 1.
        errors: the errors by number.
        outsider: whether it is one.
    """

    waits_ns: "array[int]"
    outcomes: "array[int]"
    errors: list[str]
    outsider: bool = False

    def done(self) -> int:
        """How many writes were acknowledged."""
        return self.outcomes.count(0)

    def done_in_time(self) -> int:
        """How many of them ended in time: the last write of all is the one that did not."""
        return self.outcomes[:-1].count(0)

    def waits_of_done_ns(self) -> "array[int]":
        """How long the acknowledged ones took."""
        pairs = zip(self.waits_ns, self.outcomes, strict=True)
        return array("Q", (wait_ns for wait_ns, outcome in pairs if not outcome))


def unpack(facts: Message, payload: bytes, *, outsider: bool) -> Outcome:
    """Read what a worker handed over.

    Raises:
        VerificationError: it has written nothing at all.
    """
    count = len(payload) // BYTES_PER_WRITE
    if not count:
        raise VerificationError("a worker did not write")
    waits_ns, outcomes = array("Q"), array("H")
    waits_ns.frombytes(payload[: 8 * count])
    outcomes.frombytes(payload[8 * count :])
    return Outcome(waits_ns, outcomes, facts["errors"], outsider)


def sample(found: Sequence[Outcome], duration_seconds: float) -> Sample:
    """The figures of one run."""
    ours = [outcome for outcome in found if not outcome.outsider]
    theirs = [outcome for outcome in found if outcome.outsider]
    rates = [outcome.done_in_time() / duration_seconds for outcome in ours]
    waits_ns = {"write": _waits_ns(ours)}
    figures = {
        WRITES.name: sum(rates),
        LONGEST.name: _longest_ms(ours),
        FEWEST.name: min(rates),
        MOST.name: max(rates),
    }
    p99_ns = latencies(waits_ns["write"], (99.0,)).percentiles[99.0]
    if p99_ns is not None:
        figures[P99.name] = p99_ns / NS_PER_MS
    fairness = jains_index(rates)
    if fairness is not None:
        figures[JAIN.name] = fairness
    if theirs:
        done = sum(outcome.done_in_time() for outcome in theirs)
        figures[OUTSIDERS_WRITES.name] = done / duration_seconds
        figures[OUTSIDERS_LONGEST.name] = _longest_ms(theirs)
        waits_ns["outsiders' write"] = _waits_ns(theirs)
    detail = {
        "processes": [
            {
                "done": outcome.done(),
                "in_time": outcome.done_in_time(),
                "outsider": outcome.outsider,
            }
            for outcome in found
        ]
    }
    asked = sum(len(outcome.outcomes) for outcome in found)
    return Sample(figures, asked, _errors(found), waits_ns, detail)


def _waits_ns(found: Sequence[Outcome]) -> "array[int]":
    together = array("Q")
    for outcome in found:
        together.extend(outcome.waits_of_done_ns())
    return together


def _longest_ms(found: Sequence[Outcome]) -> float:
    return max(max(outcome.waits_ns) for outcome in found) / NS_PER_MS


def _errors(found: Sequence[Outcome]) -> dict[str, int]:
    errors: Counter[str] = Counter()
    for outcome in found:
        whose = OUTSIDERS if outcome.outsider else ""
        for number, text in enumerate(outcome.errors, 1):
            errors[f"{whose}{text}"] += outcome.outcomes.count(number)
    return dict(errors)


def sample_of_kills(facts: Message, payload: bytes) -> Sample:
    """The figures of one run in which writers were killed."""
    every_ns = array("Q")
    every_ns.frombytes(payload)
    times_ns, begun = {}, 0
    for kind, count in facts["kills"].items():
        times_ns[kind] = every_ns[begun : begun + count]
        begun += count
    figures = {
        KILLS.name: float(len(every_ns)),
        RECOVERY_MEDIAN.name: statistics.median(every_ns) / NS_PER_MS,
        RECOVERY_LONGEST.name: max(every_ns) / NS_PER_MS,
    }
    return Sample(
        figures,
        facts["acknowledged"] + facts["locked"],
        {LOCKED: facts["locked"]} if facts["locked"] else {},
        times_ns,
        dict(facts),
    )
