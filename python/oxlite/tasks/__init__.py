"""Tasks: what is to be done later, in the same file as the data, by workers that are woken.

>>> from oxlite.tasks import Queue
>>> queue = Queue("app.db")
>>> @queue.task
... def send_mail(address: str) -> None: ...
>>> send_mail.enqueue("ann@example.org")

A task can be enqueued as part of the transaction that it belongs to. It is run at least once;
``TaskContext.finish`` commits its last writes together with its completion.
"""

from oxlite.tasks.context import TaskContext, current_task
from oxlite.tasks.errors import (
    Retry,
    TaskCancelled,
    TaskLost,
    TaskNotFound,
    TaskUnsuccessful,
    TimeLimitExceeded,
    UnfitArguments,
    UnknownTask,
    WorkerLost,
)
from oxlite.tasks.queue import Queue
from oxlite.tasks.result import TaskError, TaskResult
from oxlite.tasks.statistics import QueueStatistics
from oxlite.tasks.task import Task, TaskOptions
from oxlite.tasks.worker import Worker

__all__ = [
    "Queue",
    "QueueStatistics",
    "Retry",
    "Task",
    "TaskCancelled",
    "TaskContext",
    "TaskError",
    "TaskLost",
    "TaskNotFound",
    "TaskOptions",
    "TaskResult",
    "TaskUnsuccessful",
    "TimeLimitExceeded",
    "UnfitArguments",
    "UnknownTask",
    "Worker",
    "WorkerLost",
    "current_task",
]
