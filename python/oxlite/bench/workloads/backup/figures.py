"""From what writers and the one who makes backups handed over to the figures of a sample.

All is of the time from the beginning of the first backup to the end of the last one; without a
backup, of the least time. Rates are of what was committed in it. Times and errors are of each
transaction that was under way in it, also of one that ended later, so that the longest are not cut
off. Percentiles are of those that were done, because a fast failure must not improve them; the
longest is of all, because one who waited in vain has waited.
"""

import statistics
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub
from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness import outcomes
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import (
    LOCKED,
    NS_PER_MS,
    NS_PER_SECOND,
    percentiles_ms,
    together,
    unpacked,
)

MEBIBYTE = 1 << 20
COMMIT = "commit"
"""The kind of latency."""

COMMITS = Metric("commits_per_second", "commits per second", "higher", of_all_work=True)
P99 = Metric("p99_ms", "99th percentile of a commit", "lower")
LONGEST = Metric("longest_ms", "longest commit", "lower")
SECONDS = Metric("backup_seconds", "time until the backup is there", "lower")
SIZE = Metric("backup_mebibytes", "MiB of the backup", "lower")
WAL = Metric("wal_mebibytes", "MiB of the WAL at its largest", "lower")
BEGUN = Metric("backups", "backups begun", "higher")
WHOLE = Metric("whole_backups", "backups that are whole", "higher")

METRICS = (COMMITS, P99, LONGEST, SECONDS, SIZE, WAL, BEGUN, WHOLE)


@dataclass
class Outcome(outcomes.Outcome):
    """What one process did: one entry per transaction.

    Attributes:
        begun_ns: the instant before each.
        ended_ns: the one after each.
        moment: what those that were done add to the sum of keys times amounts.
    """

    begun_ns: "array[int]"
    ended_ns: "array[int]"
    moment: int

    def has_unknown(self) -> bool:
        """Whether one failed and may have been made all the same."""
        return any(LOCKED not in text for text in self.errors)

    def during(self, begun_ns: int, ended_ns: int) -> "tuple[Outcome, int]":
        """Those that were under way in a time, and how many were done when it ended."""
        every = zip(self.begun_ns, self.ended_ns, self.numbers, strict=True)
        begun, ended, numbers, done = array("Q"), array("Q"), array("H"), 0
        for first_ns, last_ns, number in every:
            if first_ns < ended_ns and last_ns > begun_ns:
                begun.append(first_ns)
                ended.append(last_ns)
                numbers.append(number)
                done += not number and last_ns <= ended_ns
        times_ns = array("Q", map(sub, ended, begun))
        return Outcome(times_ns, numbers, self.errors, begun, ended, self.moment), done


def unpack(facts: Message, payload: bytes) -> Outcome:
    """Read what a writer handed over.

    Raises:
        VerificationError: it does not account for what it did.
    """
    count = facts["count"]
    begun, ended, numbers = unpacked(payload, (("Q", count), ("Q", count), ("H", count)))
    times_ns = array("Q", map(sub, ended, begun))
    return Outcome(times_ns, numbers, facts["errors"], begun, ended, facts["moment"])


def sample(found: Sequence[Outcome], maker: Message, flaws: Sequence[str | None]) -> Sample:
    """The figures of one run.

    Args:
        found: what each of the writers did.
        maker: what the process that makes backups says.
        flaws: what is wrong with each of those that it has made.

    Raises:
        VerificationError: a process has not written at all in that time.
    """
    begun_ns, ended_ns = maker["begun_ns"], maker["ended_ns"]
    pairs = [one.during(begun_ns, ended_ns) for one in found]
    during = [one for one, _ in pairs]
    if not all(one.numbers for one in during):
        raise VerificationError("a process did not write")
    times_ns = together(one.times_of_done_ns() for one in during)
    figures = {
        COMMITS.name: sum(done for _, done in pairs) * NS_PER_SECOND / (ended_ns - begun_ns),
        LONGEST.name: max(max(one.times_ns) for one in during) / NS_PER_MS,
        WAL.name: maker["wal_bytes"] / MEBIBYTE,
        **percentiles_ms(times_ns, {P99: 99.0}),
    }
    errors: Counter[str] = Counter()
    for one in during:
        errors += one.failed()
    asked = sum(len(one.numbers) for one in during)
    attempts = maker["attempts"]
    wrong = Counter(why for why in flaws if why is not None)
    wrong.update(one["why"] for one in attempts if one["why"] is not None)
    detail = {"wrong": dict(wrong), "sqlite_of_backup": maker["version"]}
    result = Sample(figures, asked, dict(errors), {COMMIT: times_ns}, detail)
    if attempts:
        figures[BEGUN.name] = float(len(attempts))
        figures[WHOLE.name] = float(flaws.count(None))
    made = [one for one in attempts if one["why"] is None]
    if made:
        figures[SECONDS.name] = statistics.median(one["seconds"] for one in made)
        figures[SIZE.name] = Path(made[-1]["path"]).stat().st_size / MEBIBYTE
    elif attempts:
        result.absent[SECONDS.name] = attempts[0]["why"]
    return result
