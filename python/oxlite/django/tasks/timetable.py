"""What a site's workers enqueue from time to time: OPTIONS' ``recurring``.

>>> "OPTIONS": {"recurring": {"shop.tasks.tidy": "30 4 * * *"}}

Invariant: what is wrong with it is said before a worker begins, not when a task is due.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from oxlite.django.tasks.task import inner
from oxlite.tasks.schedule import Recurring, recurring

if TYPE_CHECKING:
    from oxlite.django.tasks.backend import OxliteBackend

__all__ = ["faults_in", "recurring_of"]


def recurring_of(backend: "OxliteBackend") -> list[Recurring]:
    """The tasks of a backend that recur, read in the time zone of the site.

    Raises:
        ImproperlyConfigured: One of them cannot.
    """
    return [_recurring(backend, name, cron) for name, cron in backend.recurring.items()]


def faults_in(backend: "OxliteBackend") -> Iterator[str]:
    """What is wrong with those of a backend."""
    for name, cron in backend.recurring.items():
        try:
            _recurring(backend, name, cron)
        except ImproperlyConfigured as error:
            yield str(error)


def _recurring(backend: "OxliteBackend", name: str, cron: str) -> Recurring:
    try:
        task = backend.named(name).using(backend=backend.alias)
        parameters = partial(inner(task, backend.defaults).parameters, (), {})
        parameters(time.time())  # it takes no arguments
        return recurring(name, cron, timezone.get_default_timezone(), parameters)
    except Exception as error:  # a module raises whatever it likes
        raise ImproperlyConfigured(
            f"TASKS[{backend.alias!r}]['OPTIONS']['recurring'][{name!r}]:"
            f" {type(error).__name__}: {error}"
        ) from error
