"""What a task knows of itself while it runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from oxlite import Database
from oxlite.own_tables import rows_of, text_of
from oxlite.sqlite3 import Connection
from oxlite.tasks import store
from oxlite.tasks.arguments import encoded_result
from oxlite.tasks.claim import Claim, successful
from oxlite.tasks.errors import TaskCancelled, TaskLost

__all__ = ["TaskContext", "current_task", "running"]

_current: Final[ContextVar["TaskContext | None"]] = ContextVar("oxlite_task", default=None)


def current_task() -> "TaskContext | None":
    """That of the task that runs here, if one does."""
    return _current.get()


class TaskContext:
    """See the module.

    Attributes:
        id: The task's number.
        name: The task's name.
        queue_name: Of its queue.
        attempt: Which attempt this is: 1 for the first.
        is_finished: Whether it was finished by ``finish``.
    """

    def __init__(self, claim: Claim, database: Database) -> None:
        self._claim = claim
        self._database = database
        self.id = claim.id
        self.name = claim.name
        self.queue_name = claim.queue
        self.attempt = claim.attempt
        self.is_finished = False

    def is_cancelled(self) -> bool:
        """Whether its end was asked for, or it is another's by now. It reads one row."""
        rows = self._database.query(
            "SELECT is_cancel_requested FROM oxlite_task WHERE id = ? AND attempt = ?",
            (self.id, self.attempt),
        )
        return not rows or bool(rows[0][0])

    def raise_if_cancelled(self) -> None:
        """End here if that was asked for.

        Raises:
            TaskCancelled: It was.
        """
        if self.is_cancelled():
            raise TaskCancelled

    @contextmanager
    def finish(self, result: Any = None) -> Iterator[Connection]:  # noqa: ANN401
        """Commit the last writes of the task together with its completion: both, or neither.

        What takes long is done before: the write lock is held in the block.

        >>> with context.finish() as connection:
        ...     connection.execute("UPDATE account SET paid = 1 WHERE id = ?", (7,))

        Args:
            result: What the task comes to.

        Yields:
            A connection in a transaction, as ``Database.write`` does.

        Raises:
            TaskLost: The task is another's by now. Nothing is written.
            oxlite.sqlite3.Error: It could not be committed.
        """
        with self._database.write() as connection:

            def write(sql: str, parameters: tuple[Any, ...], also: list[str]) -> list[Any]:
                rows = rows_of(connection, sql, parameters)
                if rows:
                    announcement = self._database._row_announcement(store.TOPIC_PREFIX)
                    announcement.follow(connection, [text_of(rows[0][0]), *also])
                return rows

            self._complete(result, write)
            yield connection
        self.is_finished = True

    def _complete(
        self,
        result: Any,  # noqa: ANN401
        write: Callable[[str, tuple[Any, ...], list[str]], list[Any]],
    ) -> None:
        """Complete it as part of the transaction that is open.

        Args:
            result: What it comes to.
            write: Executes a statement there, and signals what its rows name, and something beside
                that; the rows.
        """
        outcome = successful(self._claim, encoded_result(self.name, result), time.time())
        also = [store.TASKS_NAME] if self._claim.is_limited else []
        if not write(outcome.sql, outcome.parameters, also):
            raise TaskLost(
                f"task {self.id} ({self.name}), attempt {self.attempt}, was taken over or"
                " discarded: nothing of it is committed"
            )


@contextmanager
def running(context: TaskContext) -> Iterator[None]:
    """Note that this task runs here."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)
