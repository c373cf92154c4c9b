"""How SQL is written: Django's own way, for the SQLite inside Oxlite; and how it is logged."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db.backends.sqlite3.operations import DatabaseOperations as StockDatabaseOperations

import oxlite

__all__ = ["DatabaseOperations"]

_WORTH_TELLING_SECONDS: Final = 0.001
_TAKING_THE_LOCK: Final = {"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"}
_ALSO_FLUSHED: Final = frozenset({"oxlite_task", "oxlite_task_pause", "oxlite_task_schedule"})
"""Tables without a managed model, whose rows are data all the same."""


class DatabaseOperations(StockDatabaseOperations):
    """Writes SQL.

    Attributes:
        on_the_lock: What the latest statement has met at the write lock, until the log has it; only
            where queries are logged.
    """

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.on_the_lock = ""

    def convert_datetimefield_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """A value of a ``DateTimeField``: with the database's time zone where ``USE_TZ`` is on."""
        if type(value) is datetime and value.tzinfo is None and settings.USE_TZ:
            return value.replace(tzinfo=self.connection.timezone)
        return super().convert_datetimefield_value(value, expression, connection)

    def force_group_by(self) -> list[Any]:
        """Nothing: SQLite before 3.39 needed a GROUP BY where ours does not."""
        return []

    def sql_flush(
        self, style: Any, tables: Any, *, reset_sequences: bool = False, allow_cascade: bool = False
    ) -> Any:
        """The SQL of ``flush``, with which a ``TransactionTestCase`` ends: no task outlives one."""
        others = _ALSO_FLUSHED.intersection(self.connection.introspection.table_names())
        return super().sql_flush(
            style,
            [*tables, *others.difference(tables)],
            reset_sequences=reset_sequences,
            allow_cascade=allow_cascade,
        )

    def last_executed_query(self, cursor: Any, sql: str, params: Any) -> str:
        """A statement as the query log shows it, with a comment on what it has waited for."""
        query: str = super().last_executed_query(cursor, sql, params)
        on_the_lock, self.on_the_lock = self.on_the_lock, ""
        return f"{query} /* {on_the_lock.replace('*/', '* /')} */" if on_the_lock else query

    @contextmanager
    def noting_the_lock(self, sql: str) -> Iterator[None]:
        """Note what a statement meets at the write lock, while the driver has it."""
        self.on_the_lock = ""
        begun = time.monotonic()
        try:
            yield
        except oxlite.LockedError as error:
            self.on_the_lock = str(error)
            raise
        waited = time.monotonic() - begun
        # Of others nobody knows what they have done in that time.
        if sql in _TAKING_THE_LOCK and waited >= _WORTH_TELLING_SECONDS:
            self.on_the_lock = f"waited {waited:.3f} s for the write lock"
