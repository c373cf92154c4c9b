"""django-tasks-db, on Django's own engines: ``manage.py db_worker`` runs them, one at a time.

SQLite has what Django's documentation recommends for production, and connections are kept. A worker
that finds nothing sleeps for a second, which is its default.
"""

from collections.abc import Iterable
from importlib import import_module, util
from typing import Any

from oxlite.bench.drivers.postgresql import USER
from oxlite.bench.workloads.cache.site import STOCK_OPTIONS
from oxlite.bench.workloads.tasks import functions
from oxlite.bench.workloads.tasks.systems.base import System, told

BACKEND = "django_tasks_db.DatabaseBackend"
TASKS = "django.tasks" if util.find_spec("django.tasks") else "django_tasks"
"""Where Django's tasks are: in itself since its version 6."""


def _configure() -> None:
    import django
    from django.conf import settings

    place = told().place
    databases: dict[str, dict[str, Any]] = {
        "file": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": place,
            "OPTIONS": STOCK_OPTIONS,
        },
        "postgresql": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": str(place.parent),
            "NAME": place.name,
            "USER": USER,
        },
    }
    settings.configure(
        # Else a worker connects anew for each task, which takes longer than the task.
        DATABASES={"default": {**databases[told().way], "CONN_MAX_AGE": None}},
        INSTALLED_APPS=[app for app in (TASKS, "django_tasks_db") if app != "django.tasks"],
        TASKS={"default": {"BACKEND": BACKEND}},
        USE_TZ=True,
    )
    django.setup()


_configure()

task: Any = import_module(TASKS).task


# It finds a task by the module and the name of its function, and so needs one here.
@task  # type: ignore[untyped-decorator]
def run(number: int, milliseconds: int) -> None:
    """See ``functions``."""
    functions.run(number, milliseconds)


@task  # type: ignore[untyped-decorator]
def hold(number: int) -> None:
    """See ``functions``."""
    functions.hold(number)


class DjangoTasksDb(System):
    """See the module."""

    def prepare(self) -> None:
        """See the base class."""
        from django.core.management import call_command

        call_command("migrate", verbosity=0)

    def enqueue(self, number: int, milliseconds: int) -> object:
        """See the base class."""
        return run.enqueue(number, milliseconds)

    def hold(self, number: int, place: int) -> object:
        """See the base class."""
        return hold.enqueue(number)

    def enqueue_all(self, numbers: Iterable[int], milliseconds: int) -> None:
        """See the base class."""
        from django.db.transaction import atomic

        with atomic():
            super().enqueue_all(numbers, milliseconds)

    def waiting(self) -> int:
        """See the base class."""
        from django_tasks_db.models import DBTaskResult

        found: int = DBTaskResult.objects.ready().count()
        return found

    def connection(self) -> Any:  # noqa: ANN401
        """See the base class."""
        from django.db import connection

        connection.ensure_connection()
        return connection.connection

    def close(self) -> None:
        """See the base class."""
        from django.db import connections

        connections.close_all()


def system() -> System:
    """The system of this process."""
    return DjangoTasksDb()


def work() -> None:
    """Be a worker, until the process ends."""
    from django.core.management import call_command

    call_command("db_worker", startup_delay=False, verbosity=0)
