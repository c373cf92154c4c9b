"""Axes: on which conditions the rows of a workload differ, and what their values mean.

A workload lists its axes, in the order in which a label names them. Those that several workloads
use are here; one that a single workload has stands with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from oxlite.bench.errors import unknown

Grid = Mapping[str, Sequence[str]]
"""Axes, and the values they range over."""

POLICIES: Mapping[str, str] = {
    "none": "not at all",
    "backoff": "SQLite's own table of growing sleeps",
    "fair": "a constant millisecond, native",
    "gate": "Oxlite's queue",
}
"""The values of ``busy`` that are policies of a driver."""

WAITING = tuple(policy for policy in POLICIES if policy != "none")
"""Those that wait."""

HANDLERS: Mapping[str, str] = {
    "jitter": "a random sleep, in Python",
    "reversed": "SQLite's table backwards, in Python",
    "held": "SQLite's table without letting go of the GIL, in Python",
}
"""The values of ``busy`` that are handlers of the lab: :mod:`oxlite.bench.drivers.handlers`."""


def require(ranges: Grid, chosen: Mapping[str, str], *more: str) -> None:
    """Refuse an axis that is none of ``ranges``, or a value that its axis does not have.

    An axis without values takes any: somebody else knows them. ``more`` are values of every axis.

    Raises:
        UsageError: there is such an axis or value; the nearest one is suggested.
    """
    for axis, value in chosen.items():
        if axis not in ranges:
            raise unknown("axis", axis, ranges)
        if ranges[axis] and value not in {*ranges[axis], *more}:
            raise unknown(f"value of the axis {axis}", value, ranges[axis])


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        name: as in a filter.
        means: what it is, for a reader.
        meanings: its values, with a few words on each; empty where only a run knows its values:
            those of the parameter of the same name.
    """

    name: str
    means: str
    meanings: Mapping[str, str]

    @property
    def values(self) -> tuple[str, ...]:
        """Its values, in order."""
        return tuple(self.meanings)

    def of(self, *values: str) -> "Axis":
        """The same with some of its values alone, in this order."""
        return replace(self, meanings={value: self.meanings[value] for value in values})


def of_parameter(name: str, means: str) -> Axis:
    """The axis whose values are those of a parameter of the run."""
    return Axis(name, means, {})


DRIVER = Axis(
    "driver",
    "who talks to the database",
    {
        "stdlib": "Python's own sqlite3",
        "apsw": "APSW",
        "aiosqlite": "aiosqlite, on Python's own sqlite3",
        "oxlite": "Oxlite",
        "postgresql": "psycopg and a PostgreSQL server of the run's own",
        "redis": "Redis, a server of the run's own",
        "honker": "honker, notifications and queues in SQLite",
        "channels_redis": "channels-redis, and a Redis server of the run's own",
        "channels_lite": "channels-lite, on Python's own sqlite3",
        "memory": "nobody: messages stay in the memory of one process",
        "diskcache": "diskcache, on Python's own sqlite3",
        "filebased": "Django's FileBasedCache",
        "locmem": "Django's LocMemCache, in the memory of each process",
        "celery": "Celery, and a Redis server of the run's own",
        "huey": "Huey, on Python's own sqlite3",
        "django_tasks_db": "django-tasks-db, on Django's own engines",
    },
)
JOURNAL = Axis(
    "journal",
    "how SQLite makes transactions atomic",
    {"rollback": "SQLite's default, DELETE", "wal": "write-ahead log"},
)
PRAGMAS = Axis(
    "pragmas",
    "which settings are made, and read back",
    {
        "stock": "none",
        "tuned": "what Rails sets since 7.1: synchronous=NORMAL, a larger cache, mmap",
        "durable": "the same with synchronous=FULL",
    },
)
BUSY = Axis("busy", "how a lock is waited for", {**POLICIES, **HANDLERS})
BUILD = Axis(
    "build",
    "the flags that SQLite was compiled with",
    {
        "own": "whatever the driver brings",
        "tuned": "Oxlite's own",
        "stock": "the crate's defaults",
        "seed": "those of the benchmarks that this lab repeats",
    },
)
"""Every workload has it; it ranges only where a filter says so."""

DISTURBANCE = Axis(
    "disturbance",
    "what else goes on",
    {
        "calm": "nothing",
        "outsiders": "half of the processes use the standard library's SQLite",
        "kills": "writers are killed",
    },
)
PROCESSES = of_parameter("processes", "how many processes")
THREADS = of_parameter("threads", "how many threads in each process")
INTERPRETER = of_parameter("interpreter", "the Python that workers run on")
