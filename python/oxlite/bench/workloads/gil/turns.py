"""What ``gil`` measures: its turns, and the figures that each gives.

A turn is some threads of the worker at work together. The queries are as many
rounds over the table as take the wanted time on this driver's SQLite: a query
of 6 ms is one on each of them.

Percentiles of lateness are of one repeat, by nearest rank, so that they pair.
Beside the readers that a bar is about there are enough ticks for ten to lie
beyond the 99th percentile, unless the thread was so starved that the time was
up before; elsewhere there are fewer, and the spread tells. Over all repeats
together they are in the record, where the lab's rule holds.
"""

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from oxlite.bench.harness import statistics
from oxlite.bench.harness.model import Metric
from oxlite.bench.harness.threads import Part, together
from oxlite.bench.workloads.gil import parts, work
from oxlite.bench.workloads.gil.parts import Done, Open

READERS = (1, 4, 8)
IDLE_READERS = (0, 1, 4)
WRITERS = 4

ALONE_SECONDS = 0.12
LEAST_SECONDS = 0.05
"""Of the CPU thread alone, on any scale: shares are of what it does then."""

BESIDE_SECONDS = 0.3
WRITING_SECONDS = 0.4

JUDGED_TICKS = 1_010
TICKS = {0: 200, 1: 300, 4: JUDGED_TICKS}
TICKS_BESIDE_QUERY = 250
LONGEST_TICK_SECONDS = 0.0025
"""So much for each tick on average, and the turn is over."""

LEAST_TICKS = 100
"""Below this the 99th percentile would be the largest."""

SHORT_QUERY_SECONDS = 0.006
LONG_QUERY_SECONDS = 0.05
LONG_QUERIES = 8
PROCESSORS_NEEDED = 2
LONGEST_SCALING_SECONDS = 60.0

WORDS = {0: "nobody", 1: "1 reader", 4: "4 readers", 8: "8 readers"}


def _beside(
    counts: Sequence[int], name: str, title: str, better: statistics.Better = "higher"
) -> dict[int, Metric]:
    """A metric for each number of readers, which name and title leave a place for."""
    return {n: Metric(name.format(n), title.format(WORDS[n]), better) for n in counts}


CPU_ALONE = Metric("cpu_alone_per_second", "CPU thread alone, iterations/s", "higher")
LOOKUPS = _beside(READERS, "lookups_{}_per_second", "look-ups/s, {}")
LOOKUPS_BESIDE = _beside(READERS, "lookups_{}_beside_cpu_per_second", "look-ups/s, {} + CPU thread")
CPU_KEPT = _beside(READERS, "cpu_beside_{}_share", "CPU thread keeps, beside {}")
WAKE_P50, WAKE_P99 = (
    _beside(
        IDLE_READERS, f"wake_beside_{{}}_{p}_ms", f"idle thread late, beside {{}}: {p} ms", "lower"
    )
    for p in ("p50", "p99")
)
TICK_P50, TICK_P99 = (
    Metric(f"tick_beside_query_{p}_ms", f"ticker late, beside 6 ms queries: {p} ms", "lower")
    for p in ("p50", "p99")
)
SCALING = Metric("two_threads_speedup", "50 ms queries: speed-up by 2 threads", "higher")
WRITING = f"{WRITERS} writers"
INSERTS = Metric(
    f"inserts_{WRITERS}_beside_cpu_per_second", f"inserts/s, {WRITING} + CPU thread", "higher"
)
CPU_KEPT_BY_WRITERS = Metric(
    f"cpu_beside_{WRITERS}_writers_share", f"CPU thread keeps, beside {WRITING}", "higher"
)

METRICS = (
    *LOOKUPS.values(),
    CPU_ALONE,
    *(metric for n in READERS for metric in (LOOKUPS_BESIDE[n], CPU_KEPT[n])),
    *(metric for n in IDLE_READERS for metric in (WAKE_P50[n], WAKE_P99[n])),
    TICK_P50,
    TICK_P99,
    SCALING,
    INSERTS,
    CPU_KEPT_BY_WRITERS,
)


class AbsentError(Exception):
    """A figure cannot exist here; the message says why."""


@dataclass
class Bench:
    """What the turns of one worker work with.

    Attributes:
        opened: opens a connection.
        lookups: what each reader looks up.
        scale: how long a turn takes, in parts of the usual.
        short_rounds: of a query of 6 ms.
        long_rounds: of a query of 50 ms.
        written: how many rows were written; forgets them.
        figures: by metric, of the sample being taken.
        late_ns: every lateness, by kind.
        detail: whatever else is worth storing.
    """

    opened: Open
    lookups: Sequence[Sequence[work.Lookup]]
    scale: float
    short_rounds: int
    long_rounds: int
    written: Callable[[int], None]
    figures: dict[str, float] = field(default_factory=dict)
    late_ns: dict[str, "array[int]"] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)

    def readers(self, count: int) -> list[Part]:
        """So many of them."""
        return [parts.reader(self.opened, self.lookups[number]) for number in range(count)]

    def scaled(self, count: int) -> int:
        """A count on this scale."""
        return max(1, round(count * self.scale))


class Turn(NamedTuple):
    """What one turn gives, and what does it."""

    metrics: Sequence[Metric]
    measure: Callable[[Bench], None]


def turns() -> Iterator[Turn]:
    """All turns of a sample, in order; the first says what the CPU thread does alone."""
    yield Turn((CPU_ALONE,), _cpu_alone)
    for count in READERS:
        yield Turn((LOOKUPS[count],), partial(_lookups, count))
        yield Turn((LOOKUPS_BESIDE[count], CPU_KEPT[count]), partial(_lookups_beside, count))
    for count in IDLE_READERS:
        yield Turn((WAKE_P50[count], WAKE_P99[count]), partial(_wake, count))
    yield Turn((TICK_P50, TICK_P99), _tick)
    yield Turn((SCALING,), _scaling)
    yield Turn((INSERTS, CPU_KEPT_BY_WRITERS), _inserts)


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _rate(found: Sequence[Done], seconds: float) -> float:
    return sum(done.counted for done in found) / seconds


def _cpu_alone(bench: Bench) -> None:
    seconds = max(ALONE_SECONDS * bench.scale, LEAST_SECONDS)
    bench.figures[CPU_ALONE.name] = _rate(together([parts.spinner()], seconds), seconds)


def _kept(bench: Bench, metric: Metric, spun: Done, seconds: float) -> None:
    """What the CPU thread did, as a share of what it does alone."""
    alone = bench.figures.get(CPU_ALONE.name)
    if not alone:
        raise AbsentError("the CPU thread did nothing alone")
    bench.figures[metric.name] = _rate([spun], seconds) / alone


def _lookups(count: int, bench: Bench) -> None:
    seconds = ALONE_SECONDS * bench.scale
    bench.figures[LOOKUPS[count].name] = _rate(together(bench.readers(count), seconds), seconds)


def _lookups_beside(count: int, bench: Bench) -> None:
    seconds = BESIDE_SECONDS * bench.scale
    spun, *found = together([parts.spinner(), *bench.readers(count)], seconds)
    bench.figures[LOOKUPS_BESIDE[count].name] = _rate(found, seconds)
    _kept(bench, CPU_KEPT[count], spun, seconds)


def _late(
    bench: Bench, kind: str, ticks: int, others: Sequence[Part], p50: Metric, p99: Metric
) -> None:
    """How late each of so many ticks was beside the ``others``."""
    wanted = bench.scaled(ticks)
    late_ns, *_ = together([parts.ticker(wanted), *others], wanted * LONGEST_TICK_SECONDS)
    bench.late_ns[kind] = late_ns
    ordered, count = sorted(late_ns), len(late_ns)
    bench.figures[p50.name] = ordered[statistics.rank(count, 50.0) - 1] / 1e6
    if count < LEAST_TICKS:
        raise AbsentError(f"fewer than {LEAST_TICKS} ticks")
    bench.figures[p99.name] = ordered[statistics.rank(count, 99.0) - 1] / 1e6


def _wake(count: int, bench: Bench) -> None:
    kind, readers = f"wake beside {count}", bench.readers(count)
    _late(bench, kind, TICKS[count], readers, WAKE_P50[count], WAKE_P99[count])


def _tick(bench: Bench) -> None:
    others = [parts.querier(bench.opened, bench.short_rounds)]
    _late(bench, "tick beside query", TICKS_BESIDE_QUERY, others, TICK_P50, TICK_P99)


def _scaling(bench: Bench) -> None:
    if processors() < PROCESSORS_NEEDED:
        raise AbsentError(f"needs {PROCESSORS_NEEDED} processors, there is 1")

    queries = 2 * bench.scaled(LONG_QUERIES // 2)

    def elapsed_ns(threads: int) -> int:
        """From when they begin until the last has done its queries."""
        querier = parts.querier(bench.opened, bench.long_rounds, queries // threads)
        found: list[Done] = together([querier] * threads, LONGEST_SCALING_SECONDS)
        return max(done.elapsed_ns for done in found)

    one_ns, two_ns = elapsed_ns(1), elapsed_ns(2)
    bench.figures[SCALING.name] = one_ns / two_ns
    bench.detail["long_query_ms"] = one_ns / 1e6 / queries


def _inserts(bench: Bench) -> None:
    seconds = WRITING_SECONDS * bench.scale
    writers = [parts.writer(bench.opened, work.value(number)) for number in range(WRITERS)]
    spun, *found = together([parts.spinner(), *writers], seconds)
    bench.written(sum(done.total for done in found))
    bench.figures[INSERTS.name] = _rate(found, seconds)
    _kept(bench, CPU_KEPT_BY_WRITERS, spun, seconds)
