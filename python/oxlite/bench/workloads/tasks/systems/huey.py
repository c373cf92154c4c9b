"""Huey on SQLite: ``huey_consumer oxlite.bench.workloads.tasks.systems.huey.huey`` runs them.

WAL is its default; commits are not synced (``fsync=False``, which it calls that), since it has no
``synchronous=NORMAL``.
"""

import sqlite3
from importlib import import_module
from typing import Any

from oxlite.bench.workloads.tasks import functions
from oxlite.bench.workloads.tasks.systems.base import QUEUE, System, told

huey: Any = import_module("huey").SqliteHuey(QUEUE, filename=told().path, fsync=False)
run: Any = huey.task(name="run")(functions.run)
hold: Any = huey.task(name="hold")(functions.hold)


class HueyTasks(System):
    """See the module."""

    def enqueue(self, number: int, milliseconds: int) -> object:
        """See the base class."""
        return run(number, milliseconds)

    def hold(self, number: int, place: int) -> object:
        """See the base class."""
        return hold(number)

    def waiting(self) -> int:
        """See the base class."""
        found: int = huey.pending_count()
        return found

    def connection(self) -> Any:  # noqa: ANN401
        """See the base class."""
        found: sqlite3.Connection = huey.storage.conn
        return found

    def close(self) -> None:
        """See the base class."""
        huey.storage.close()


def system() -> System:
    """The system of this process."""
    return HueyTasks()
