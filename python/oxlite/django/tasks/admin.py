"""The page of tasks in the admin: what waits, runs and has ended; what failed is run again by hand.

Invariants:
- Nothing is changed but by the statements of ``oxlite.tasks.store``. Who has done it is logged.
- What tasks were given and have raised is text, and escaped.
"""

import json
from collections.abc import Callable, Iterable
from time import time
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.db.utils import Error as DatabaseError
from django.db.utils import IntegrityError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from oxlite.django.tasks.backend import backends
from oxlite.django.tasks.models import StoredTask
from oxlite.django.tasks.place import SiteDatabase
from oxlite.django.tasks.task import as_set
from oxlite.tasks import store

_APPLICATION = StoredTask._meta.app_label


def _place() -> SiteDatabase | None:
    """That of the first backend, if it is a database of the site: the admin has no other ones."""
    first = next(iter(backends()), None)
    return first.place if first is not None and isinstance(first.place, SiteDatabase) else None


def _instant(column: str, description: str) -> Callable[[Any, StoredTask], str]:
    @admin.display(description=description, ordering=column)
    def shown(_self: Any, task: StoredTask) -> str:
        return _clock(getattr(task, column))

    made: Callable[[Any, StoredTask], str] = shown
    return made


def _clock(seconds: float | None) -> str:
    """An instant, in the time zone of the site, to the second."""
    at = as_set(seconds)
    if at is None:
        return ""
    return f"{timezone.localtime(at) if timezone.is_aware(at) else at:%Y-%m-%d %H:%M:%S}"


def _text(written: object) -> SafeString:
    return format_html('<pre style="white-space: pre-wrap; margin: 0">{}</pre>', written)


def _json(written: str | None) -> SafeString | str:
    if written is None:
        return ""
    try:
        return _text(json.dumps(json.loads(written), ensure_ascii=False, indent=2))
    except ValueError:  # another program has written it
        return _text(written)


@admin.register(StoredTask)
class StoredTaskAdmin(admin.ModelAdmin):
    """See the module."""

    list_display = (
        *("id", "name", "queue", "status", "priority", "attempt"),
        *("enqueued", "started", "finished", "took"),
    )
    list_display_links = ("id", "name")
    list_filter = ("status", "queue")
    show_facets = admin.ShowFacets.ALWAYS
    search_fields = ("name", "arguments")
    search_help_text = "In the names of tasks, and in their arguments as JSON"
    ordering = ("-id",)
    list_per_page = 50
    show_full_result_count = False
    actions = ("run_again", "discard")
    fields = (
        *("id", "name", "queue", "status", "priority", "attempt", "worker"),
        *("enqueued", "not_before", "not_after", "started", "latest", "finished", "took"),
        *("given", "returned", "raised"),
    )
    readonly_fields = fields

    enqueued = _instant("enqueued_at", "enqueued")
    not_before = _instant("run_after", "not before")
    not_after = _instant("expires_at", "not after")
    started = _instant("started_at", "started")
    latest = _instant("attempted_at", "latest attempt")
    finished = _instant("finished_at", "finished")

    @admin.display(description="took")
    def took(self, task: StoredTask) -> str:
        """How long its latest attempt has taken, or takes."""
        begun, ended = task.attempted_at, task.finished_at
        if task.status == store.RUNNING:
            ended = time()
        if begun is None or ended is None or ended < begun:
            return ""
        return f"{ended - begun:,.3f} s"

    @admin.display(description="arguments")
    def given(self, task: StoredTask) -> Any:
        """Its arguments."""
        return _json(task.arguments)

    @admin.display(description="result")
    def returned(self, task: StoredTask) -> Any:
        """What it has returned."""
        return _json(task.result)

    @admin.display(description="errors")
    def raised(self, task: StoredTask) -> Any:
        """What its attempts have ended with, the latest first."""
        try:
            errors = json.loads(task.errors or "[]")
            return format_html_join(
                "",
                "<p>{}</p>{}",
                (
                    (_headline(error), _text(error.get("traceback") or error.get("message", "")))
                    for error in reversed(errors)
                ),
            )
        except (ValueError, AttributeError, TypeError):  # another program has written it
            return _text(task.errors)

    # What is done.

    @admin.action(description="Run again", permissions=["run_again"])
    def run_again(self, request: HttpRequest, tasks: QuerySet[StoredTask]) -> None:
        """Have tasks run again that have failed, were cancelled or have expired."""
        again = self._do(
            request, tasks, store.RETRY, "ready again", "only what has failed or did not run is"
        )
        for task in again:
            self.log_change(request, task, "Run again.")

    @admin.action(description="Discard", permissions=["discard"])
    def discard(self, request: HttpRequest, tasks: QuerySet[StoredTask]) -> None:
        """Delete tasks that do not run."""
        if discarded := self._do(request, tasks, store.DISCARD, "discarded", "what runs is not"):
            self.log_deletions(request, discarded)

    def _do(
        self,
        request: HttpRequest,
        tasks: Iterable[StoredTask],
        statement: str,
        done: str,
        otherwise: str,
    ) -> Any:
        """Do it, and say what was done; those to which it was."""
        place = _place()
        assert place is not None
        changed, left = [], 0
        for task in tasks:
            try:
                rows = place.write(statement, (task.pk,), [store.TASKS_NAME])
            except IntegrityError:  # nothing else about a task is unique
                said = f"{task}: another task with the same unique key waits or runs."
                self.message_user(request, said, messages.ERROR)
                continue
            except DatabaseError as error:
                self.message_user(request, f"{task}: {error}", messages.ERROR)
                continue
            if rows:
                changed.append(task)
            else:
                left += 1
        if count := len(changed):
            self.message_user(request, f"{count} {_noun(count)} {done}.", messages.SUCCESS)
        if left:
            said = f"{left} {_noun(left)} left as before: {otherwise}."
            self.message_user(request, said, messages.WARNING)
        return changed

    # Where it is, and who may.

    def get_queryset(self, request: HttpRequest) -> QuerySet[StoredTask]:
        """The tasks of the first backend of Oxlite's."""
        place = _place()
        found = StoredTask.objects.all().order_by(*self.get_ordering(request))
        if place is None:
            return found.none()
        if not place.query("SELECT 1 FROM oxlite_task LIMIT 1"):
            store.TABLES.prepare(
                place.connection()
            )  # TASKS may name another one since the migration
        return found.using(place.alias)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """No page where there is nothing to show."""
        return _place() is not None and super().has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tasks are enqueued by code."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """There is nothing to fill in."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """They are discarded: what runs is not."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may view them, run them again or discard them."""
        return any(self._may(request, what) for what in ("view", "change", "delete"))

    def has_run_again_permission(self, request: HttpRequest) -> bool:
        """Who may change tasks."""
        return self._may(request, "change")

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Who may delete them."""
        return self._may(request, "delete")

    def _may(self, request: HttpRequest, what: str) -> bool:
        user: Any = request.user
        return bool(user.has_perm(f"{_APPLICATION}.{what}_storedtask"))


def _noun(count: int) -> str:
    return "task is" if count == 1 else "tasks are"


def _headline(error: dict[str, Any]) -> SafeString:
    return format_html(
        "<strong>{}</strong> {} (attempt {}, {})",
        *(error.get("class", ""), error.get("message", "")),
        *(error.get("attempt", "?"), _clock(error.get("at"))),
    )
