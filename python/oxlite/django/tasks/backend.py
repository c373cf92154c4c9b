"""The backend: ``oxlite.django.tasks.OxliteBackend``.

>>> TASKS = {
...     "default": {
...         "BACKEND": "oxlite.django.tasks.OxliteBackend",
...         "QUEUES": ["default", "mails"],
...         "OPTIONS": {"database": "default", "retries": 3},
...     }
... }

Invariant: what ``enqueue`` says is there is there when the transaction commits that it is part of.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils.module_loading import import_string

from oxlite.django.sqlite3.base import DatabaseWrapper
from oxlite.django.sqlite3.validation import database_file
from oxlite.django.tasks.place import OwnFile, Place, SiteDatabase
from oxlite.django.tasks.task import (
    OxliteTask,
    OxliteTaskResult,
    as_set,
    inner,
    result_of,
    with_fields,
)
from oxlite.django.tasks.timetable import faults_in
from oxlite.django.tasks.words import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    normalize_json,
    task_backends,
    task_enqueued,
)
from oxlite.tasks import store
from oxlite.tasks.result import Row

__all__ = ["OxliteBackend", "backends"]

_OF_TASKS: Final = ("retries", "retry_delay", "retry_delay_at_most", "time_limit", "keep")
_OPTIONS: Final = ("database", "path", "profile", "recurring", *_OF_TASKS)


class OxliteBackend(BaseTaskBackend):
    """Tasks in an SQLite file.

    Its OPTIONS:

    - ``database``: the alias of a database with Oxlite's engine, ``"default"`` if nothing is said.
      ``enqueue`` is part of what is open there.
    - ``path``: instead of that, a file of its own, with ``profile``. ``enqueue`` inside
      ``atomic()`` waits for the commit; a process that is killed between the two loses the task.
    - ``retries``, ``retry_delay``, ``retry_delay_at_most``, ``time_limit``, ``keep``: for tasks
      that say nothing else: see ``oxlite.tasks.Task``.
    - ``recurring``: what workers enqueue by themselves: cron lines by the names of tasks.
    """

    task_class = OxliteTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        options = dict(self.options)
        where = f"TASKS[{alias!r}]['OPTIONS']"
        if unknown := options.keys() - set(_OPTIONS):
            raise ImproperlyConfigured(
                f"{where} has {min(unknown)!r}; there are {', '.join(_OPTIONS)}"
            )
        if {"path", "database"} <= options.keys():
            raise ImproperlyConfigured(f"{where} has both database and path: the tasks are in one")
        if "profile" in options and "path" not in options:
            raise ImproperlyConfigured(
                f"{where} has a profile, which goes with path: a database of the site has its own,"
                " in DATABASES"
            )
        self.defaults = {name: options[name] for name in _OF_TASKS if name in options}
        self.recurring: Mapping[str, str] = options.get("recurring", {})
        if not isinstance(self.recurring, Mapping):
            raise ImproperlyConfigured(
                f"{where}['recurring'] has cron lines by the names of tasks, such as"
                " {'shop.tasks.tidy': '30 4 * * *'}"
            )
        self.place: Place
        if "path" in options:
            profile = options.get("profile", "web")
            self.place = OwnFile(options["path"], profile, DEFAULT_DB_ALIAS)
        else:
            self.place = SiteDatabase(options.get("database", DEFAULT_DB_ALIAS), alias)

    def validate_task(self, task: Any) -> None:
        """Refuse a task that cannot be enqueued.

        Raises:
            InvalidTask: See Django; or an option that no task can have.
        """
        super().validate_task(task)
        try:
            inner(task, self.defaults)
        except (TypeError, ValueError) as error:
            raise InvalidTask(f"{task.module_path}: {error}") from None

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> OxliteTaskResult:
        """Have a task run by a worker.

        Raises:
            InvalidTask, TypeError, ValueError: The task, or its arguments, cannot be written.
            django.db.Error: The database cannot be written. With a path: oxlite.sqlite3.Error.
        """
        self.validate_task(task)
        args, kwargs = normalize_json(list(args)), normalize_json(dict(kwargs))
        parameters = inner(task, self.defaults).parameters(tuple(args), kwargs, time.time())
        made: OxliteTaskResult | None = None

        def result(number: int) -> OxliteTaskResult:
            nonlocal made
            if made is None:
                made = result_of(_enqueued(number, parameters), task, self.alias)
            return made

        def note(number: int) -> None:
            task_enqueued.send(type(self), task_result=result(number))

        number, written = self.place.enqueue(parameters, note)
        if written is parameters:
            return result(number)
        if written is None:
            return self.get_result(str(number))
        row = _enqueued(number, written)
        return result_of(row, self.task_of(row), self.alias)

    def get_result(self, result_id: str) -> OxliteTaskResult:
        """What is known of a task.

        Raises:
            TaskResultDoesNotExist: There is none of that number.
            ImportError, TypeError: There is one, of a task that is none of this site's.
        """
        text = str(result_id)
        rows = []
        if text.isascii() and text.isdigit() and int(text) < 1 << 63:
            rows = self.place.query(f"{store.GET} WHERE id = ?1", (int(text),))
        if not rows:
            raise TaskResultDoesNotExist(result_id)
        row = Row.of(rows[0])
        return result_of(row, self.task_of(row), self.alias)

    def task_of(self, row: Row) -> Any:
        """The task of a row, whether or not this backend would enqueue it.

        After a retry its ``run_after`` is the time of that.

        Raises:
            ImportError: There is none of its name.
            TypeError: What has that name is no task.
        """
        return with_fields(
            self.named(row.name),
            priority=row.priority,
            queue_name=row.queue,
            backend=self.alias,
            run_after=as_set(row.run_after),
        )

    def named(self, name: str) -> Any:
        """The task of a name, as it was declared. Raises as ``task_of``."""
        task = import_string(name)
        if not isinstance(task, Task):
            raise TypeError(f"{name} is no task")
        return task

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """System checks: the database, the application, other backends."""
        found = [*super().check(**kwargs), *self._check_place()]
        if not apps.is_installed("oxlite.django.tasks"):
            found.append(
                checks.Warning(
                    f"TASKS[{self.alias!r}]: there is no manage.py oxlite_worker, no migration and"
                    " no page of the admin.",
                    hint="Add 'oxlite.django.tasks' to INSTALLED_APPS.",
                    id="oxlite.tasks.W001",
                )
            )
        found += [checks.Error(fault, id="oxlite.tasks.E003") for fault in faults_in(self)]
        for other in backends():
            is_shared = self.alias < other.alias and _identity(other.place) == _identity(self.place)
            shared = self.queues & other.queues or not (self.queues and other.queues)
            if is_shared and shared:
                found.append(
                    checks.Warning(
                        f"TASKS[{self.alias!r}] and TASKS[{other.alias!r}] have the same queues in"
                        " the same database: the workers of each run the tasks of both.",
                        hint="Give them other QUEUES, or other OPTIONS.",
                        id="oxlite.tasks.W003",
                    )
                )
        return found

    def _check_place(self) -> Iterator[checks.CheckMessage]:
        place = self.place
        if not isinstance(place, SiteDatabase):
            return
        if place.alias not in connections.settings:
            yield checks.Error(
                f"TASKS[{self.alias!r}] is in the database {place.alias!r}, which is not in"
                " DATABASES.",
                id="oxlite.tasks.E001",
            )
            return
        wrapper = connections[place.alias]
        if not isinstance(wrapper, DatabaseWrapper):
            yield checks.Error(
                f"TASKS[{self.alias!r}] is in DATABASES[{place.alias!r}], whose ENGINE is"
                f" {wrapper.settings_dict['ENGINE']!r}.",
                hint="It takes 'oxlite.django.sqlite3', or a file of its own:"
                " OPTIONS = {'path': BASE_DIR / 'tasks.db'}.",
                id="oxlite.tasks.E002",
            )
            return
        name = wrapper.settings_dict["NAME"]
        # Django's runner of tests has put the database there.
        is_of_tests = str(name).startswith("file:memorydb_")
        if database_file(name) is None and not is_of_tests:
            yield checks.Warning(
                f"TASKS[{self.alias!r}] is in DATABASES[{place.alias!r}], which is in memory: no"
                " worker can run its tasks.",
                hint="Give it a file.",
                id="oxlite.tasks.W002",
            )


def backends() -> list[OxliteBackend]:
    """All of this class, in the order of TASKS."""
    made = (task_backends[alias] for alias in task_backends.settings)
    return [one for one in made if isinstance(one, OxliteBackend)]


def _identity(place: Place) -> object:
    return place.alias if isinstance(place, SiteDatabase) else place.queue


def _enqueued(number: int, parameters: tuple[Any, ...]) -> Row:
    """The row of a task that was just enqueued."""
    queue_name, name, arguments, priority, now, run_after = parameters[:6]
    is_later = run_after is not None and run_after > now
    return Row(
        id=number,
        queue=queue_name,
        name=name,
        arguments=arguments,
        status=store.SCHEDULED if is_later else store.READY,
        priority=priority,
        enqueued_at=now,
        run_after=run_after,
        started_at=None,
        attempted_at=None,
        finished_at=None,
        attempt=0,
        worker=None,
        result=None,
        errors=None,
        is_cancel_requested=0,
    )
