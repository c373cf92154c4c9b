"""What a report of ``tasks`` shows: latencies, rates, recovery, idle workers, and the bars."""

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.layout import Drawable, Table, against, errors, maximum, median, percentile
from oxlite.bench.workloads.tasks import work
from oxlite.bench.workloads.tasks.claims import CELERY, CLAIMS, FEWEST_WAITING
from oxlite.bench.workloads.tasks.figures import (
    BEGUN,
    CALLS,
    ENQUEUED,
    LONGEST,
    RATE,
    RECOVERED,
    RECOVERY,
    RUNNING,
    WAKEUPS,
)

KEPT = (
    "Oxlite (profile web), honker and SQLite under django-tasks-db have a WAL and "
    "synchronous=NORMAL: a task outlasts a crash of the process, and the last ones may be lost "
    "with the power. PostgreSQL has its defaults, and each commit waits for the disk. Huey's file "
    "is not synced. Redis is told to save nothing: Celery's tasks are in memory alone."
)
POLLED = (
    "Huey's worker sleeps .1 to 10 s where there is nothing to do, that of django-tasks-db 1 s, "
    "and honker's looks each millisecond: their defaults."
)
ONCE = "Celery acknowledges a task when it begins, except where workers are killed."

TABLES: tuple[Drawable, ...] = (
    Table(
        "From the call that enqueues to the first line of the task, ms",
        (
            *(percentile(f"p{p:g}", BEGUN, p) for p in (50.0, 99.0)),
            maximum("max", BEGUN),
            errors("errors"),
        ),
        {"load": work.LATENCY},
        remarks=(POLLED, KEPT),
    ),
    *(
        Table(
            title,
            (
                median("tasks/s", RATE),
                against("than Celery", RATE, **CELERY),
                errors("errors"),
            ),
            {"load": load},
            ("processes", "threads"),
            remarks=(ONCE,),
        )
        for load, title in (
            (work.EMPTY, "Empty tasks in a second"),
            (work.SHORT, "Tasks of 1 ms in a second"),
            (work.LONG, "Tasks of 10 ms in a second"),
        )
    ),
    Table(
        "Tasks enqueued in a second, each in a transaction of its own",
        (
            median("tasks/s", ENQUEUED),
            against("than Celery", ENQUEUED, **CELERY),
            *(percentile(f"p{p:g}, ms", CALLS, p) for p in (50.0, 99.0)),
            maximum("max, ms", CALLS),
            errors("errors"),
        ),
        {"load": work.ENQUEUE},
        ("enqueuers",),
        remarks=(KEPT,),
    ),
    Table(
        "From a worker's death to its task's beginning on another, ms",
        (
            median("median", RECOVERY),
            median("longest", LONGEST),
            maximum("max", RECOVERED),
            errors("errors"),
        ),
        {"load": work.RECOVERY},
    ),
    Table(
        "Tasks in a second while others wait behind them",
        (
            median("tasks/s", RATE),
            against(f"than with {FEWEST_WAITING:,}", RATE, waiting=str(FEWEST_WAITING)),
            errors("errors"),
        ),
        {"load": work.WAITING},
    ),
    Table(
        "An idle worker: wake-ups and processor time while nothing is enqueued",
        (median("wake-ups", WAKEUPS), median("processor ms", RUNNING)),
        {"load": work.IDLE},
    ),
    ClaimsTable("Tasks against their bars", CLAIMS),
)
