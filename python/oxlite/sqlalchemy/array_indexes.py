"""``ArrayIndex``: what GIN is to PostgreSQL, for ``contains`` and ``overlap`` of an ``ARRAY``.

On SQLite it is a table that triggers keep, an ``oxlite.arrays.IndexTable``; on PostgreSQL an index
with GIN. To SQLAlchemy and Alembic it is an ``Index`` with the option ``sqlite_array_key``, which
names the column that identifies rows: so it is made, dropped, copied, reflected and rendered as any
other. How to use it: ``docs/arrays.md``.

Invariants: it is made and removed as a whole; it goes with its table, by whatever statement that is
dropped here, so none is left whose triggers are gone; its table is none to a reflection.

Sources: https://docs.sqlalchemy.org/en/20/core/constraints.html#sqlalchemy.schema.Index,
    https://docs.sqlalchemy.org/en/20/core/foundation.html#sqlalchemy.sql.base.DialectKWArgs.argument_for
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from sqlalchemy import Column, Connection, Index, Table, event, exc
from sqlalchemy.dialects.sqlite.base import SQLiteDDLCompiler
from sqlalchemy.engine.interfaces import ExecutionContext
from sqlalchemy.schema import CreateIndex, DropIndex
from sqlalchemy.sql import sqltypes
from sqlalchemy.sql.compiler import IdentifierPreparer
from sqlalchemy.sql.selectable import Alias

from oxlite import sqlite3
from oxlite.arrays import IndexTable, indexed, indexes_found
from oxlite.sqlalchemy.isolation import DriverConnection

__all__ = [
    "ArrayIndex",
    "ArrayIndexCompiler",
    "index_of",
    "index_table",
    "indexes_of_table",
    "names_of_indexes",
    "reflected_indexes",
    "refuse_another_table",
    "statements_of",
]

_KEY: Final = "array_key"

Index.argument_for("sqlite", _KEY, None)


class ArrayIndex(Index):
    """An index of the elements of an array: ``ArrayIndex("post_tags", "tags")`` beside ``Index``.

    Args:
        name: Its name, on SQLite that of its table, and what those of its triggers begin with;
            ``None`` where a naming convention has one.
        column: The column, or its name.
        quote: As for ``Index``; on SQLite the name is always quoted.
        info: As for ``Index``.
        options: Of dialects, as for ``Index``. ``postgresql_using`` is ``"gin"``.

    Raises:
        sqlalchemy.exc.ArgumentError: It is to be unique; what it is of is no column, or none of
            arrays.
        sqlalchemy.exc.ConstraintColumnNotFoundError: The table has no such column.

    Where it is compiled for SQLite there may be a ``sqlalchemy.exc.CompileError``: the primary key
    of the table has not one column, the table is temporary, or the column is none of arrays there.

    Source: https://docs.sqlalchemy.org/en/20/core/constraints.html#sqlalchemy.schema.Index
    """

    def __init__(
        self,
        name: str | None,
        column: Any,
        *,
        quote: bool | None = None,
        info: dict[Any, Any] | None = None,
        **options: Any,
    ) -> None:
        if options.pop("unique", False):
            raise exc.ArgumentError(f"ArrayIndex {name!r}: elements are in many rows; unique=True")
        options = {"postgresql_using": "gin", **options}
        super().__init__(name, column, quote=quote, info=info, **options)

    def _set_parent(self, parent: Any, **kw: Any) -> None:
        super()._set_parent(parent, **kw)
        (expression,) = self.expressions
        if not isinstance(expression, Column):
            raise exc.ArgumentError(f"ArrayIndex {self.name!r} is of a column, not of {expression}")
        if not _may_be_array(expression):
            raise exc.ArgumentError(
                f"ArrayIndex {self.name!r}: {expression} is {expression.type!r}, and not an ARRAY"
            )
        self._learn_key(parent)
        # The columns of the key may come after it.
        event.listen(parent, "after_parent_attach", lambda table, _: self._learn_key(table))

    def _learn_key(self, table: Table) -> None:
        self.dialect_kwargs[f"sqlite_{_KEY}"] = _key_of(table) or ""


def _key_of(table: Table) -> str | None:
    """The name of the column that identifies rows, if it is one."""
    columns = list(table.primary_key.columns)
    return columns[0].name if len(columns) == 1 else None


def _may_be_array(column: Column[Any]) -> bool:
    types = [column.type, *column.type._variant_mapping.values()]
    # The type of a foreign key may come later.
    return any(
        isinstance(each, sqltypes.NullType) or each._type_affinity is sqltypes.ARRAY
        for each in types
    )


def _is_of_arrays(index: Index) -> bool:
    return index.dialect_options["sqlite"][_KEY] is not None


def index_table(index: Index, preparer: IdentifierPreparer) -> IndexTable:
    """What an ``ArrayIndex`` is on SQLite.

    Args:
        index: It, or what a reflection has of it.
        preparer: The compiler's, which knows how schemas are translated.
    """
    schema = preparer.schema_for_object(cast(Table, index.table))
    of_schema = None if schema is None else preparer.quote_schema(schema)
    return IndexTable(str(index.name), preparer.quote_identifier, of_schema)


def index_of(column: Any) -> tuple[Index, Any] | None:
    """The index of a column in a query, and the column that identifies rows.

    Args:
        column: Of a table or an alias of one; others have none.
    """
    source = getattr(column, "table", None)
    table = source.element if isinstance(source, Alias) else source
    if not isinstance(table, Table):
        return None
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        if _is_of_arrays(index) and [each.name for each in index.columns] == [column.name]:
            key = _key_of(table)
            found = [each for each in cast(Any, source).c if each.name == key]
            return (index, found[0]) if found else None
    return None


class ArrayIndexCompiler(SQLiteDDLCompiler):
    """Writes the definition of an index of arrays: several statements."""

    array_index: Index | None = None
    """What the statements are of, which the dialect then runs one after the other."""

    def visit_create_index(self, create: CreateIndex, *args: Any, **kw: Any) -> str:
        """An index.

        Raises:
            sqlalchemy.exc.CompileError: An ``ArrayIndex`` cannot be of this.
        """
        index: Any = create.element
        if index.table is None or not _is_of_arrays(index):
            text: str = super().visit_create_index(create, *args, **kw)  # type: ignore[no-untyped-call]
            return text
        if len(index.expressions) != 1 or not isinstance(index.expressions[0], Column):
            raise exc.CompileError(f"ArrayIndex {index.name!r} is of one column")
        (column,) = index.expressions
        if not isinstance(
            column.type._unwrapped_dialect_impl(self.dialect), sqltypes.ARRAY | sqltypes.NullType
        ):
            raise exc.CompileError(
                f"ArrayIndex {index.name!r}: {column} is {column.type!r}, and not an ARRAY"
            )
        if {"TEMP", "TEMPORARY"} & {each.upper() for each in index.table._prefixes}:
            raise exc.CompileError(f"ArrayIndex {index.name!r}: {index.table} is temporary")
        quote = self.preparer.quote_identifier
        return self._script(
            index,
            index_table(index, self.preparer).making(
                quote(index.table.name),
                quote(column.name),
                quote(self._key(index)),
                if_not_exists=create.if_not_exists,
            ),
        )

    def visit_drop_index(self, drop: DropIndex, **kw: Any) -> str:
        """The removal of an index."""
        index: Any = drop.element
        if index.table is None or not _is_of_arrays(index):
            text: str = super().visit_drop_index(drop, **kw)  # type: ignore[no-untyped-call]
            return text
        removing = index_table(index, self.preparer).removing(if_exists=drop.if_exists)
        return self._script(index, removing)

    def _script(self, index: Index, statements: Iterable[str]) -> str:
        if index.name is None:
            raise exc.CompileError("an ArrayIndex needs a name")
        self.array_index = index
        return ";\n".join(statements)

    def _key(self, index: Any) -> str:
        # What Alembic makes of a migration has no primary key, but the option.
        has_key = len(index.table.primary_key.columns) > 0
        key = _key_of(index.table) if has_key else index.dialect_options["sqlite"][_KEY]
        if not key:
            raise exc.CompileError(
                f"ArrayIndex {index.name!r}: rows are known by a primary key of one column, and"
                f" {index.table} has {len(index.table.primary_key.columns)}"
            )
        return cast(str, key)


def statements_of(script: str) -> Iterator[str]:
    """The statements of what ``ArrayIndexCompiler`` has written, one after the other."""
    statement = ""
    for line in script.split(";\n"):
        statement += line
        # A name may have what looks like the end.
        if sqlite3.complete_statement(f"{statement};"):
            yield statement
            statement = ""
        else:
            statement += ";\n"


def refuse_another_table(connection: DriverConnection, context: ExecutionContext) -> None:
    """Keep a table that has the name of an index from being dropped for it.

    Args:
        connection: Where it would be dropped.
        context: Of the statements of an index.

    Raises:
        oxlite.sqlite3.ProgrammingError: There is such a table.
    """
    compiled: Any = context.compiled
    if not isinstance(compiled.statement, DropIndex):
        return
    schema = context.root_connection.schema_for_object(compiled.array_index.table)
    table = IndexTable(str(compiled.array_index.name), _quoted)
    found = connection.execute(
        f"SELECT sql FROM {_schema(schema)}.sqlite_schema WHERE lower(name) = lower(?)",
        (table.name,),
    ).fetchone()
    if found is not None and found[0] != table.definition:
        raise sqlite3.ProgrammingError(
            f"an ArrayIndex is a table of its name, and {table.name!r} is another table: nothing"
            " was dropped. Give the index a name that nothing has"
        )


def indexes_of_table(connection: DriverConnection, schema: str, table: str) -> list[str]:
    """The statements that remove the indexes of a table, once it has been dropped.

    Args:
        connection: Where it will be.
        schema: The name of its database.
        table: Its own.
    """
    in_schema = _quoted(schema)
    found = connection.execute(indexes_found(in_schema, of_one=True), (table,)).fetchall()
    return [sql for name, _ in found for sql in IndexTable(name, _quoted, in_schema).removing()]


def names_of_indexes(connection: Connection, schema: str | None) -> set[str]:
    """The tables of a database that are indexes."""
    return {name for name, _ in connection.exec_driver_sql(indexes_found(_schema(schema)))}


def reflected_indexes(
    connection: Connection, table: str, schema: str | None
) -> Iterator[dict[str, Any]]:
    """The indexes of a table's arrays, as a reflection has indexes."""
    query = indexes_found(_schema(schema), of_one=True)
    for name, trigger in connection.exec_driver_sql(query, (table,)):
        if (found := indexed(trigger)) is not None:
            column, key = found
            yield {
                "name": name,
                "column_names": [column],
                "unique": 0,
                "dialect_options": {f"sqlite_{_KEY}": key},
            }


def _schema(name: str | None) -> str:
    return "main" if name is None else _quoted(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
