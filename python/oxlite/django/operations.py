"""How SQL is written: Django's own way, for the SQLite inside Oxlite."""

from typing import Any

from django.db.backends.sqlite3.operations import DatabaseOperations as StockDatabaseOperations

__all__ = ["DatabaseOperations"]


class DatabaseOperations(StockDatabaseOperations):
    """Writes SQL."""

    def force_group_by(self) -> list[Any]:
        """Nothing: SQLite before 3.39 needed a GROUP BY where ours does not."""
        return []
