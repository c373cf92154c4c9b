"""From what was enqueued, and what the ledger says has run, to the figures of a sample.

A task that has not run fails the row; one that ran twice is an error, unless its worker was killed.
"""

from array import array
from collections.abc import Sequence
from statistics import median

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import NS_PER_MS, NS_PER_SECOND, percentiles_ms, unpacked
from oxlite.bench.harness.session import HandedOver
from oxlite.bench.workloads.tasks.ledger import ENDED, FIRST, RUNS, Ledger

BEGUN, CALLS, RECOVERED = "begun", "enqueue", "recovered"
"""Kinds of latency: until a task begins, of the call that enqueues, until one begins again."""

RATE = Metric("tasks_per_second", "tasks in a second", "higher")
P50 = Metric("p50_ms", "median time until a task begins", "lower")
P99 = Metric("p99_ms", "99th percentile of the time until a task begins", "lower")
ENQUEUED = Metric("enqueued_per_second", "tasks enqueued in a second", "higher", of_all_work=True)
RECOVERY = Metric("recovery_ms", "median time until a task begins again", "lower")
LONGEST = Metric("longest_recovery_ms", "longest time until a task begins again", "lower")
WAKEUPS = Metric("wakeups", "wake-ups of an idle worker", "lower")
RUNNING = Metric("running_ms", "processor time of an idle worker", "lower")

METRICS = (RATE, P50, P99, ENQUEUED, RECOVERY, LONGEST, WAKEUPS, RUNNING)

TWICE = "a task ran twice"
LOCKED = "a worker says that the database is locked"


def of_latency(ledger: Ledger, found: HandedOver, count: int) -> Sample:
    """The figures of tasks that an idle worker begins.

    Args:
        ledger: what has run.
        found: what the enqueuer handed over.
        count: how many it was to enqueue.
    """
    [called_ns] = unpacked(found[1], [("Q", count)])
    numbers = range(count)
    sample = accounted(ledger, numbers)
    begun_ns = ledger.column(FIRST, numbers)
    late_ns = array("Q")
    for number, (called, begun) in enumerate(zip(called_ns, begun_ns, strict=True)):
        if begun < called:
            raise VerificationError(f"task {number} began before it was enqueued")
        late_ns.append(begun - called)
    sample.figures |= percentiles_ms(late_ns, {P50: 50.0, P99: 99.0})
    sample.latencies_ns[BEGUN] = late_ns
    return sample


def of_rate(ledger: Ledger, numbers: range, opened_ns: int) -> Sample:
    """The figures of tasks that waited when workers were let go.

    Args:
        ledger: what has run.
        numbers: those that are counted.
        opened_ns: when the workers were let go.
    """
    sample = accounted(ledger, numbers)
    if min(ledger.column(FIRST, numbers)) < opened_ns:
        raise VerificationError("a task began while all workers were held back")
    elapsed_ns = max(ledger.column(ENDED, numbers)) - opened_ns
    sample.figures[RATE.name] = len(numbers) * NS_PER_SECOND / elapsed_ns
    return sample


def of_enqueueing(found: Sequence[HandedOver], waiting: int) -> Sample:
    """The figures of tasks that were enqueued, each in a transaction of its own.

    Args:
        found: what each process handed over.
        waiting: how many tasks there are.

    Raises:
        VerificationError: that is not how many were enqueued.
    """
    sample, done, rate, every_ns = Sample({}), 0, 0.0, array("Q")
    for facts, payload in found:
        times_ns, numbers = unpacked(payload, [("Q", facts["calls"])] * 2)
        for time_ns, number in zip(times_ns, numbers, strict=True):
            if number:
                what = facts["errors"][number - 1]
                sample.errors[what] = sample.errors.get(what, 0) + 1
            else:
                every_ns.append(time_ns)
        mine = numbers.count(0)
        done += mine
        rate += mine * NS_PER_SECOND / facts["elapsed_ns"]
        sample.asked += len(times_ns)
    if not done <= waiting <= done + sum(sample.errors.values()):
        raise VerificationError(f"{done:,} tasks were enqueued, and {waiting:,} wait")
    sample.figures[ENQUEUED.name] = rate
    sample.latencies_ns[CALLS] = every_ns
    return sample


def of_recovery(times_ns: "array[int]") -> Sample:
    """The figures of tasks whose workers were killed, each of which has run again."""
    figures = {
        RECOVERY.name: median(times_ns) / NS_PER_MS,
        LONGEST.name: max(times_ns) / NS_PER_MS,
    }
    return Sample(figures, len(times_ns), latencies_ns={RECOVERED: times_ns})


def of_idle(switches: int, running_ns: int) -> Sample:
    """The figures of a worker that had nothing to do."""
    return Sample({WAKEUPS.name: float(switches), RUNNING.name: running_ns / NS_PER_MS}, 1)


def accounted(ledger: Ledger, numbers: range) -> Sample:
    """A sample that knows how many tasks ran, and which ran more than once.

    Raises:
        VerificationError: one has not run.
    """
    runs = ledger.column(RUNS, numbers)
    if lost := len(numbers) - ledger.have(ENDED, numbers):
        raise VerificationError(f"of {len(numbers):,} tasks {lost:,} have not run")
    twice = sum(count - 1 for count in runs)
    return Sample({}, len(numbers), {TWICE: twice} if twice else {})


def note_locked(sample: Sample, count: int) -> None:
    """Add that workers have said so."""
    if count:
        sample.errors[LOCKED] = count
