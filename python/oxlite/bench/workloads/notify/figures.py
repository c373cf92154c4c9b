"""From what a publisher and its listeners handed over to the figures of a sample.

The latency of a message is from the return of the call that publishes it to the listener's code.
Who hears of it before that call has returned has waited for nothing: it counts as 0, and how many
those are is told. From before the call to the listener's code it is never negative.
"""

from array import array
from collections.abc import Sequence

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.deliveries import Account, account
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import NS_PER_MS, NS_PER_SECOND, percentiles_ms, unpacked
from oxlite.bench.harness.session import HandedOver

HEARD, CALLED = "heard", "from the call"
"""Kinds of latency: from the return of the call, and from before it."""

P50 = Metric("p50_ms", "median time from the commit to the listener", "lower")
P99 = Metric("p99_ms", "99th percentile of the time from the commit to the listener", "lower")
P999 = Metric("p999_ms", "99.9th percentile of the time from the commit to the listener", "lower")
CALL_P50 = Metric("call_p50_ms", "median time from the call to the listener", "lower")
RATE = Metric("messages_per_second", "messages published in a second", "higher")
EARLY = Metric("early", "part heard before the publisher's call returned", "higher")
LOST = Metric("lost", "messages lost", "lower")
DOUBLED = Metric("doubled", "messages heard twice", "lower")
DISORDERED = Metric("disordered", "messages out of order", "lower")
WAKEUPS = Metric("wakeups", "wake-ups of idle listeners", "lower")
RUNNING = Metric("running_ms", "processor time of idle listeners", "lower")
WRITES = Metric("writes_per_second", "transactions in a second", "higher", of_all_work=True)

METRICS = (
    P50, P99, P999, CALL_P50, RATE, EARLY, LOST, DOUBLED, DISORDERED, WAKEUPS, RUNNING, WRITES,
)  # fmt: skip

PERCENTS = {P50: 50.0, P99: 99.0, P999: 99.9}


def of_messages(publisher: HandedOver, listeners: Sequence[HandedOver], count: int) -> Sample:
    """The figures of messages.

    Args:
        publisher: what it handed over.
        listeners: the same of each process of them.
        count: how many messages were to be published.

    Raises:
        VerificationError: a worker does not account for what it did.
    """
    called_ns, returned_ns = unpacked(publisher[1], [("Q", count)] * 2)
    heard_ns, since_call_ns = array("Q"), array("Q")
    early, total, asked = 0, Account(0, 0, 0), 0
    for numbers, instants_ns in _ears(listeners):
        asked += count
        total = total.plus(account(numbers, count))
        for number, instant_ns in zip(numbers, instants_ns, strict=True):
            if instant_ns < called_ns[number]:
                raise VerificationError(f"message {number} was heard before it was published")
            late_ns = instant_ns - returned_ns[number]
            early += late_ns < 0
            heard_ns.append(max(0, late_ns))
            since_call_ns.append(instant_ns - called_ns[number])
    figures = {
        **percentiles_ms(heard_ns, PERCENTS),
        **percentiles_ms(since_call_ns, {CALL_P50: 50.0}),
        RATE.name: count * NS_PER_SECOND / (returned_ns[-1] - called_ns[0]),
        EARLY.name: early / max(1, len(heard_ns)),
        LOST.name: float(total.lost),
        DOUBLED.name: float(total.doubled),
        DISORDERED.name: float(total.disordered),
    }
    kinds = {HEARD: heard_ns, CALLED: since_call_ns}
    return Sample(figures, asked, total.errors(), kinds, {"early": early})


def of_idle(facts: Message, listeners: Sequence[HandedOver]) -> Sample:
    """The figures of listeners that were to hear nothing.

    Raises:
        VerificationError: they have heard something.
    """
    _require_silence(listeners)
    running_ms = facts["running_ns"] / NS_PER_MS
    return Sample({WAKEUPS.name: float(facts["switches"]), RUNNING.name: running_ms})


def of_writes(facts: Message, listeners: Sequence[HandedOver]) -> Sample:
    """The figures of transactions beside listeners to another channel.

    Raises:
        VerificationError: they have heard something.
    """
    _require_silence(listeners)
    rate = facts["written"] * NS_PER_SECOND / facts["elapsed_ns"]
    return Sample({WRITES.name: rate}, facts["written"])


def _require_silence(listeners: Sequence[HandedOver]) -> None:
    if any(len(numbers) for numbers, _ in _ears(listeners)):
        raise VerificationError("listeners have heard what nobody has published")


def _ears(listeners: Sequence[HandedOver]) -> "list[tuple[array[int], array[int]]]":
    """The numbers and the instants of each listener."""
    found: list[tuple[array[int], array[int]]] = []
    for facts, payload in listeners:
        each = unpacked(payload, (("q", count) for count in facts["counts"] for _ in range(2)))
        found += zip(each[::2], each[1::2], strict=True)
    return found
