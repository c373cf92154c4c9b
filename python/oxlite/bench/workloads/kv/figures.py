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
from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness import outcomes
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import NS_PER_SECOND, percentiles_ms, unpacked
from oxlite.bench.harness.statistics import jains_index
from oxlite.bench.workloads.kv.work import Operation

NS_PER_MICROSECOND = 1e3

WALL = Metric("wall_seconds", "wall time", "lower", of_all_work=True)
OPERATIONS = Metric("operations_per_second", "operations per second", "higher", of_all_work=True)
READS = Metric("reads_per_second", "reads per second", "higher", of_all_work=True)
WRITES = Metric("writes_per_second", "writes per second", "higher", of_all_work=True)
FASTEST = Metric("fastest_process_seconds", "fastest process", "lower", of_all_work=True)
SLOWEST = Metric("slowest_process_seconds", "slowest process", "lower", of_all_work=True)
JAIN = Metric("jain", "Jain's index", "higher")
WRITE_P99 = Metric("write_p99_ms", "p99 of a write", "lower")
WRITE_P999 = Metric("write_p999_ms", "p99.9 of a write", "lower")

METRICS = (WALL, OPERATIONS, READS, WRITES, FASTEST, SLOWEST, JAIN, WRITE_P99, WRITE_P999)


@dataclass
class Outcome(outcomes.Outcome):
    """What one process did: one entry per statement of its stream.

    Attributes:
        begun_ns: the instant before the first, on the shared clock.
        ended_ns: the one after the last.
    """

    begun_ns: int
    ended_ns: int


def unpack(facts: Message, payload: bytes, queries: int) -> Outcome:
    """Read what a worker handed over.

    Raises:
        VerificationError: it did not do all of its work, or a read found nothing.
    """
    begun, ended, numbers = unpacked(payload, (("Q", queries), ("Q", queries), ("H", queries)))
    if facts["missing"]:
        raise VerificationError(f"{facts['missing']} reads did not find a row that exists")
    if not all(ended):
        raise VerificationError("a worker left a statement of its stream out")
    times_ns = array("Q", map(sub, ended, begun))
    return Outcome(times_ns, numbers, facts["errors"], begun[0], ended[-1])


def sample(
    streams: Sequence[Sequence[Operation]],
    found: Sequence[Outcome],
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
        errors += outcome.failed()
        for (_, value), time_ns, number in zip(
            operations, outcome.times_ns, outcome.numbers, strict=True
        ):
            if not number:
                latencies_ns["read" if value is None else "write"].append(time_ns)
    walls_seconds = [(outcome.ended_ns - start_ns) / NS_PER_SECOND for outcome in found]
    wall_seconds = max(walls_seconds)
    figures = {
        WALL.name: wall_seconds,
        OPERATIONS.name: sum(map(len, latencies_ns.values())) / wall_seconds,
        READS.name: len(latencies_ns["read"]) / wall_seconds,
        WRITES.name: len(latencies_ns["write"]) / wall_seconds,
        FASTEST.name: min(walls_seconds),
        SLOWEST.name: wall_seconds,
        **percentiles_ms(latencies_ns["write"], {WRITE_P99: 99.0, WRITE_P999: 99.9}),
    }
    fairness = jains_index(done_in_fixed_time or ())
    if fairness is not None:
        figures[JAIN.name] = fairness
    detail = {
        "start_skew_us": max(one.begun_ns - start_ns for one in found) / NS_PER_MICROSECOND,
        "processes": [
            {"wall_seconds": seconds, "done": outcome.done()}
            for seconds, outcome in zip(walls_seconds, found, strict=True)
        ],
        "done_in_fixed_time": done_in_fixed_time,
    }
    return Sample(figures, sum(map(len, streams)), dict(errors), latencies_ns, detail)
