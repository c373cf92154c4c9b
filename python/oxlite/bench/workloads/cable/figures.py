"""From what the clients, and whoever watched idle members, handed over to the figures of a sample.

The latency of a message is from the sender's call of ``send`` on its WebSocket to the client's code
that has received it: what a user of the site waits for, so that the server and both WebSockets are
in it, the same for every layer.
"""

from array import array
from collections.abc import Sequence

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.deliveries import Account, account
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import NS_PER_MS, NS_PER_SECOND, percentiles_ms, unpacked
from oxlite.bench.harness.session import HandedOver
from oxlite.bench.workloads.cable import work

DELIVERED = "delivered"
"""The kind of latency."""

P50 = Metric("p50_ms", "median time from the sender to a client", "lower")
P99 = Metric("p99_ms", "99th percentile of the time from the sender to a client", "lower")
P999 = Metric("p999_ms", "99.9th percentile of the time from the sender to a client", "lower")
RATE = Metric("deliveries_per_second", "messages that arrive in a second", "higher")
LOST = Metric("lost", "messages lost", "lower")
DOUBLED = Metric("doubled", "messages received twice", "lower")
DISORDERED = Metric("disordered", "messages out of their sender's order", "lower")
WAKEUPS = Metric("wakeups", "wake-ups of idle members", "lower")
RUNNING = Metric("running_ms", "processor time of idle members", "lower")

METRICS = (P50, P99, P999, RATE, LOST, DOUBLED, DISORDERED, WAKEUPS, RUNNING)
PERCENTS = {P50: 50.0, P99: 99.0, P999: 99.9}


def of_messages(found: HandedOver, count: int) -> Sample:
    """The figures of messages.

    Args:
        found: what the clients handed over.
        count: how many messages were to be sent.

    Raises:
        VerificationError: they do not account for what they did.
    """
    facts, payload = found
    counts = facts["counts"]
    shape = [("q", count), *(("q", each) for each in counts for _ in range(2))]
    left_ns, *heard = unpacked(payload, shape)
    latencies_ns, total, last_ns = array("Q"), Account(0, 0, 0), left_ns[0]
    for numbers, instants_ns in zip(heard[::2], heard[1::2], strict=True):
        total = total.plus(_of_client(numbers, count))
        for number, instant_ns in zip(numbers, instants_ns, strict=True):
            if instant_ns < left_ns[number]:
                raise VerificationError(f"message {number} was heard before it was sent")
            latencies_ns.append(instant_ns - left_ns[number])
            last_ns = max(last_ns, instant_ns)
    elapsed_ns = max(1, last_ns - left_ns[0])
    figures = {
        **percentiles_ms(latencies_ns, PERCENTS),
        RATE.name: len(latencies_ns) * NS_PER_SECOND / elapsed_ns,
        LOST.name: float(total.lost),
        DOUBLED.name: float(total.doubled),
        DISORDERED.name: float(total.disordered),
    }
    return Sample(figures, count * len(counts), total.errors(), {DELIVERED: latencies_ns})


def of_idle(members: Sequence[Message], watched: Message) -> Sample:
    """The figures of members to whom nobody said anything while they were watched.

    Raises:
        VerificationError: they have not heard what they were told afterwards.
    """
    joined, heard = (sum(facts[name] for facts in members) for name in ("members", "heard"))
    if heard != joined:
        raise VerificationError(f"of {joined} members only {heard} were waiting for a message")
    running_ms = watched["running_ns"] / NS_PER_MS
    return Sample({WAKEUPS.name: float(watched["switches"]), RUNNING.name: running_ms})


def _of_client(numbers: "array[int]", count: int) -> Account:
    """What went wrong with the messages of each sender, since each has an order of its own."""
    total = Account(0, 0, 0)
    for sender in range(work.SENDERS):
        its = [number // work.SENDERS for number in numbers if number % work.SENDERS == sender]
        total = total.plus(account(its, len(range(sender, count, work.SENDERS))))
    return total
