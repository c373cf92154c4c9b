"""The decorator ``oxlite.django.tasks.task``, which takes all that can be said of a task.

Django's own takes no options of a backend before Django 6.1.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack, overload

from oxlite.django.tasks.task import OxliteTask
from oxlite.django.tasks.words import DEFAULT_TASK_BACKEND_ALIAS, django_task

__all__ = ["OxliteTaskOptions", "task"]

_Decorator = Callable[[Callable[..., Any]], OxliteTask]


class OxliteTaskOptions(TypedDict, total=False):
    """What can be said of a task beside what Django has: see ``OxliteTask``."""

    retries: int | None
    retry_delay: float | None
    retry_delay_at_most: float | None
    time_limit: float | None
    expires: datetime | timedelta | float | None
    unique: bool
    unique_key: str | Callable[..., str] | None
    limit: int | None
    limit_key: str | Callable[..., str] | None
    keep: float | None


@overload
def task(function: Callable[..., Any], /) -> OxliteTask: ...


@overload
def task(
    function: None = None,
    /,
    *,
    priority: int = 0,
    queue_name: str = "default",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **options: Unpack[OxliteTaskOptions],
) -> _Decorator: ...


def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    priority: int = 0,
    queue_name: str = "default",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **options: Unpack[OxliteTaskOptions],
) -> OxliteTask | _Decorator:
    """Make a task of a function.

    >>> @task(retries=5)
    ... def send_mail(order): ...

    Args:
        function: The function, or coroutine function, where no option is said.
        priority: As Django has it.
        queue_name: Likewise.
        backend: Likewise.
        takes_context: Likewise.
        options: See ``OxliteTask``.

    Returns:
        The task; where no function is given, what makes one of a function.

    Raises:
        TypeError: There is no such option; the backend is none of Oxlite's and has none of these.
        InvalidTask: It cannot have that value.
    """

    def made(function: Callable[..., Any]) -> OxliteTask:
        found: Any = django_task(
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
        )(function)
        of_oxlite: OxliteTask = found.using(**options)
        return of_oxlite

    return made if function is None else made(function)
