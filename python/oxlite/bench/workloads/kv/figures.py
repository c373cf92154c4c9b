"""From the instants of every statement to the figures of a sample.

Wall time runs from the agreed start to the end of the last statement of the
slowest process; rates are successful statements in that time. Latencies are of
successful statements; what failed is counted beside them, because a fast
failure must not improve a percentile.

Fairness is Jain's index over *rates in the same span of time*. At the end of a
run with a fixed count every process has done the same number and the index
would be 1 by construction. Nor does it help to count what each has done when
the first comes to its end: one stream is some milliseconds of work, less than
a few time slices, so that would measure the scheduler. Therefore, after the
fixed count, all go on together for a fixed time, and the statements each has
done in it are its rate.
"""

from array import array
from collections import Counter
from dataclasses import dataclass

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Sample
from oxlite.bench.harness.statistics import jains_index, latencies
from oxlite.bench.workloads.kv.work import Operation

MICROSECONDS = 1e3
MILLISECONDS = 1e6
SECONDS = 1e9

WRITE_TAIL = {99.0: "write_p99_ms", 99.9: "write_p999_ms"}
"""Percentiles of one repeat's writes, by the names of their figures; absent if it has too few."""


@dataclass
class Outcome:
    """What one process did: one entry per statement of its stream.

    Attributes:
        begun_ns: the instants before each statement, on the shared clock.
        ended_ns: those after it; they never decrease.
        outcomes: 0, or the number of the error, from 1.
        errors: the errors by number.
    """

    begun_ns: "array[int]"
    ended_ns: "array[int]"
    outcomes: "array[int]"
    errors: list[str]

    def done(self) -> int:
        """How many statements succeeded."""
        return self.outcomes.count(0)


def unpack(facts: Message, payload: bytes, queries: int) -> Outcome:
    """Read what a worker handed over.

    Raises:
        VerificationError: it did not do all of its work, or a read found nothing.
    """
    if len(payload) != queries * 18:
        raise VerificationError(
            f"a worker accounts for {len(payload) // 18} statements, asked for {queries}"
        )
    if facts["missing"]:
        raise VerificationError(f"{facts['missing']} reads did not find a row that exists")
    begun, ended, outcomes = array("Q"), array("Q"), array("H")
    begun.frombytes(payload[: 8 * queries])
    ended.frombytes(payload[8 * queries : 16 * queries])
    outcomes.frombytes(payload[16 * queries :])
    if not all(ended):
        raise VerificationError("a worker left a statement of its stream out")
    return Outcome(begun, ended, outcomes, facts["errors"])


def sample(
    streams: list[list[Operation]],
    found: list[Outcome],
    start_ns: int,
    done_in_fixed_time: list[int] | None,
) -> Sample:
    """The figures of one run.

    Args:
        streams: the work of each process.
        found: what each did of it.
        start_ns: the agreed start.
        done_in_fixed_time: statements of each process in the time for fairness, if given.
    """
    latencies_ns = {"read": array("Q"), "write": array("Q")}
    errors: Counter[str] = Counter()
    for operations, outcome in zip(streams, found, strict=True):
        for (_, value), begun, ended, number in zip(
            operations, outcome.begun_ns, outcome.ended_ns, outcome.outcomes, strict=True
        ):
            if number:
                errors[outcome.errors[number - 1]] += 1
            else:
                latencies_ns["read" if value is None else "write"].append(ended - begun)
    walls_ns = [outcome.ended_ns[-1] - start_ns for outcome in found]
    wall_seconds = max(walls_ns) / SECONDS
    figures = {
        "wall_seconds": wall_seconds,
        "operations_per_second": sum(map(len, latencies_ns.values())) / wall_seconds,
        "reads_per_second": len(latencies_ns["read"]) / wall_seconds,
        "writes_per_second": len(latencies_ns["write"]) / wall_seconds,
        "fastest_process_seconds": min(walls_ns) / SECONDS,
        "slowest_process_seconds": wall_seconds,
    }
    tail = latencies(latencies_ns["write"], tuple(WRITE_TAIL))
    for percent, name in WRITE_TAIL.items():
        value_ns = tail.percentiles[percent]
        if value_ns is not None:
            figures[name] = value_ns / MILLISECONDS
    fairness = jains_index(done_in_fixed_time or ())
    if fairness is not None:
        figures["jain"] = fairness
    detail = {
        "start_skew_us": max(o.begun_ns[0] - start_ns for o in found) / MICROSECONDS,
        "processes": [
            {
                "wall_seconds": wall_ns / SECONDS,
                "done": outcome.done(),
            }
            for wall_ns, outcome in zip(walls_ns, found, strict=True)
        ],
        "done_in_fixed_time": done_in_fixed_time,
    }
    asked = sum(map(len, streams))
    return Sample(figures, asked, dict(errors), latencies_ns, detail)
