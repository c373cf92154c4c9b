"""How SQL is written: Django's own way, for the SQLite inside Oxlite; and how it is logged."""

import sys
import time
from typing import Any, Final

from django.db.backends.sqlite3.operations import DatabaseOperations as StockDatabaseOperations
from django.db.backends.utils import CursorDebugWrapper as StockCursorDebugWrapper

import oxlite

__all__ = ["CursorDebugWrapper", "DatabaseOperations"]

_WORTH_TELLING_SECONDS: Final = 0.001
_TAKING_THE_LOCK: Final = {"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"}


class CursorDebugWrapper(StockCursorDebugWrapper):
    """A cursor whose statements are logged, and that remembers since when it has waited."""

    def execute(self, sql: str, params: Any = None) -> Any:
        """Run one statement and log it."""
        operations = self.db.ops
        operations.error_before = sys.exc_info()[1]
        operations.waiting_since = time.monotonic() if sql in _TAKING_THE_LOCK else None
        return super().execute(sql, params)


class DatabaseOperations(StockDatabaseOperations):
    """Writes SQL.

    Attributes:
        waiting_since: When the statement was begun that waits for the write lock and does nothing
            else; only where queries are logged.
        error_before: The error that was being handled when the statement was begun: not its own.
    """

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.waiting_since: float | None = None
        self.error_before: BaseException | None = None

    def force_group_by(self) -> list[Any]:
        """Nothing: SQLite before 3.39 needed a GROUP BY where ours does not."""
        return []

    def last_executed_query(self, cursor: Any, sql: str, params: Any) -> str:
        """A statement as the query log shows it, with a comment on what it has waited for."""
        query: str = super().last_executed_query(cursor, sql, params)
        return query + self._on_the_lock()

    def _on_the_lock(self) -> str:
        since, self.waiting_since = self.waiting_since, None
        before, self.error_before = self.error_before, None
        error = sys.exc_info()[1]
        locked = (
            error if isinstance(error, oxlite.LockedError) else getattr(error, "__cause__", None)
        )
        if error is not before and isinstance(locked, oxlite.LockedError):
            return f" /* {str(locked).replace('*/', '* /')} */"
        waited = 0.0 if since is None else time.monotonic() - since
        if waited < _WORTH_TELLING_SECONDS:
            return ""
        return f" /* waited {waited:.3f} s for the write lock */"
