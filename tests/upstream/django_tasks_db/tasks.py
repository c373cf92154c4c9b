"""The tasks that django-tasks-db's tests name: their module is not in its source distribution."""

import time
from typing import Any

from oxlite.django.tasks.words import TaskContext, task_backends

urlpatterns: list[Any] = []


def task(function: Any, **options: Any) -> Any:  # noqa: ANN401
    """Django's decorator, or its backport's."""
    return task_backends["default"].task_class(func=function, **options)


@task
def noop_task(*_args: object, **_kwargs: object) -> None:
    """Do nothing."""


@task
async def noop_task_async(*_args: object, **_kwargs: object) -> None:
    """Do nothing."""


@task
def calculate_meaning_of_life() -> int:
    """What it is."""
    return 42


@task
def failing_task_value_error() -> None:
    """Fail."""
    raise ValueError("This task failed due to ValueError")


@task
def failing_task_system_exit() -> None:
    """Fail."""
    raise SystemExit("This task failed due to SystemExit")


@task
def failing_task_keyboard_interrupt() -> None:
    """Fail."""
    raise KeyboardInterrupt("This task failed due to KeyboardInterrupt")


@task
def complex_exception() -> None:
    """Fail with an error in an error."""
    raise ValueError(ValueError("This task failed"))


@task
def complex_return_value() -> object:
    """Return what cannot be JSON."""
    return {1: complex_return_value}


@task
def exit_task() -> None:
    """End the process."""
    exit(1)


@task
def hang() -> None:
    """Take long."""
    time.sleep(300)


@task
def sleep_for(seconds: float) -> None:
    """Take so long."""
    time.sleep(seconds)


def get_task_id(context: TaskContext) -> str:
    """Its own number."""
    found: str = context.task_result.id
    return found


def test_context(context: TaskContext, attempt: int) -> None:
    """Compare its attempt."""
    assert isinstance(context, TaskContext)
    assert context.attempt == attempt


get_task_id = task(get_task_id, takes_context=True)
test_context = task(test_context, takes_context=True)
