"""Processes that run tasks: programs of their own, and some under a supervisor.

Invariant: whoever is asked to end ends by himself, and has written what he has run.
"""

import logging
import os
import signal
import threading
from pathlib import Path
from typing import Final

from tests.tasks_kills.application import Application

from oxlite.tasks import Worker
from oxlite.tasks.service import run_worker

__all__ = ["SUPERVISED", "supervise", "work"]

SUPERVISED: Final = 2
"""So many processes a supervisor has."""

_GRACE_SECONDS: Final = 20.0


def work(folder: Path, threads: int, *, runs: bool) -> None:
    """Run tasks until SIGTERM.

    Args:
        folder: That of the application.
        threads: How many at the same time.
        runs: Whether the main thread runs some itself.
    """
    _log_to(folder)
    application = Application(folder)
    worker = application.queue.worker(threads=threads)
    if runs:
        _end_by_signal(worker)
        worker.run()
        if not worker.join(_GRACE_SECONDS):
            raise RuntimeError("it does not end")
    else:
        is_over = threading.Event()
        signal.signal(signal.SIGTERM, lambda _number, _frame: is_over.set())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        with worker:
            is_over.wait()
    application.queue.close()


def supervise(folder: Path, threads: int) -> int:
    """Have tasks run by processes of a supervisor; its exit code."""
    _log_to(folder)
    # Until the supervisor has its own.
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return run_worker(
        lambda told: Application(folder).queue.worker(threads=threads, told=told),
        processes=SUPERVISED,
        grace=_GRACE_SECONDS,
    )


def _end_by_signal(worker: Worker) -> None:
    signal.signal(signal.SIGTERM, lambda _number, _frame: worker.close())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _log_to(folder: Path) -> None:
    logging.basicConfig(
        filename=folder / "log",
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s [%(process)d] %(name)s: %(message)s",
    )
