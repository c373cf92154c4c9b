"""The schema editor: Django's own, with values adapted by Oxlite's driver."""

from contextlib import suppress
from typing import Any

from django.db.backends.sqlite3.schema import DatabaseSchemaEditor as StockDatabaseSchemaEditor

from oxlite import sqlite3

__all__ = ["DatabaseSchemaEditor"]


class DatabaseSchemaEditor(StockDatabaseSchemaEditor):
    """Changes schemas."""

    def quote_value(self, value: Any) -> str:
        """A value as it is written in SQL.

        Raises:
            ValueError: There is no way to write it.
        """
        with suppress(sqlite3.ProgrammingError):  # without an adapter it stays as it is
            value = sqlite3.adapt(value)
        quoted: str = super().quote_value(value)
        return quoted
