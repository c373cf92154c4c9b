"""Rows on their way: as lines that COPY reads, and as texts that are compared.

Invariant: SQLite writes the lines, a statement for a table; in Python a row is one text.

Source: https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.2
"""

from typing import Final

from oxlite.promotion.names import identifier
from oxlite.promotion.plan import ColumnPlan, TablePlan
from oxlite.promotion.survey import key_expressions

__all__ = [
    "ROW_NUMBER",
    "columns_there",
    "compared_here",
    "compared_there",
    "key_line",
    "key_there",
    "lines",
]

_PARTS_AT_ONCE: Final = 100
"""https://sqlite.org/limits.html#max_expr_depth"""

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
    """A SELECT of the key and of a line for each row, without WHERE and what comes after it.

    The line is NULL for a row in which something does not fit.
    """
    written = [_written(column, identifier(column.name)) for column in plan.carried]
    if plan.table.is_by_rowid:
        written.append(plan.table.key[0])
    keys = ", ".join(key_expressions(plan.table))
    return f"SELECT {keys}, {_joined(written, 9)} FROM {identifier(plan.table.name)}"


def key_line(plan: TablePlan, columns: list[str]) -> str:
    """The line of a key that is in some columns, in SQL."""
    if plan.table.is_by_rowid:
        return columns[0]
    return _joined(
        [
            _written(plan.column(name), column)
            for name, column in zip(plan.table.key, columns, strict=True)
        ],
        9,
    )


def compared_here(plan: TablePlan) -> str:
    """What stands for a row of SQLite's, in SQL; NULL for one in which something does not fit."""
    parts = [_compared(column) for column in plan.columns]
    if plan.table.is_by_rowid:
        parts.append(plan.table.key[0])
    return _joined(parts, 31)


def compared_there(plan: TablePlan) -> str:
    """The same of PostgreSQL's."""
    parts = [column.type.compared_there_of(identifier(column.name)) for column in plan.columns]
    if plan.table.is_by_rowid:
        parts.append(f"{ROW_NUMBER}::text")
    return " || chr(31) || ".join(parts)


def _written(column: ColumnPlan, sql: str) -> str:
    written = column.type.written_of(sql)
    return f"coalesce({written}, '\\N')" if column.misfits == "null" else written


def _compared(column: ColumnPlan) -> str:
    # What does not fit would have ended it before, where nothing else was said.
    is_known_to_fit = column.misfits in {"stop", "widen"}
    compared = column.type.compared_of(identifier(column.name), is_known_to_fit=is_known_to_fit)
    return f"coalesce({compared}, char(30))" if column.misfits == "null" else compared


def _joined(parts: list[str], separator: int) -> str:
    """Texts with a character between them; in groups, since SQLite limits how deep SQL may nest."""
    while len(parts) > 1:
        groups = [parts[first : first + _PARTS_AT_ONCE]
                  for first in range(0, len(parts), _PARTS_AT_ONCE)]  # fmt: skip
        parts = [f" || char({separator}) || ".join(f"({one})" for one in group) for group in groups]
    return f"{parts[0]} || ''"
