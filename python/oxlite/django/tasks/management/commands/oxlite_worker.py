"""``manage.py oxlite_worker``: runs the tasks of a backend until it is told to end.

Invariant: no connection is open when its processes are forked.
"""

import argparse
import logging
import sys
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import autoreload

from oxlite.django.tasks.backend import OxliteBackend
from oxlite.django.tasks.timetable import recurring_of
from oxlite.django.tasks.words import DEFAULT_TASK_BACKEND_ALIAS, InvalidTaskBackend
from oxlite.django.tasks.work import at_end, backend_of, queue_names_of, worker_of
from oxlite.tasks.service import run_worker, set_up_logging

__all__ = ["Command"]

_LEVELS: Final = {0: logging.WARNING, 1: logging.INFO}


class Command(BaseCommand):
    """Runs tasks."""

    help = (
        "Runs the tasks of a backend of Oxlite's until SIGTERM or Ctrl-C: what runs then is"
        " finished, for --grace seconds."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare them."""
        parser.add_argument(
            "--backend", default=DEFAULT_TASK_BACKEND_ALIAS, help="the alias in TASKS"
        )
        parser.add_argument(
            "--queues",
            type=_names,
            help="the queues whose tasks are run, with commas between; all of the backend's unless"
            " it is said",
        )
        parser.add_argument("--processes", type=_count, help="how many; 1")
        parser.add_argument("--threads", type=_count, default=4, help="in each of them; 4")
        parser.add_argument(
            "--memory", type=_count, help="the address space of each process, in mebibytes"
        )
        parser.add_argument(
            "--grace",
            type=_seconds,
            default=30.0,
            help="for how many seconds what runs may go on after the signal; 30",
        )
        parser.add_argument(
            "--overtime",
            type=_seconds,
            default=30.0,
            help="for how many seconds a task may go on after its time limit; then its process is"
            " killed; 30",
        )
        parser.add_argument(
            "--reload",
            action=argparse.BooleanOptionalAction,
            help="begin again when code changes, in one process; with settings.DEBUG, unless"
            " --processes or --memory is said",
        )

    def handle(self, *args: object, **options: Any) -> None:
        """Run them; its exit code is ours.

        Raises:
            django.core.management.CommandError: There are no such tasks here.
        """
        is_of_processes = bool(options["processes"] or options["memory"])
        if options["reload"] and is_of_processes:
            raise CommandError("--reload is in one process: it goes without --processes, --memory")
        try:
            backend = backend_of(options["backend"])
            queue_names_of(backend, options["queues"])
            _ = backend.place.queue.path  # raises where no worker can be
            recurring_of(backend)
        except (ImproperlyConfigured, InvalidTaskBackend) as error:
            raise CommandError(str(error)) from None
        level = _LEVELS.get(options["verbosity"], logging.DEBUG)
        if options["reload"] or (
            options["reload"] is None and settings.DEBUG and not is_of_processes
        ):
            set_up_logging(level)
            autoreload.run_with_reloader(_run_here, backend, options)
            return
        connections.close_all()
        code = run_worker(
            lambda told: worker_of(
                backend, options["queues"], options["threads"], told, options["overtime"]
            ),
            processes=options["processes"] or 1,
            memory_mebibytes=options["memory"],
            grace=options["grace"],
            log_level=level,
        )
        if code:
            sys.exit(code)


def _run_here(backend: OxliteBackend, options: dict[str, Any]) -> None:
    """Run tasks in this process, which the reloader ends and begins again."""
    connections.close_all()
    worker = worker_of(backend, options["queues"], options["threads"])
    at_end(worker.stop, options["grace"])
    logging.getLogger("oxlite.tasks").info("runs tasks of %s, until code changes", worker)
    worker.run()


def _names(text: str) -> list[str]:
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError("names with commas between, such as default,mails")
    return found


def _count(text: str) -> int:
    try:
        found = int(text)
    except ValueError:
        found = 0
    if found < 1:
        raise argparse.ArgumentTypeError(f"a whole number of 1 or more, not {text!r}")
    return found


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1 << 31:
        raise argparse.ArgumentTypeError(f"a number of seconds, not {text!r}")
    return found
