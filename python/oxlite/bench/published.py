"""What others have published, beside which the lab's own figures stand.

Each entry is a claim with its figure as it was printed, whose it is, and what the lab measures of
the same thing. The machines, the languages and often the versions differ, so only ratios can agree
or disagree; a ratio of two printed figures is computed here and says so by being a number.

Invariants: a figure is as its source prints it; a claim that no row of a result concerns is not
said to be confirmed or refuted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import ABSENT, Drawing, Line, number, spread_of
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.catalogue import WORKLOADS
from oxlite.bench.workloads.orm.published import SECONDS as ORM_SECONDS

ORM_SOURCE = "jeremyevans/simple_orm_benchmark with Rails' settings for SQLite, on an M1 Max"
KV_SOURCE = "25 processes in Python, 5 % upserts: rollback journal against WAL"
INSERTS_SOURCE = "inserts with the settings added one by one, in Rust"
SINGLE_SOURCE = "one INSERT for each request, a workshop's application"
WEB_SOURCE = "a web application in Ruby on Rails, 100 users and 1,000 posts"
TITLE = "Published and measured"
HEADINGS = ("published", "times", "measured here", "by")
CAUTION = (
    "The published figures are of other machines and in part of other languages: only ratios can "
    "agree. A dash: these files do not say."
)

BUSY_SOURCE = "waiting for SQLite's write lock in Ruby, 8 processes of 4 threads"


@dataclass(frozen=True)
class Published:
    """A published claim that a ratio of two rows answers.

    Attributes:
        workload: the lab's workload that measures it.
        claim: what is better than what, in words.
        figure: the published figures, as printed.
        ratio: how many times better that is; ``None`` where the print gives no such number.
        source: whose they are.
        metric: the name of the metric that is compared; of a latency that is pooled over the
            repeats, ``latency:KIND:PERCENT``.
        rows: the axes' values of the rows that answer it.
        against: what is different in the row that each is compared with.
    """

    workload: str
    claim: str
    figure: str
    ratio: float | None
    source: str
    metric: str
    rows: Mapping[str, str] = field(default_factory=dict)
    against: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """The answer of one row.

    Attributes:
        row: its label.
        against: that of the other.
        times: the paired ratios, or that of latencies of all repeats together.
    """

    row: str
    against: str
    times: Summary | float

    def __str__(self) -> str:
        """How many times better, with the spread if there is one."""
        if isinstance(self.times, float):
            return f"{number(self.times)} (all repeats together)"
        return spread_of(self.times)


_WAL = {"journal": "wal", "pragmas": "stock", "busy": "backoff"}
_ROLLBACK = {"journal": "rollback"}
_BUSY = {"busy": "fair", "processes": "8", "threads": "4"}
_STOCK, _PRAGMAS, _BUILD, _BOTH, _SERVER = ORM_SECONDS.values()

PUBLISHED: tuple[Published, ...] = (
    Published(
        "orm", "the four tuned pragmas against SQLite's defaults, all operations",
        f"{_PRAGMAS} s against {_STOCK} s", _STOCK / _PRAGMAS, ORM_SOURCE,
        "sum_ms", {"pragmas": "tuned"}, {"pragmas": "stock", "journal": "rollback"},
    ),
    Published(
        "orm", "compile-time options against the stock build, all operations",
        f"{_BUILD} s against {_STOCK} s", _STOCK / _BUILD, ORM_SOURCE,
        "sum_ms", {"build": "seed"}, {"build": "stock"},
    ),
    Published(
        "orm", "tuned SQLite against PostgreSQL 14 with its defaults, all operations",
        f"{_BOTH} s against {_SERVER} s", _SERVER / _BOTH, ORM_SOURCE,
        "sum_ms", {"pragmas": "tuned"}, {"driver": "postgresql"},
    ),
    Published(
        "kv", "reads: WAL against a rollback journal", "70,000 to 83,000 against 5,600 reads/s",
        76_500 / 5_600, KV_SOURCE, "reads_per_second", _WAL, _ROLLBACK,
    ),
    Published(
        "kv", "writes: WAL against a rollback journal", "3,600 to 4,300 against 291 writes/s",
        3_950 / 291, KV_SOURCE, "writes_per_second", _WAL, _ROLLBACK,
    ),
    Published(
        "kv", "99th percentile of a read: WAL against a rollback journal", "0.5 ms against 20 ms",
        40.0, KV_SOURCE, "latency:read:99", _WAL, _ROLLBACK,
    ),
    Published(
        "inserts", "WAL against SQLite's defaults", "~2,500 against 756 inserts/s", 2_500 / 756,
        INSERTS_SOURCE, "inserts_per_second", {"step": "wal"}, {"step": "defaults"},
    ),
    Published(
        "inserts", "synchronous=NORMAL against FULL, in WAL mode",
        "~25,000 against ~2,500 inserts/s", 10.0, INSERTS_SOURCE,
        "inserts_per_second", {"step": "normal"}, {"step": "wal"},
    ),
    *(
        Published(
            "inserts", f"{words} against without", "no large effect", None, INSERTS_SOURCE,
            "inserts_per_second", {"step": step}, {"step": below},
        )
        for step, below, words in (
            ("temp_store", "normal", "temp_store=MEMORY"),
            ("exclusive", "temp_store", "locking_mode=EXCLUSIVE"),
            ("cache", "exclusive", "a cache of 1 GB"),
            ("prepared", "cache", "prepared statements"),
        )
    ),
    Published(
        "busy", "the slowest child, nobody long: 1 ms against the growing back-off",
        "27 ms against 107 ms", 107 / 27, BUSY_SOURCE,
        "slowest_child_ms", _BUSY | {"long": "0"}, {"busy": "backoff"},
    ),
    Published(
        "busy", "the slowest child behind one long transaction: 1 ms against the back-off",
        "902 ms against 1,424 ms", 1_424 / 902, BUSY_SOURCE,
        "slowest_child_ms", _BUSY | {"long": "1"}, {"busy": "backoff"},
    ),
    # Of p99.99, for which a repeat of some seconds has too few requests: here it is p99.
    Published(
        "web", "the tail at 4, 8, 16, 32 clients (p99.99; here p99): 1 ms against the back-off",
        "0.051, 0.534, 0.472, 0.501 s against 0.211, 0.785, 1.073, 1.525 s", None, WEB_SOURCE,
        "latency:request:99", {"settings": "rollback", "busy": "fair", "mix": "balanced"},
        {"busy": "backoff"},
    ),
    Published(
        "web", "requests/s, balanced mix: tuned against stock", "660 against 16.5", 660 / 16.5,
        WEB_SOURCE,
        "requests_per_second", {"settings": "wal", "mix": "balanced"}, {"settings": "defaults"},
    ),
    Published(
        "web", "requests/s of single INSERTs: 16 clients against 8", "633 against 2,572",
        633 / 2_572, SINGLE_SOURCE,
        "requests_per_second", {"mix": "single_insert", "clients": "16"}, {"clients": "8"},
    ),
)  # fmt: skip


def answered(results: Sequence[Result]) -> list[tuple[Published, list[Measured]]]:
    """The claims that concern workloads of these results, and what each of them says of each."""
    workloads = {result.workload for result in results}
    return [
        (claim, [one for result in results for one in measured(claim, result)])
        for claim in PUBLISHED
        if claim.workload in workloads
    ]


def table(results: Sequence[Result]) -> Drawing | None:
    """What was published beside what was measured; ``None`` without a claim of these workloads."""
    found = answered(results)
    lines = []
    for claim, answers in found:
        ratio = ABSENT if claim.ratio is None else number(claim.ratio)
        said = [(str(one), f"{one.row} / {one.against}") for one in answers] or [(ABSENT, ABSENT)]
        lines.append(Line(f"{claim.workload}: {claim.claim}", (claim.figure, ratio, *said[0])))
        # Of several answers the first line says of what.
        lines += [Line("also", ("", "", *one)) for one in said[1:]]
    if not lines:
        return None
    sources = dict.fromkeys(f"{claim.workload}: {claim.source}" for claim, _ in found)
    return Drawing(TITLE, "claim", HEADINGS, lines, [*sources, CAUTION])


def measured(claim: Published, result: Result) -> list[Measured]:
    """What a result says about a claim: one answer for each row that has both sides."""
    if result.workload != claim.workload:
        return []
    found = []
    for row in result.rows:
        if not claim.rows.items() <= row.scenario.used().items():
            continue
        other = _other(result, row.scenario, claim.against)
        if other is None or other is row:
            continue
        times = _times(claim, result, row, other)
        if times is not None:
            found.append(Measured(row.label, other.label, times))
    return found


def _other(result: Result, scenario: Scenario, changes: Mapping[str, str]) -> Row | None:
    """The row that differs from a scenario by the changes alone."""
    wanted = {**scenario.used(), **changes}
    if "driver" in changes:
        wanted["build"] = DRIVERS.get(changes["driver"]).default_build
    # Where it has not an axis, its value is no difference: PostgreSQL has no journal.
    return next((row for row in result.rows if row.scenario.used().items() <= wanted.items()), None)


def _times(claim: Published, result: Result, row: Row, other: Row) -> Summary | float | None:
    if claim.metric.startswith("latency:"):
        _, kind, percent = claim.metric.split(":")
        mine, its = (one.percentile_ns(kind, float(percent)) for one in (row, other))
        return its / mine if mine and its else None
    metric = WORKLOADS.get(claim.workload).metric(claim.metric)
    return result.improvement(row, metric, other.label)
