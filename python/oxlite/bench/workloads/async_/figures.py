"""From the durations of every call, and the delays of the loop, to the figures of a sample."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import percentiles_ms, together, unpacked

CALL, DELAY = "call", "loop"

RATE = Metric("calls_per_second", "calls per second", "higher", of_all_work=True)
P99 = Metric("p99_ms", "99th percentile of the time of a call", "lower")
DELAY_P95 = Metric("loop_p95_ms", "95th percentile of the loop's delay", "lower")

METRICS = (RATE, P99, DELAY_P95)


@dataclass(frozen=True)
class Outcome:
    """What a scenario came to.

    Attributes:
        durations_ns: of each task's calls.
        delays_ns: of the event loop.
        seconds: how long all of it took.
    """

    durations_ns: "Sequence[array[int]]"
    delays_ns: "array[int]"
    seconds: float


def unpack(facts: Message, payload: bytes) -> Outcome:
    """Read what a worker handed over.

    Raises:
        VerificationError: it does not account for what it did, or a task has done nothing.
    """
    if not all(facts["counts"]):
        raise VerificationError("a task has done nothing")
    counts = (*facts["counts"], facts["delays"])
    *durations_ns, delays_ns = unpacked(payload, (("Q", count) for count in counts))
    return Outcome(durations_ns, delays_ns, facts["seconds"])


def sample(found: Outcome) -> Sample:
    """The figures of one run."""
    durations_ns = together(found.durations_ns)
    figures = {
        RATE.name: len(durations_ns) / found.seconds,
        **percentiles_ms(durations_ns, {P99: 99.0}),
        **percentiles_ms(found.delays_ns, {DELAY_P95: 95.0}),
    }
    detail = {"seconds": found.seconds, "tasks": [len(each) for each in found.durations_ns]}
    kinds = {CALL: durations_ns, DELAY: found.delays_ns}
    return Sample(figures, len(durations_ns), {}, kinds, detail)
