"""A worker as a program: its processes, what it logs, and its limits."""

import logging
import resource
from collections.abc import Callable

from oxlite.tasks.context import current_task
from oxlite.tasks.supervisor import Supervisor
from oxlite.tasks.worker import Worker

__all__ = ["TaskIdFilter", "run_worker", "set_up_logging"]

_log = logging.getLogger("oxlite.tasks")

_FORMAT = "%(asctime)s %(levelname)s [%(process)d%(task)s] %(name)s: %(message)s"


class TaskIdFilter(logging.Filter):
    """Adds to each record of what task it is: ``task``, which is `` task 7`` or empty."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add it, and let the record pass."""
        task = current_task()
        record.task = "" if task is None else f" task {task.id}"
        return True


def set_up_logging(level: int) -> None:
    """Log to standard error, with the task's number, unless logging is set up already."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler()
    handler.addFilter(TaskIdFilter())
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)
    root.setLevel(level)


def run_worker(
    worker_of: Callable[[Callable[[int, float | None], None]], Worker],
    *,
    processes: int = 1,
    memory_mebibytes: int | None = None,
    grace: float = 30.0,
    log_level: int = logging.INFO,
) -> int:
    """Run tasks until SIGTERM or SIGINT.

    Args:
        worker_of: Returns a worker; called in each process, where the application is imported,
            with what is to be its ``told``.
        processes: How many processes run tasks.
        memory_mebibytes: The address space of each process.
        grace: For how many seconds what runs may go on after the signal.
        log_level: What is logged, if logging is not set up by then.

    Returns:
        The exit code.
    """

    def make(told: Callable[[int, float | None], None]) -> Worker:
        if memory_mebibytes is not None:
            limit = memory_mebibytes << 20
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        worker = worker_of(told)
        _log.info("runs tasks of %s", worker)
        return worker

    set_up_logging(log_level)
    return Supervisor(make, processes, grace).run()
