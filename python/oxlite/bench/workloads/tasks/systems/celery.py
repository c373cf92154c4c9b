"""Celery with Redis: ``celery -A oxlite.bench.workloads.tasks.systems.celery worker`` runs them.

No results are kept. Where workers are killed a task is acknowledged when it has ended, so that it
can be run again; else when it begins, as is Celery's default, which is faster.
"""

from importlib import import_module
from typing import Any

from oxlite.bench.workloads.tasks import functions
from oxlite.bench.workloads.tasks.systems.base import System, told
from oxlite.bench.workloads.tasks.systems.catalogue import celery_queue
from oxlite.bench.workloads.tasks.work import RECOVERY

_is_late = told().load == RECOVERY

app: Any = import_module("celery").Celery("lab", broker=f"redis+socket://{told().path}")
app.conf.update(
    task_ignore_result=True,
    task_default_queue=celery_queue(),
    task_acks_late=_is_late,
    task_reject_on_worker_lost=_is_late,
    broker_connection_retry_on_startup=True,
)
run: Any = app.task(functions.run, name="run")
hold: Any = app.task(functions.hold, name="hold")


class CeleryTasks(System):
    """See the module."""

    def prepare(self) -> None:
        """See the base class."""
        client = self.connection()
        client.flushall()
        client.close()

    def enqueue(self, number: int, milliseconds: int) -> object:
        """See the base class."""
        return run.delay(number, milliseconds)

    def hold(self, number: int, place: int) -> object:
        """See the base class."""
        return hold.apply_async((number,), queue=celery_queue(place))

    def waiting(self) -> int:
        """See the base class."""
        client = self.connection()
        found: int = client.llen(celery_queue())
        client.close()
        return found

    def connection(self) -> Any:  # noqa: ANN401
        """See the base class."""
        return import_module("redis").Redis(unix_socket_path=told().path)

    def close(self) -> None:
        """See the base class."""
        app.close()


def system() -> System:
    """The system of this process."""
    return CeleryTasks()
