"""What a report of ``cache`` shows: rates, times, room, the limit, hits, and the bars."""

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import (
    ABSENT,
    WITHHELD,
    Column,
    Drawable,
    Table,
    errors,
    largest,
    median,
    number,
)
from oxlite.bench.workloads.cache import work
from oxlite.bench.workloads.cache.claims import CLAIMS
from oxlite.bench.workloads.cache.figures import (
    BEHIND,
    DISK,
    GETS,
    HITS,
    INCRS,
    LONGEST,
    MANY,
    MEMORY,
    MISSES,
    OVER,
    SETS,
)

GROUPED = ("interface", "load", "processes", "tasks")
KEPT = (
    "Oxlite has its profile cache: a value outlasts a crash of the process, and may be lost with "
    "the power. Redis is told to save nothing, or with its append-only file to sync it each "
    "second. diskcache and Django's tables have a WAL and synchronous=NORMAL."
)
SERIALISED = (
    "raw and asyncio: bytes, which nobody serialises. django: an object with as many bytes, which "
    "every backend pickles."
)


def _microseconds(heading: str, kind: str, percent: float | None) -> Column:
    """A percentile of all repeats together, or the largest, in microseconds."""

    def text(_: Result, row: Row) -> str:
        found = row.latencies.get(kind)
        if found is None or row.failure is not None:
            return ABSENT
        value_ns = found.maximum_ns if percent is None else found.percentiles.get(percent)
        return WITHHELD if value_ns is None else number(value_ns / 1e3)

    return Column(heading, text)


def _times(title: str, *columns: Column) -> Table:
    return Table(title, columns, grouped=GROUPED, uses=("interface",))


TABLES: tuple[Drawable, ...] = (
    Table(
        "Operations in a second",
        (
            median("get", GETS),
            median("miss", MISSES),
            median("get_many", MANY),
            median("incr", INCRS),
            median("set", SETS),
            errors("errors"),
        ),
        grouped=GROUPED,
        uses=("interface",),
        remarks=(SERIALISED, KEPT),
    ),
    *(
        _times(
            f"How long a {kind} takes, us",
            *(_microseconds(f"p{p:g}", kind, p) for p in (50.0, 99.0, 99.9)),
            _microseconds("max", kind, None),
        )
        for kind in (work.GET, work.SET)
    ),
    _times(
        "How long the others take, us",
        *(
            _microseconds(f"{kind} p{p:g}", kind, p)
            for kind in (work.GET_MANY, work.INCR)
            for p in (50.0, 99.0)
        ),
    ),
    _times("Room, MiB", median("on the disk", DISK), median("memory", MEMORY)),
    Table(
        "A limit that is kept while values of random sizes are set",
        (
            largest("beyond it at most, %", OVER),
            median("longest set, ms", LONGEST),
            median("set/s", SETS),
            errors("errors"),
        ),
        {"load": work.LIMIT},
    ),
    *(
        Table(
            title,
            (
                median("hits, %", HITS),
                median("fewer than an exact LRU's, points", BEHIND),
                errors("errors"),
            ),
            {"load": load},
        )
        for load, title in (
            (work.ZIPF, "Hits of a cache that is too small, beside an exact LRU"),
            (work.SCAN, "The same, with a scan in the midst"),
        )
    ),
    ClaimsTable("The cache against its bars", CLAIMS),
)
