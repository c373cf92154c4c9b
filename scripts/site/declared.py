"""Which charts there are: of each the record, the table, the column, and the rows with names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Chart:
    """Where the figures of a chart are found.

    Attributes:
        title: What it shows, with the unit.
        record: The page of docs/evidence, without its suffix.
        table: How the title of the table begins.
        column: The heading of the column.
        better: Which way is better.
        groups: Of each part, under its name: rows of the table with their names here. Every row of
            the table, under its own name, if there are none.
        kind: Lengths from nothing, or how many times better than a peer.
        note: A column whose cell is said beside a figure if it is not 0, and how.
    """

    title: str
    record: str
    table: str
    column: str
    better: Literal["higher", "lower"]
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kind: Literal["bars", "ratios"] = "bars"
    note: tuple[str, str] | None = None


_KV = {
    "SQLite's own settings": {
        "stdlib rollback stock backoff": "sqlite3",
        "oxlite rollback stock backoff": "Oxlite, SQLite's sleeps",
        "oxlite rollback stock gate": "Oxlite, queue",
    },
    "WAL, tuned": {
        "stdlib wal tuned backoff": "sqlite3",
        "oxlite wal tuned backoff": "Oxlite, SQLite's sleeps",
        "oxlite wal tuned fair": "Oxlite, fair",
        "oxlite wal tuned gate": "Oxlite, queue",
    },
}
_GATE = {
    f"{count} processes, {title}": {
        f"oxlite {pragmas} {busy} {count} processes": name
        for busy, name in (("backoff", "SQLite's sleeps"), ("fair", "fair"), ("gate", "queue"))
    }
    for pragmas, title in (("tuned", "synchronous=NORMAL"), ("durable", "synchronous=FULL"))
    for count in (4, 25)
}
_THREADS = {
    f"{count} threads": {
        f"stdlib backoff mutex {count} threads": "sqlite3, one mutex",
        f"stdlib backoff own {count} threads": "sqlite3, a connection each",
        f"oxlite backoff mutex {count} threads": "Oxlite, one mutex",
        f"oxlite backoff own {count} threads": "Oxlite, a connection each",
        f"oxlite gate group {count} threads": "oxlite.Database",
    }
    for count in (4, 16, 64)
}
_SHARED = {
    f"{count} processes": {
        f"oxlite backoff each {count} processes": "SQLite's sleeps",
        f"oxlite gate each {count} processes": "queue",
        f"oxlite gate shared {count} processes": "queue, shared syncs",
    }
    for count in (4, 25)
}


def _tasks_of_a_loop(*, reads: bool) -> dict[str, dict[str, str]]:
    found = {}
    for count, word in ((1, "task"), (16, "tasks"), (64, "tasks")):
        rows = {f"aiosqlite cursor {count} {word}": "aiosqlite, cursor"}
        if reads:
            rows[f"aiosqlite fetchall {count} {word}"] = "aiosqlite, execute_fetchall"
        rows[f"oxlite cursor {count} {word}"] = "oxlite.aio.connect, cursor"
        rows[f"oxlite database {count} {word}"] = "oxlite.aio.Database"
        found[f"{count} {word}"] = rows
    return found


_WEB = {
    f"{count} clients": {
        f"stdlib backoff defaults request {count} clients": "Django's own, as it is",
        f"stdlib backoff immediate request {count} clients": "… with IMMEDIATE",
        f"stdlib backoff wal kept {count} clients": "… and WAL, connections kept",
        f"oxlite gate engine request {count} clients": "oxlite.django",
        f"oxlite gate engine kept {count} clients": "oxlite.django, connections kept",
    }
    for count in (8, 32)
}
_WEB_PG = {
    f"{count} clients": {
        f"stdlib backoff defaults {count} clients": "Django's own, as it is",
        f"stdlib backoff immediate {count} clients": "… with IMMEDIATE",
        f"oxlite gate engine {count} clients": "oxlite.django",
        f"postgresql {count} clients": "PostgreSQL",
    }
    for count in (8, 32, 64)
}
_NOTIFY = {
    f"{count} {word}, {hertz:,} messages a second": {
        f"oxlite thread {count} {word} {hertz} hertz": "Oxlite, in a thread",
        f"oxlite task {count} {word} {hertz} hertz": "Oxlite, in a task",
        f"redis thread {count} {word} {hertz} hertz": "Redis",
        **({f"postgresql thread {count} {word} {hertz} hertz": "PostgreSQL"} if count == 1 else {}),
        f"honker task {count} {word} {hertz} hertz": "honker",
        f"stdlib poll {count} {word} {hertz} hertz": "a look each millisecond",
    }
    for count, word, hertz in ((1, "listener", 100), (1, "listener", 1000), (100, "listeners", 100))
}
_CABLE = {
    f"{count} {word}": {
        f"oxlite file {count} {word} 20 hertz": "Oxlite",
        f"channels_redis core {count} {word} 20 hertz": "channels-redis",
        f"channels_redis pubsub {count} {word} 20 hertz": "channels-redis, pub/sub",
    }
    for count, word in ((1, "client"), (50, "clients"), (200, "clients"))
}
_CACHE = {
    f"{count} {word}": {
        f"oxlite raw file fixed {count} {word}": "Oxlite",
        f"redis raw unix fixed {count} {word}": "Redis, Unix socket",
        f"diskcache raw file fixed {count} {word}": "diskcache",
    }
    for count, word in ((1, "process"), (8, "processes"))
}
_QUEUES = {
    "oxlite file": "Oxlite",
    "celery redis": "Celery, Redis",
    "huey file": "Huey, SQLite",
    "django_tasks_db file": "django-tasks-db, SQLite",
    "django_tasks_db postgresql": "django-tasks-db, PostgreSQL",
    "honker file": "honker",
}


def _queues(end: str) -> dict[str, str]:
    return {f"{row} {end}": name for row, name in _QUEUES.items()}


_BACKUPS = {
    "oxlite none": "no backup",
    "oxlite oxlite": "oxlite backup",
    "oxlite oxlite_zstd": "oxlite backup, compressed",
    "oxlite shell": "sqlite3 .backup",
    "oxlite vacuum": "VACUUM INTO",
    "oxlite stdlib": "sqlite3's backup()",
    "oxlite cp": "cp",
}
_WATCHED = {
    f"{count} {word}": {
        f"oxlite unwatched {count} {word}": "not watched",
        f"oxlite watched {count} {word}": "watched by oxlite top",
        f"oxlite slow_log {count} {word}": "with a log of slow statements",
    }
    for count, word in ((1, "process"), (4, "processes"))
}
_TITLE_OF_RATIOS = "Microseconds per operation"

CHARTS: Mapping[str, Chart] = {
    "kv-writes": Chart(
        "Writes a second, 25 processes that read and write",
        "kv",
        "Throughput and fairness",
        "writes/s",
        "higher",
        _KV,
    ),
    "kv-longest": Chart(
        "The longest write, ms, 25 processes that read and write",
        "kv",
        "Latency",
        "max",
        "lower",
        _KV,
    ),
    "gate-writes": Chart(
        "Writes a second, processes that only write",
        "gate",
        "Writes and fairness",
        "writes/s",
        "higher",
        _GATE,
    ),
    "gate-longest": Chart(
        "The longest wait for the write lock, ms",
        "gate",
        "Wait of one write",
        "longest",
        "lower",
        _GATE,
    ),
    "inserts-full": Chart(
        "Durable inserts a second (WAL, synchronous=FULL)",
        "inserts",
        "Threads, WAL, synchronous=FULL: inserts/s",
        "inserts/s",
        "higher",
        _THREADS,
    ),
    "inserts-full-p99": Chart(
        "One durable insert at p99, ms",
        "inserts",
        "Threads, WAL, synchronous=FULL: times",
        "p99",
        "lower",
        _THREADS,
    ),
    "inserts-normal": Chart(
        "Inserts a second that need not be durable (WAL, synchronous=NORMAL)",
        "inserts",
        "Threads, WAL, synchronous=NORMAL: inserts/s",
        "inserts/s",
        "higher",
        _THREADS,
    ),
    "shared-writes": Chart(
        "Durable writes a second, several processes",
        "shared",
        "Durable writes and fairness",
        "writes/s",
        "higher",
        _SHARED,
    ),
    "async-reads": Chart(
        "Rows read a second, by tasks of one event loop",
        "async",
        "A row by its key",
        "calls/s",
        "higher",
        _tasks_of_a_loop(reads=True),
    ),
    "async-writes": Chart(
        "Durable inserts a second, by tasks of one event loop",
        "async",
        "One row, durable",
        "calls/s",
        "higher",
        _tasks_of_a_loop(reads=False),
    ),
    "async-loop": Chart(
        "How late the event loop is at p95 while rows are read, ms",
        "async",
        "A row by its key",
        "loop p95",
        "lower",
        _tasks_of_a_loop(reads=True),
    ),
    "web-requests": Chart(
        "Requests answered a second, a Django site",
        "web-connections",
        "Successful requests",
        "requests/s",
        "higher",
        _WEB,
        note=("failed %", "{} % failed"),
    ),
    "web-p99": Chart(
        "One request in a hundred takes longer than this, ms",
        "web-connections",
        "Successful requests",
        "p99",
        "lower",
        _WEB,
        note=("failed %", "{} % failed"),
    ),
    "web-longest": Chart(
        "The longest request, ms",
        "web-connections",
        "Successful requests",
        "max",
        "lower",
        _WEB,
        note=("failed %", "{} % failed"),
    ),
    "web-postgresql": Chart(
        "Requests answered a second, beside PostgreSQL",
        "web",
        "Successful requests",
        "requests/s",
        "higher",
        _WEB_PG,
        note=("failed %", "{} % failed"),
    ),
    "driver-stdlib": Chart(
        "Each operation: times faster than the standard library",
        "driver",
        _TITLE_OF_RATIOS,
        "than stdlib",
        "higher",
        kind="ratios",
    ),
    "driver-apsw": Chart(
        "Each operation: times faster than apsw",
        "driver",
        _TITLE_OF_RATIOS,
        "than apsw",
        "higher",
        kind="ratios",
    ),
    "gil-stdlib": Chart(
        "Other threads: times better than the standard library",
        "gil",
        "Medians of the repeats",
        "than stdlib",
        "higher",
        kind="ratios",
    ),
    "orm-django": Chart(
        "Each operation through Django: times faster than its own backend, tuned alike",
        "orm-django",
        "django wal tuned",
        "oxlite than stdlib",
        "higher",
        kind="ratios",
    ),
    "orm-sqlalchemy": Chart(
        "Each operation through SQLAlchemy: times faster than pysqlite",
        "orm-sqlalchemy-tuned",
        "sqlalchemy wal tuned",
        "oxlite than stdlib",
        "higher",
        kind="ratios",
    ),
    "notify-call": Chart(
        "From the call that publishes to the listener, at the median, ms",
        "notify",
        "From the commit to the listener",
        "from the call p50",
        "lower",
        _NOTIFY,
    ),
    "notify-call-p99": Chart(
        "The same at p99, ms",
        "notify",
        "From the commit to the listener",
        "from the call p99",
        "lower",
        _NOTIFY,
    ),
    "notify-idle": Chart(
        "Wake-ups of an idle listener in ten seconds",
        "notify",
        "Idle listeners",
        "wake-ups",
        "lower",
        groups={
            "": {
                "oxlite thread 1 listener": "Oxlite",
                "redis thread 1 listener": "Redis",
                "postgresql thread 1 listener": "PostgreSQL",
                "honker task 1 listener": "honker",
                "stdlib poll 1 listener": "a look each millisecond",
            }
        },
    ),
    "cable-p50": Chart(
        "From one client to the others, at the median, ms",
        "cable",
        "From the sender's WebSocket",
        "p50",
        "lower",
        _CABLE,
    ),
    "cable-p99": Chart(
        "The same at p99, ms",
        "cable",
        "From the sender's WebSocket",
        "p99",
        "lower",
        _CABLE,
    ),
    **{
        f"cache-{name}": Chart(
            f"{name} a second", "cache", "Operations in a second", name, "higher", _CACHE
        )
        for name in ("get", "set", "incr")
    },
    "cache-set-slow": Chart(
        "One set in a thousand takes longer than this, us",
        "cache",
        "How long a set takes",
        "p99.9",
        "lower",
        _CACHE,
    ),
    "tasks-begins": Chart(
        "From the call that enqueues to the task's first line, at the median, ms",
        "tasks",
        "From the call",
        "p50",
        "lower",
        {"": _QUEUES},
    ),
    "tasks-run": Chart(
        "Empty tasks a second",
        "tasks",
        "Empty tasks",
        "tasks/s",
        "higher",
        groups={
            "one worker, one thread": _queues("1 process 1 thread"),
            "eight workers, one thread each": _queues("8 processes 1 thread"),
        },
    ),
    "tasks-enqueued": Chart(
        "Tasks enqueued a second",
        "tasks",
        "Tasks enqueued",
        "tasks/s",
        "higher",
        groups={
            "one process": _queues("1 enqueuer"),
            "eight processes": _queues("8 enqueuers"),
        },
    ),
    "tasks-idle": Chart(
        "Wake-ups of an idle worker in ten seconds",
        "tasks",
        "An idle worker",
        "wake-ups",
        "lower",
        {"": _QUEUES},
    ),
    "backup-commits": Chart(
        "Commits a second while a backup is made",
        "backup",
        "Those who write",
        "commits/s",
        "higher",
        {"": _BACKUPS},
    ),
    "backup-seconds": Chart(
        "A backup of 1 GiB, seconds",
        "backup",
        "The backup",
        "seconds",
        "lower",
        {"": {row: name for row, name in _BACKUPS.items() if row != "oxlite none"}},
    ),
    "top-writes": Chart(
        "Transactions a second that write, watched and not",
        "top",
        "Rows changed",
        "transactions/s",
        "higher",
        _WATCHED,
    ),
    "top-reads": Chart(
        "Transactions a second that read, watched and not",
        "top",
        "Rows read",
        "transactions/s",
        "higher",
        _WATCHED,
    ),
}
