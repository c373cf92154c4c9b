"""From the waits of every write to the figures of a sample.

Rates are acknowledged writes that ended in time, per second of it. Percentiles
are of acknowledged writes, because a fast failure must not improve them; the
longest wait is of all, because one who waited in vain has waited.

Fairness is Jain's index over the processes' rates in the same time. Where half of
the processes are outsiders, each half has its own figures, and Jain's index is of ours.

Where writers are killed, there is for each kill the time until another process commits.
"""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness import outcomes
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import NS_PER_MS, percentiles_ms, together, unpacked
from oxlite.bench.harness.statistics import jains_index

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
class Outcome(outcomes.Outcome):
    """What one process did: one entry per write.

    Attributes:
        outsider: whether it is one.
    """

    outsider: bool = False

    def done_in_time(self) -> int:
        """How many were acknowledged in time: the last of all is the one that did not end then."""
        return self.numbers[:-1].count(0)


def unpack(facts: Message, payload: bytes, *, outsider: bool) -> Outcome:
    """Read what a worker handed over.

    Raises:
        VerificationError: it has written nothing at all.
    """
    count = len(payload) // BYTES_PER_WRITE
    if not count:
        raise VerificationError("a worker did not write")
    waits_ns, numbers = unpacked(payload, (("Q", count), ("H", count)))
    return Outcome(waits_ns, numbers, facts["errors"], outsider)


def sample(found: Sequence[Outcome], duration_seconds: float) -> Sample:
    """The figures of one run."""
    ours = [outcome for outcome in found if not outcome.outsider]
    theirs = [outcome for outcome in found if outcome.outsider]
    rates = [outcome.done_in_time() / duration_seconds for outcome in ours]
    waits_ns = {"write": together(one.times_of_done_ns() for one in ours)}
    figures = {
        WRITES.name: sum(rates),
        LONGEST.name: _longest_ms(ours),
        FEWEST.name: min(rates),
        MOST.name: max(rates),
        **percentiles_ms(waits_ns["write"], {P99: 99.0}),
    }
    fairness = jains_index(rates)
    if fairness is not None:
        figures[JAIN.name] = fairness
    if theirs:
        done = sum(outcome.done_in_time() for outcome in theirs)
        figures[OUTSIDERS_WRITES.name] = done / duration_seconds
        figures[OUTSIDERS_LONGEST.name] = _longest_ms(theirs)
        waits_ns["outsiders' write"] = together(one.times_of_done_ns() for one in theirs)
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
    errors: Counter[str] = Counter()
    for outcome in found:
        whose = OUTSIDERS if outcome.outsider else ""
        errors.update({f"{whose}{text}": count for text, count in outcome.failed().items()})
    asked = sum(len(outcome.numbers) for outcome in found)
    return Sample(figures, asked, dict(errors), waits_ns, detail)


def _longest_ms(found: Sequence[Outcome]) -> float:
    return max(max(outcome.times_ns) for outcome in found) / NS_PER_MS


def sample_of_kills(facts: Message, payload: bytes) -> Sample:
    """The figures of one run in which writers were killed."""
    kinds = facts["kills"]
    times_ns = dict(
        zip(kinds, unpacked(payload, (("Q", count) for count in kinds.values())), strict=True)
    )
    every_ns = together(times_ns.values())
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
