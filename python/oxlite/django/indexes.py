"""``ArrayIndex``: what GIN is to PostgreSQL, for ``contains`` and ``overlap`` of an ``ArrayField``.

It is a table of elements and the rows that have them, which triggers keep, whoever writes: an
``oxlite.arrays.IndexTable``. Lookups look there for the rows that may be found, and then at the
rows.

Invariant: when Django makes a table anew, which loses triggers, the index is made anew as well, and
filled.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.exceptions import FieldError
from django.db import NotSupportedError
from django.db.backends.ddl_references import Statement, Table
from django.db.models import CompositePrimaryKey, Index
from django.db.models.expressions import Col

from oxlite import arrays

__all__ = ["ArrayIndex", "IndexStatements"]


class IndexStatements(Statement):
    """Several statements, in the place of the one by which other indexes are made.

    Oxlite's schema editor runs them one after the other.

    Args:
        name: The name of the table that they make or remove.
        definition: What SQLite has of it; a table of that name that is another one is kept.
        statements: They.
    """

    def __init__(self, name: str, definition: str, statements: Iterable[Statement]) -> None:
        self.name = name
        self.definition = definition
        parts = {f"statement_{number}": each for number, each in enumerate(statements)}
        super().__init__(";\n".join(f"%({name})s" for name in parts), **parts)

    def statements(self) -> list[Statement]:
        """One after the other."""
        return list(self.parts.values())


class ArrayIndex(Index):
    """An index of the elements of an ``ArrayField``, in a table of its name.

    Args:
        fields: The name of the field, in a list.
        name: The name of the table, and what those of its triggers begin with.

    Raises:
        ValueError: There is not one field, or it has an order.
    """

    suffix = "arr"

    def __init__(self, *, fields: Sequence[str], name: str | None = None) -> None:
        super().__init__(fields=fields, name=name)
        if len(self.fields) != 1 or self.fields[0].startswith("-"):
            raise ValueError("ArrayIndex.fields has the name of one ArrayField, without an order.")

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Any:
        """The statements that make and fill it; one that is there is made anew.

        Raises:
            django.core.exceptions.FieldError: The field is no ``ArrayField``.
            django.db.NotSupportedError: The ENGINE is another one, or the primary key composite.
        """
        if not hasattr(schema_editor, "forget_array_indexes"):
            raise NotSupportedError("ArrayIndex needs the ENGINE oxlite.django.sqlite3.")
        field = model._meta.get_field(self.fields[0])
        if not hasattr(field, "base_field"):
            raise FieldError(f"ArrayIndex {self.name}: {field} is no ArrayField.")
        if isinstance(model._meta.pk, CompositePrimaryKey):
            raise NotSupportedError(f"ArrayIndex {self.name}: {model} has a composite primary key.")
        quote = schema_editor.quote_name
        table = Table(model._meta.db_table, quote)
        making = arrays.IndexTable(self.name, quote).making(
            "%(table)s", quote(field.column), quote(model._meta.pk.column)
        )
        return self._statements(schema_editor, [Statement(sql, table=table) for sql in making])

    def remove_sql(self, model: Any, schema_editor: Any, **kwargs: Any) -> Any:
        """The statements that remove it."""
        return self._statements(schema_editor, [])

    def _statements(self, schema_editor: Any, making: list[Statement]) -> IndexStatements:
        """Those that remove it if it is there, and then those that make it."""
        table = arrays.IndexTable(self.name, schema_editor.quote_name)
        removing = (Statement(sql) for sql in table.removing())
        return IndexStatements(self.name, table.definition, [*removing, *making])

    @classmethod
    def of(cls, column: Any) -> "ArrayIndex | None":
        """The index of a column in a query, if its model has one."""
        if not isinstance(column, Col) or column.alias is None:
            return None
        field = column.target
        for index in field.model._meta.indexes:
            if isinstance(index, cls) and index.fields == [field.name]:
                return index
        return None
