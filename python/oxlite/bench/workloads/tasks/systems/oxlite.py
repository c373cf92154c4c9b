"""Oxlite's tasks: ``oxlite worker oxlite.bench.workloads.tasks.systems.oxlite:queue`` runs them."""

from collections.abc import Iterable
from typing import Any

from oxlite import connect
from oxlite.bench.workloads.tasks import functions
from oxlite.bench.workloads.tasks.systems.base import System, told
from oxlite.tasks import Queue

queue = Queue(told().path)
run = queue.task(functions.run)
hold = queue.task(functions.hold)

FLOOD = """WITH RECURSIVE number (n) AS (
  SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?1)
INSERT INTO oxlite_task (name, arguments)
SELECT ?2, json_array(json_array(min(n, ?3), 0), json_object()) FROM number"""
"""How many, the task's name, the number of the last one that is counted, and one more."""


class OxliteTasks(System):
    """See the module."""

    def enqueue(self, number: int, milliseconds: int) -> object:
        """See the base class."""
        return run.enqueue(number, milliseconds)

    def hold(self, number: int, place: int) -> object:
        """See the base class."""
        return hold.enqueue(number)

    def enqueue_all(self, numbers: Iterable[int], milliseconds: int) -> None:
        """See the base class."""
        queue.enqueue_many(run, [(number, milliseconds) for number in numbers])

    def flood(self, first: int, counted: int) -> None:
        """See the base class."""
        with queue.database.write() as connection:
            connection.execute(FLOOD, (first, run.name, counted))
        # As in a file in which they have waited for long.
        plain = connect(queue.path)
        plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        plain.close()

    def waiting(self) -> int:
        """See the base class."""
        counts = queue.stats().counts
        return sum(found.get("ready", 0) for found in counts.values())

    def connection(self) -> Any:  # noqa: ANN401
        """See the base class."""
        return connect(queue.path)

    def close(self) -> None:
        """See the base class."""
        queue.close()


def system() -> System:
    """The system of this process."""
    return OxliteTasks()
