"""How many times faster than its peers the cache has to be, and how well it keeps its limit."""

from collections.abc import Iterable

from oxlite.bench.claims import Claim
from oxlite.bench.harness.model import Metric
from oxlite.bench.workloads.cache import work
from oxlite.bench.workloads.cache.figures import (
    BEHIND,
    GETS,
    INCRS,
    LONGEST,
    OVER,
    SET_P999,
    SETS,
)
from oxlite.bench.workloads.cache.systems import ASYNCIO, DJANGO, RAW, UNIX

OURS = {"driver": "oxlite", "way": "file"}
OPERATIONS = {**OURS, "load": work.FIXED}
RAW_OF = {**OPERATIONS, "interface": RAW}
ONE, EIGHT = {**RAW_OF, "processes": "1"}, {**RAW_OF, "processes": "8"}
DJANGO_OF_ONE = {**OPERATIONS, "interface": DJANGO, "processes": "1"}
TASKS = {**OPERATIONS, "interface": ASYNCIO, "tasks": "64"}

REDIS = {"driver": "redis", "way": UNIX}
DISKCACHE = {"driver": "diskcache"}
DJANGOS = {
    "RedisCache": (4.0, REDIS),
    "DatabaseCache": (10.0, {"driver": "stdlib", "way": "table"}),
    "DatabaseCache on Oxlite's engine": (10.0, {"driver": "oxlite", "way": "table"}),
    "FileBasedCache": (3.0, {"driver": "filebased"}),
}
NAMED = ("interface", "processes", "tasks")


def _times(
    rows: dict[str, str], name: str, against: dict[str, str], bars: Iterable[tuple[Metric, float]]
) -> list[Claim]:
    return [
        Claim(f"{metric.title}, times that of {name}", metric, bar, rows, against, named=NAMED)
        for metric, bar in bars
    ]


CLAIMS = (
    *_times(ONE, "Redis by its Unix socket", REDIS, [(GETS, 5.0), (SETS, 2.5)]),
    *_times(EIGHT, "Redis by its Unix socket", REDIS, [(GETS, 4.0), (SETS, 1.0), (INCRS, 1.0)]),
    Claim(f"{SET_P999.title}, ms", SET_P999, 10.0, EIGHT, at_least=False, named=NAMED),
    *(
        claim
        for name, (bar, against) in DJANGOS.items()
        for claim in _times(DJANGO_OF_ONE, name, against, [(GETS, bar)])
    ),
    *_times(ONE, "diskcache", DISKCACHE, [(GETS, 1.6), (SETS, 5.0)]),
    *_times(TASKS, "redis.asyncio", REDIS, [(GETS, 3.0)]),
    Claim(
        OVER.title, OVER, 5.0, {"driver": "oxlite", "load": work.LIMIT}, at_least=False,
        named=("load", "processes"),
    ),
    Claim(
        f"{LONGEST.title}, ms", LONGEST, 20.0,
        {"driver": "oxlite", "load": work.LIMIT, "processes": "1"}, at_least=False,
        named=("load", "processes"),
    ),
    *(
        Claim(
            BEHIND.title, BEHIND, 3.0, {"driver": "oxlite", "load": load}, at_least=False,
            named=("load",),
        )
        for load in work.TRACES
    ),
)  # fmt: skip
