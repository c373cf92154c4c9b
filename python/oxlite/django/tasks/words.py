"""The words of ``django.tasks``: Django's own from 6.0 on, before that those of its backport.

Invariant: nothing else of ``oxlite.django.tasks`` names either of the two.
"""

from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "BaseTaskBackend",
    "InvalidTask",
    "InvalidTaskBackend",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "django_task",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]

if find_spec("django.tasks"):
    from django.tasks import DEFAULT_TASK_BACKEND_ALIAS, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.base import task as django_task
    from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
elif find_spec("django_tasks"):
    # Its application registers the checks, and need not be in INSTALLED_APPS: Django does it alone.
    import django_tasks.checks  # noqa: F401
    from django_tasks import DEFAULT_TASK_BACKEND_ALIAS, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.base import task as django_task
    from django_tasks.exceptions import InvalidTaskBackendError as InvalidTaskBackend
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json
else:
    raise ImproperlyConfigured(
        "oxlite.django.tasks needs django.tasks, which Django has from 6.0 on; for Django 5.2:"
        " pip install django-tasks"
    )
