"""How soon a task has to begin, how many have to run, and what waiting may cost."""

from oxlite.bench.claims import Claim, NoneFail
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.tasks import work
from oxlite.bench.workloads.tasks.figures import ENQUEUED, LONGEST, P50, P99, RATE, WAKEUPS

OURS = {"driver": "oxlite", "way": "file"}
ONE = {"processes": "1", "threads": "1"}
LATENCY = {**OURS, "load": work.LATENCY}
EMPTY = {**OURS, "load": work.EMPTY}

CELERY = {"driver": "celery", "way": "redis"}
DJANGO = {
    "django-tasks-db on SQLite": {"driver": "django_tasks_db", "way": "file"},
    "django-tasks-db on PostgreSQL": {"driver": "django_tasks_db", "way": "postgresql"},
}
PEERS = {
    "Celery with Redis": CELERY,
    "Huey": {"driver": "huey", "way": "file"},
    **DJANGO,
    "honker": {"driver": "honker", "way": "file"},
}
NAMED = ("load", "processes", "threads", "enqueuers", "waiting")
FEWEST_WAITING = 1_000


def _many_wait(scenario: Scenario) -> bool:
    return int(scenario["waiting"]) > FEWEST_WAITING


CLAIMS = (
    Claim(f"{P50.title}, ms", P50, 1.0, LATENCY, at_least=False),
    Claim(f"{P99.title}, ms", P99, 5.0, LATENCY, at_least=False),
    *(
        Claim(f"{metric.title}, times shorter than {name}'s", metric, 1.0, LATENCY, against)
        for metric in (P50, P99)
        for name, against in PEERS.items()
    ),
    Claim(
        "empty tasks in a second, times those of Celery with Redis", RATE, 3.0, {**EMPTY, **ONE},
        CELERY, named=("processes", "threads"),
    ),
    *(
        Claim(
            f"empty tasks in a second, times those of {name}", RATE, 10.0, {**EMPTY, **ONE},
            against, named=("processes", "threads"),
        )
        for name, against in DJANGO.items()
    ),
    Claim(
        ENQUEUED.title, ENQUEUED, 10_000.0, {**OURS, "load": work.ENQUEUE, "enqueuers": "8"},
        named=("enqueuers",),
    ),
    Claim(
        f"{LONGEST.title}, ms", LONGEST, 1_000.0, {**OURS, "load": work.RECOVERY}, at_least=False
    ),
    Claim(
        f"tasks in a second, times those with {FEWEST_WAITING:,} waiting", RATE, 1 / 1.5,
        {**OURS, "load": work.WAITING}, {"waiting": str(FEWEST_WAITING)}, named=("waiting",),
        only=_many_wait,
    ),
    Claim(WAKEUPS.title, WAKEUPS, 0.0, {**OURS, "load": work.IDLE}, at_least=False),
    NoneFail("tasks that ran twice, or a database that is locked", RATE, 0.0, OURS, named=NAMED),
)  # fmt: skip
