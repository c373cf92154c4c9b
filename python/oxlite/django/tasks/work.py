"""Who runs the tasks of a site: workers of a backend, and, in tests, the thread that asks.

Invariant: what runs in the thread that asks reads and writes by the connection of that alone.
"""

import atexit
import json
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction

from oxlite.django.tasks.backend import OxliteBackend
from oxlite.django.tasks.place import SiteDatabase
from oxlite.django.tasks.registry import SiteRegistry
from oxlite.django.tasks.task import AttemptContext, OxliteTaskResult
from oxlite.django.tasks.timetable import recurring_of
from oxlite.django.tasks.words import (
    DEFAULT_TASK_BACKEND_ALIAS,
    TaskResultDoesNotExist,
    task_backends,
)
from oxlite.tasks import Worker, store
from oxlite.tasks.claim import Claim, handed_back
from oxlite.tasks.execution import Execution
from oxlite.tasks.roster import Member, Roster
from oxlite.tasks.time_limit import OVERTIME_SECONDS

__all__ = ["at_end", "backend_of", "queue_names_of", "run_ready_tasks", "start_worker", "worker_of"]

_STOP_SECONDS: Final = 10.0
"""At the end of a program what runs has so long; then it is handed back."""


def backend_of(alias: str) -> OxliteBackend:
    """The backend of that alias.

    Raises:
        ImproperlyConfigured: It is none of Oxlite's.
        InvalidTaskBackend: There is none.
    """
    backend = task_backends[alias]
    if not isinstance(backend, OxliteBackend):
        raise ImproperlyConfigured(
            f"TASKS[{alias!r}] is no backend of Oxlite's, but {type(backend).__name__}"
        )
    return backend


def worker_of(
    backend: OxliteBackend,
    queue_names: Sequence[str] | None = None,
    threads: int = 4,
    told: Callable[[int, float | None], None] | None = None,
    overtime: float = OVERTIME_SECONDS,
) -> Worker:
    """A worker in this process.

    Args:
        backend: Whose tasks it runs.
        queue_names: Of which queues; by default of all of the backend's.
        threads: So many at the same time.
        told: See ``oxlite.tasks.Worker``.
        overtime: See there.

    Raises:
        ImproperlyConfigured: The database is in memory, it is not known of which queues, one of
            them is none of the backend's, or what is to recur cannot.
    """
    database = backend.place.queue.database
    registry = SiteRegistry(backend, database)
    names = queue_names_of(backend, queue_names)
    return Worker(
        database,
        registry,
        names,
        threads=threads,
        recurring=recurring_of(backend),
        told=told,
        overtime=overtime,
    )


def start_worker(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    threads: int = 2,
    queue_names: Sequence[str] | None = None,
) -> Worker:
    """Run tasks in threads of this process, until it ends: for small sites, in ``wsgi.py``.

    There it is called after ``get_wsgi_application()``, by which the applications are loaded. Where
    a server forks after it has imported that, it is called in each of its processes.

    Args:
        backend: Its alias.
        threads: So many run at the same time.
        queue_names: See ``worker_of``.

    Raises:
        django.core.exceptions.AppRegistryNotReady: The applications are not loaded yet.
        ImproperlyConfigured: See ``worker_of``.
        OSError, oxlite.sqlite3.Error: The file cannot be used.
    """
    apps.check_models_ready()  # no task could be imported
    worker = worker_of(backend_of(backend), queue_names, threads)
    worker.start()
    at_end(worker.stop, _STOP_SECONDS)
    return worker


def at_end(call: Callable[..., object], *arguments: object) -> None:
    """Have it called at the end of the program, while what runs can still start threads.

    With ``atexit`` alone it is called after executors were closed, and tasks would fail by that.
    """
    register = getattr(threading, "_register_atexit", atexit.register)
    register(call, *arguments)


def run_ready_tasks(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    at_most: int | None = None,
    queue_names: Sequence[str] | None = None,
) -> list[OxliteTaskResult]:
    """Run what is ready now, and what that enqueues, in this thread: for tests.

    It uses the connection of this thread, with whatever transaction is open there, so it works in a
    ``TestCase`` and in a database in memory. What is to run later stays where it is.

    Args:
        backend: Its alias.
        at_most: So many tasks at the most.
        queue_names: See ``worker_of``.

    Returns:
        The results, in the order in which they were run.

    Raises:
        ImproperlyConfigured: It is not known of which queues, or one is none of the backend's.
        RuntimeError: A worker is there, which would take for left behind what runs here. Inside of
            ``atomic()`` it sees none of it.
    """
    of = backend_of(backend)
    _refuse_workers(of)
    registry = SiteRegistry(of, None)
    execution = Execution(registry, None, OVERTIME_SECONDS)
    names = json.dumps(queue_names_of(of, queue_names))
    found: list[OxliteTaskResult] = []
    while at_most is None or len(found) < at_most:
        if (claim := _claimed(of, names)) is None:
            break
        try:
            with _unbroken():
                outcome = execution.outcome(claim)
        except BaseException:
            left = handed_back(claim)
            of.place.write(left.sql, left.parameters)
            raise
        if outcome is not None:
            written = of.place.write(outcome.sql, outcome.parameters)
            if written and outcome.then is not None:
                outcome.then()
        found += _results(of, claim, registry.latest)
    return found


@contextmanager
def _unbroken() -> Iterator[None]:
    """Take back what an error has broken of the transactions that are open in this thread.

    A worker's task has none open around it, so an error of the database breaks nothing there.
    """
    with ExitStack() as savepoints:
        for wrapper in connections.all(initialized_only=True):
            if wrapper.in_atomic_block:
                block = transaction.atomic(using=wrapper.alias)
                # Inside a test's transaction alone a task may use atomic(durable=True).
                block._from_testcase = wrapper.atomic_blocks[-1]._from_testcase
                savepoints.enter_context(block)
        yield


def _refuse_workers(backend: OxliteBackend) -> None:
    place, way_out = backend.place, "Stop it, or wait for its results: result.wait()"
    if isinstance(place, SiteDatabase):
        if place.file is None or place.wrapper.in_atomic_block:
            return
        way_out += "; inside atomic(), as in a TestCase, it sees none of it"
    path = str(place.queue.path)
    roster = Roster(path, select.poll(), lambda: None)
    roster.watch([Member._make(row) for row in place.query(store.WORKERS)])
    living = roster.names.difference(roster.ended())
    roster.leave()
    if living:
        raise RuntimeError(
            f"run_ready_tasks() beside {min(living)}, a worker that runs the tasks of {path}: both"
            f" would run the same ones. {way_out}"
        )


def _claimed(backend: OxliteBackend, queue_names: str) -> Claim | None:
    now, place = time.time(), backend.place
    for statement in (store.EXPIRE, store.PROMOTE):
        while len(place.write(statement, (now,))) == store.SLICE:
            pass
    rows = place.claim(("run_ready_tasks", now, queue_names, 1, 0.0))
    return Claim.of(rows[0]) if rows else None


def _results(
    backend: OxliteBackend, claim: Claim, latest: AttemptContext | None
) -> list[OxliteTaskResult]:
    """What has become of a task: what is kept for no time is known by its context alone."""
    try:
        return [backend.get_result(str(claim.id))]
    except TaskResultDoesNotExist:
        result = None if latest is None else latest.result
        return [] if result is None else [result]
    except (ImportError, TypeError):  # it is none of this site's
        return []


def queue_names_of(backend: OxliteBackend, said: Sequence[str] | None) -> list[str]:
    """The queues that are said, or all of the backend's.

    Raises:
        ImproperlyConfigured: There are none, or one is none of the backend's.
    """
    names = sorted(backend.queues) if said is None else list(said)
    if not names:
        raise ImproperlyConfigured(
            f"TASKS[{backend.alias!r}] has no QUEUES, so tasks may be in any: say whose tasks are"
            " run (--queues)"
        )
    if backend.queues and (unknown := set(names) - backend.queues):
        raise ImproperlyConfigured(
            f"TASKS[{backend.alias!r}]['QUEUES'] has no {min(unknown)!r}; there are"
            f" {', '.join(sorted(backend.queues))}"
        )
    return names
