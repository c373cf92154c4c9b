"""Rows on their way: as lines that COPY reads, and as texts that are compared.

Invariant: SQLite writes the lines, a statement for a table; in Python a row is one text.

Source: https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.2
"""

from typing import Final

from oxlite.promotion.names import identifier
from oxlite.promotion.plan import ColumnPlan, TablePlan
from oxlite.promotion.row_sql import Part, compared, copied
from oxlite.promotion.survey import key_expressions
from oxlite.promotion.values import type_of

__all__ = [
    "ROW_NUMBER",
    "columns_there",
    "compared_here",
    "compared_there",
    "key_line",
    "key_there",
    "lines",
]

ROW_NUMBER: Final = "oxlite_rowid"
"""The column by which rows are found in PostgreSQL meanwhile, where their table has no key."""


def columns_there(plan: TablePlan) -> list[str]:
    """The columns of PostgreSQL's table that a line fills, in its order."""
    names = [column.name for column in plan.carried]
    return [*names, ROW_NUMBER] if plan.table.is_by_rowid else names


def key_there(plan: TablePlan) -> list[str]:
    """The columns of PostgreSQL's table that say which row is meant."""
    return [ROW_NUMBER] if plan.table.is_by_rowid else list(plan.table.key)


def lines(plan: TablePlan) -> str:
    """A SELECT of the key and of a line for each row, in bytes, without WHERE and what follows it.

    The line is NULL for a row in which something does not fit.
    """
    parts = [_part(column, identifier(column.name)) for column in plan.carried]
    keys = ", ".join(key_expressions(plan.table))
    line = copied([*parts, *_row_number(plan)])
    return f"SELECT {keys}, CAST({line} AS BLOB) FROM {identifier(plan.table.name)}"


def key_line(plan: TablePlan, columns: list[str]) -> str:
    """The line of a key that is in some columns, in SQL."""
    if plan.table.is_by_rowid:
        return columns[0]
    return copied(
        [
            _part(plan.column(name), column)
            for name, column in zip(plan.table.key, columns, strict=True)
        ]
    )


def compared_here(plan: TablePlan) -> str:
    """What stands for a row of SQLite's, in SQL and in bytes; NULL if something does not fit."""
    parts = [_part(column, identifier(column.name)) for column in plan.columns]
    return f"CAST({compared([*parts, *_row_number(plan)])} AS BLOB)"


def compared_there(plan: TablePlan) -> str:
    """The same of PostgreSQL's."""
    parts = [column.type.compared_there_of(identifier(column.name)) for column in plan.columns]
    if plan.table.is_by_rowid:
        parts.append(f"{ROW_NUMBER}::text")
    return " || chr(31) || ".join(parts)


def _part(column: ColumnPlan, sql: str) -> Part:
    # What does not fit would have ended it before, where nothing else was said.
    is_known_to_fit = column.misfits in {"stop", "widen"}
    return Part(sql, column.type, column.misfits == "null", is_known_to_fit, column.is_plain)


def _row_number(plan: TablePlan) -> list[Part]:
    return [Part(plan.table.key[0], type_of("bigint"))] if plan.table.is_by_rowid else []
