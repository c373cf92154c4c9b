"""What is stored in the columns of a table: which types would hold it, and what would not fit.

Invariant: a table is read once for each hundred of its columns, and never as a whole into memory;
more often where something is not in the form that is expected, or does not fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oxlite.promotion.names import identifier
from oxlite.promotion.row_sql import Part, plain
from oxlite.promotion.source import Column, Table
from oxlite.promotion.values import Type
from oxlite.sqlite3 import Connection

__all__ = [
    "ColumnSurvey",
    "Misfit",
    "TableSurvey",
    "has_other_encoding",
    "key_expressions",
    "misfits",
    "survey",
]

_COLUMNS_AT_ONCE: Final = 100
"""A SELECT may have 2,000 results: https://sqlite.org/limits.html#max_column"""


@dataclass(frozen=True, slots=True)
class ColumnSurvey:
    """What is in a column.

    Attributes:
        misfits: For each type that was asked for, how many values do not fit in it. The types after
            the first are asked only where that does not hold all.
        is_plain: Whether all of it is in the form that the driver's functions know.
    """

    misfits: Mapping[str, int]
    is_plain: bool


@dataclass(frozen=True, slots=True)
class TableSurvey:
    """What is in a table."""

    rows: int
    columns: Mapping[str, ColumnSurvey]


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that does not fit.

    Attributes:
        key: Of its row.
        value: The value.
    """

    key: tuple[Any, ...]
    value: Any


def survey(
    connection: Connection, table: Table, asked: Mapping[str, Sequence[Type]]
) -> TableSurvey:
    """Read a table, and count.

    Args:
        connection: One with the functions of ``functions``.
        table: Which.
        asked: The types that each of its columns may get.

    Raises:
        oxlite.sqlite3.Error: It cannot be read.
    """
    plain, rows = _plain(connection, table, {name: types[0] for name, types in asked.items()})
    first = {name: types[:1] for name, types in asked.items() if name not in plain}
    found = _count(connection, table, first)
    found |= {name: {asked[name][0].name: 0} for name in plain}
    rest = {name: types[1:] for name, types in asked.items() if any(found[name].values())}
    rest = {name: types for name, types in rest.items() if types}
    if rest:
        for name, counts in _count(connection, table, rest).items():
            found[name] |= counts
    return TableSurvey(
        rows, {name: ColumnSurvey(counts, name in plain) for name, counts in found.items()}
    )


def _plain(connection: Connection, table: Table, meant: Mapping[str, Type]) -> tuple[set[str], int]:
    """In which columns all is in the form that the driver's functions know; how many rows."""
    rows, found = 0, set()
    names = list(meant)
    for first in range(0, len(names), _COLUMNS_AT_ONCE):
        part = names[first : first + _COLUMNS_AT_ONCE]
        counts = ["count(*)"]
        for name in part:
            counts.append(f"count({plain(Part(identifier(name), meant[name]))})")
        row = connection.execute(f"SELECT {', '.join(counts)} FROM {identifier(table.name)}")
        rows, *numbers = row.fetchone()
        found |= {
            name
            for name, number in zip(part, numbers, strict=True)
            if meant[name].letter != "x" and number == rows
        }
    return found, rows


def _count(
    connection: Connection, table: Table, asked: Mapping[str, Sequence[Type]]
) -> dict[str, dict[str, int]]:
    """How many values of each column do not fit in each type."""
    found: dict[str, dict[str, int]] = {}
    names = list(asked)
    for first in range(0, len(names), _COLUMNS_AT_ONCE):
        part = names[first : first + _COLUMNS_AT_ONCE]
        counts = []
        for name in part:
            column = identifier(name)
            counts += [
                f"count(CASE WHEN {column} IS NOT NULL AND ({one.fits_of(column)}) IS NOT 1"
                " THEN 1 END)"
                for one in asked[name]
            ]
        row = connection.execute(f"SELECT {', '.join(counts)} FROM {identifier(table.name)}")
        numbers = iter(row.fetchone())
        for name in part:
            found[name] = {one.name: next(numbers) for one in asked[name]}
    return found


def misfits(
    connection: Connection, table: Table, column: Column, into: Type, *, at_most: int
) -> list[Misfit]:
    """Some of the values that do not fit in a type, by the order of the key."""
    name = identifier(column.name)
    keys = ", ".join(key_expressions(table))
    # A text that is no UTF-8 is shown as bytes.
    value = f"CASE WHEN {_has_other_encoding(name)} THEN CAST({name} AS BLOB) ELSE {name} END"
    rows = connection.execute(
        f"SELECT {value}, {keys} FROM {identifier(table.name)}"
        f" WHERE {name} IS NOT NULL AND ({into.fits_of(name)}) IS NOT 1"
        f" ORDER BY {keys} LIMIT {at_most}"
    )
    return [Misfit(tuple(key), value) for value, *key in rows.fetchall()]


def has_other_encoding(connection: Connection, table: Table, column: Column) -> bool:
    """Whether a column has a text that is no UTF-8, which nobody can be given as a text."""
    name = identifier(column.name)
    row = connection.execute(
        f"SELECT 1 FROM {identifier(table.name)} WHERE {_has_other_encoding(name)} LIMIT 1"
    )
    return row.fetchone() is not None


def _has_other_encoding(name: str) -> str:
    return (
        f"typeof({name}) = 'text' AND instr({name}, char(0)) = 0 AND oxlite_copy_text({name})"
        " IS NULL"
    )


def key_expressions(table: Table) -> list[str]:
    """The key of a table, in SQL."""
    if table.is_by_rowid:
        return list(table.key)
    return [identifier(name) for name in table.key]
