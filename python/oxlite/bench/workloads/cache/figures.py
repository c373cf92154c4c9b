"""From what the processes handed over to the figures of a sample.

A rate is how many operations there were for each second that was spent in calls, all processes
together: what the lab does between two calls is in no rate. With tasks, many of which wait at once,
it is that of the time that passed.
"""

from collections.abc import Mapping, Sequence

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.outcomes import (
    NS_PER_MS,
    NS_PER_SECOND,
    percentiles_ms,
    together,
    unpacked,
)
from oxlite.bench.harness.session import HandedOver
from oxlite.bench.workloads.cache import work

MIB = 1 << 20

GETS = Metric("gets_per_second", "get in a second", "higher")
MISSES = Metric("misses_per_second", "get of what is not there, in a second", "higher")
MANY = Metric("get_manys_per_second", "get_many of ten keys, in a second", "higher")
INCRS = Metric("incrs_per_second", "incr in a second", "higher", of_all_work=True)
SETS = Metric("sets_per_second", "set in a second", "higher", of_all_work=True)
SET_P999 = Metric("set_p999_ms", "99.9th percentile of a set", "lower")
DISK = Metric("disk_mib", "MiB on the disk", "lower")
MEMORY = Metric("memory_mib", "MiB of memory, of those who ask and of a server", "lower")
OVER = Metric("over_percent", "used bytes beyond the limit at most, %", "lower")
LONGEST = Metric("longest_set_ms", "longest set", "lower")
HITS = Metric("hits_percent", "hits, %", "higher")
BEHIND = Metric("behind_lru_points", "hits fewer than an exact LRU's, points", "lower")

METRICS = (
    GETS, MISSES, MANY, INCRS, SETS, SET_P999, DISK, MEMORY, OVER, LONGEST, HITS, BEHIND,
)  # fmt: skip

RATES: Mapping[str, Metric] = {
    work.GET: GETS,
    work.MISS: MISSES,
    work.GET_MANY: MANY,
    work.INCR: INCRS,
    work.SET: SETS,
}


def of_operation(operation: str, found: Sequence[HandedOver], sample: Sample) -> int:
    """Add the figures of an operation, and give how often a whole number was added to in all.

    Args:
        operation: one of ``work.OPERATIONS``.
        found: what each process handed over.
        sample: what they are added to.
    """
    times_ns = together(unpacked(payload, [("Q", facts["count"])])[0] for facts, payload in found)
    sample.figures[RATES[operation].name] = sum(facts["rate"] for facts, _ in found)
    sample.latencies_ns[operation] = times_ns
    if operation == work.SET:
        sample.figures |= percentiles_ms(times_ns, {SET_P999: 99.9})
    sample.asked += len(times_ns)
    for facts, _ in found:
        for what, count in facts["errors"].items():
            said = f"{operation}: {what}"
            sample.errors[said] = sample.errors.get(said, 0) + count
    return sum(facts["added"] for facts, _ in found)


def of_room(found: Sequence[HandedOver], server_bytes: int, disk_bytes: int) -> dict[str, float]:
    """The figures of memory and disk."""
    memory_bytes = server_bytes + sum(max(0, facts["memory_bytes"]) for facts, _ in found)
    return {MEMORY.name: memory_bytes / MIB, DISK.name: disk_bytes / MIB}


def account_for_sums(sample: Sample, added: int, counted: int, *, is_exact: bool) -> None:
    """See that every increment counts.

    Args:
        sample: where those that were lost are errors, unless that must not happen.
        added: how many were acknowledged.
        counted: the sum of all whole numbers.
        is_exact: whether none may be lost.

    Raises:
        VerificationError: they do not, and have to.
    """
    if counted > added and not sample.errors:
        raise VerificationError(f"{added:,} increments came to {counted:,}")
    if counted < added:
        if is_exact:
            raise VerificationError(f"of {added:,} increments {added - counted:,} are lost")
        sample.errors["incr: lost"] = added - counted


def of_limit(found: Sequence[Message], size_bytes: int) -> Sample:
    """The figures of a cache that was filled beyond its limit."""
    sets = sum(facts["sets"] for facts in found)
    most_bytes = max(facts["most_used_bytes"] for facts in found)
    longest_ns = max(facts["longest_ns"] for facts in found)
    figures = {
        OVER.name: max(0.0, 100 * (most_bytes / size_bytes - 1)),
        LONGEST.name: longest_ns / NS_PER_MS,
        SETS.name: sum(facts["sets"] * NS_PER_SECOND / facts["spent_ns"] for facts in found),
    }
    detail = {
        "most_used_bytes": most_bytes,
        "last_used_bytes": found[-1]["last_used_bytes"],
        "read_back": sum(facts["read"] for facts in found),
        "found": sum(facts["found"] for facts in found),
    }
    return Sample(figures, sets, _errors(found), detail=detail)


def of_hits(facts: Message) -> Sample:
    """The figures of a trace."""
    asked = facts["asked"]
    rate, exact = (100 * facts[name] / asked for name in ("hits", "exact_hits"))
    detail = {name: facts[name] for name in ("entries", "evictions", "exact_hits")}
    figures = {HITS.name: rate, BEHIND.name: exact - rate}
    return Sample(figures, asked, _errors([facts]), detail=detail)


def _errors(found: Sequence[Message]) -> dict[str, int]:
    errors: dict[str, int] = {}
    for facts in found:
        for what, count in facts["errors"].items():
            errors[f"set: {what}"] = errors.get(f"set: {what}", 0) + count
    return errors
