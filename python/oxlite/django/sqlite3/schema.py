"""The schema editor: Django's own, with values adapted by Oxlite's driver, and ``ArrayIndex``."""

from contextlib import suppress
from typing import Any

from django.db import ProgrammingError
from django.db.backends.sqlite3.schema import DatabaseSchemaEditor as StockDatabaseSchemaEditor

from oxlite import sqlite3
from oxlite.django.indexes import ArrayIndex, IndexStatements

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

    def execute(self, sql: Any, params: Any = ()) -> None:
        """Run a statement, or each of several that make an index.

        Raises:
            django.db.ProgrammingError: The index has the name of a table that is another one.
        """
        if isinstance(sql, IndexStatements):
            if not self.collect_sql:
                self._refuse_another_table(sql)
            for statement in sql.statements():
                super().execute(statement, params)
        else:
            super().execute(sql, params)

    def _refuse_another_table(self, index: IndexStatements) -> None:
        """Keep the tables of models from an index that has the name of one."""
        found = "SELECT sql FROM sqlite_schema WHERE lower(name) = lower(%s)"
        with self.connection.cursor() as cursor:
            there = cursor.execute(found, [index.name]).fetchone()
        if there is not None and there[0] != index.definition:
            raise ProgrammingError(
                f"an ArrayIndex is a table of its name, and there is another {index.name!r}: give"
                " the index a name that nothing has"
            )

    def delete_model(self, model: Any, *args: Any, **kwargs: Any) -> None:
        """Remove a table, and the tables of its indexes."""
        self.forget_array_indexes(model)
        super().delete_model(model, *args, **kwargs)

    def forget_array_indexes(self, model: Any) -> None:
        """Remove the tables of a model's indexes. They are made anew with its table."""
        for index in model._meta.indexes:
            if isinstance(index, ArrayIndex):
                self.execute(index.remove_sql(model, self), params=None)
