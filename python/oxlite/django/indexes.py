"""``ArrayIndex``: what GIN is to PostgreSQL, for ``contains`` and ``overlap`` of an ``ArrayField``.

It is a table of elements and the rows that have them, which triggers keep, whoever writes. Lookups
look there for the rows that may be found, and then at the rows.

Invariants: no row is missing in it. There may be rows in it that have an element no longer:
``INSERT OR REPLACE`` takes rows away without their triggers (unless ``PRAGMA recursive_triggers``
is on). NULL is no element. When Django makes a table anew, which loses triggers, the index is made
anew as well, and filled.

Sources: https://sqlite.org/lang_createtrigger.html, https://sqlite.org/lang_replace.html
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.core.exceptions import FieldError
from django.db import NotSupportedError
from django.db.backends.ddl_references import Statement, Table
from django.db.models import CompositePrimaryKey, Index
from django.db.models.expressions import Col

from oxlite import arrays

__all__ = ["ArrayIndex", "IndexStatements"]

_EVENTS: Final = ("insert", "update", "delete")

_FORGET: Final = 'DELETE FROM {index} WHERE "row" = OLD.{key} AND value IN ({elements});'
_NOTE: Final = (
    'INSERT INTO {index} (value, "row") SELECT atom, NEW.{key} FROM ({elements}) WHERE true'
    " ON CONFLICT DO NOTHING;"
)
_COUNTED: Final = 1000
"""How many rows are counted to find out which element fewer have."""


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
        index, column, key = quote(self.name), quote(field.column), quote(model._meta.pk.column)

        def trigger(event: str, when: str, *actions: str) -> Statement:
            done = " ".join(
                action.format(index=index, key=key, elements=arrays.elements(f"{row}.{column}"))
                for action, row in ((each, "OLD" if each is _FORGET else "NEW") for each in actions)
            )
            return statement(
                f"CREATE TRIGGER {quote(f'{self.name}_{event}')} AFTER {event.upper()}"
                f" ON %(table)s WHEN {when} BEGIN {done} END"
            )

        def statement(sql: str) -> Statement:
            return Statement(sql, table=Table(model._meta.db_table, quote))

        changed = f"OLD.{column} IS NOT NEW.{column} OR OLD.{key} IS NOT NEW.{key}"
        # Rows are numbered by what identifies them, which VACUUM leaves alone.
        return self._statements(
            schema_editor,
            [
                Statement(self._definition(schema_editor)),
                trigger("insert", f"NEW.{column} IS NOT NULL", _NOTE),
                trigger("update", changed, _FORGET, _NOTE),
                trigger("delete", f"OLD.{column} IS NOT NULL", _FORGET),
                statement(
                    f'INSERT INTO {index} (value, "row") SELECT DISTINCT atom, "row"'
                    f' FROM (SELECT {key} AS "row", {column} AS of_row FROM %(table)s),'
                    " json_tree(of_row) WHERE type <> 'array' AND atom IS NOT NULL ORDER BY 1, 2"
                ),
            ],
        )

    def remove_sql(self, model: Any, schema_editor: Any, **kwargs: Any) -> Any:
        """The statements that remove it."""
        return self._statements(schema_editor, [])

    def _definition(self, schema_editor: Any) -> str:
        return (
            f'CREATE TABLE {schema_editor.quote_name(self.name)} (value NOT NULL, "row" NOT NULL,'
            ' PRIMARY KEY (value, "row")) WITHOUT ROWID'
        )

    def _statements(self, schema_editor: Any, making: list[Statement]) -> IndexStatements:
        """Those that remove it if it is there, and then those that make it."""
        quote = schema_editor.quote_name
        triggers = (quote(f"{self.name}_{event}") for event in _EVENTS)
        return IndexStatements(
            self.name,
            self._definition(schema_editor),
            [
                *(Statement(f"DROP TRIGGER IF EXISTS {trigger}") for trigger in triggers),
                Statement(f"DROP TABLE IF EXISTS {quote(self.name)}"),
                *making,
            ],
        )

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

    def rows(self, others: str, quote: Any, *, with_all: bool, are_several: bool) -> str:
        """A SELECT of the rows that may have elements of another array.

        Args:
            others: SQL of that array.
            quote: What quotes names.
            with_all: They have all of its elements. Of those, the one that the fewest rows have is
                looked for.
            are_several: It has more elements than one.
        """
        index, wanted = quote(self.name), arrays.elements(others)
        if not with_all:
            return f'SELECT "row" FROM {index} WHERE value IN ({wanted})'
        if are_several:
            found = f"SELECT 1 FROM {index} AS entry WHERE entry.value = atom LIMIT {_COUNTED}"
            wanted = f"{wanted} ORDER BY (SELECT count(*) FROM ({found}))"
        return f'SELECT "row" FROM {index} WHERE value = ({wanted} LIMIT 1)'
