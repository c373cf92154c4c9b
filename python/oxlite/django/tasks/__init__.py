"""Django's tasks in the site's own database: the application and the backend.

>>> INSTALLED_APPS = [..., "oxlite.django.tasks"]
>>> TASKS = {"default": {"BACKEND": "oxlite.django.tasks.OxliteBackend"}}

``enqueue`` inside ``atomic()`` is part of that transaction; ``manage.py oxlite_worker`` runs tasks.
"""

from oxlite.django.tasks.backend import OxliteBackend
from oxlite.django.tasks.decorator import task
from oxlite.django.tasks.task import (
    OxliteTask,
    OxliteTaskContext,
    OxliteTaskResult,
    TaskExpired,
)
from oxlite.django.tasks.work import run_ready_tasks, start_worker

__all__ = [
    "OxliteBackend",
    "OxliteTask",
    "OxliteTaskContext",
    "OxliteTaskResult",
    "TaskExpired",
    "run_ready_tasks",
    "start_worker",
    "task",
]
