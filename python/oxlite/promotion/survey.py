"""What is stored in the columns of a table: which types would hold it, and what would not fit.

Invariant: a table is read once for it, in one statement, and never as a whole into memory; and once
more for texts that are no UTF-8, which SQLite stores as they come.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oxlite.promotion.names import identifier, identifiers
from oxlite.promotion.source import Column, Table
from oxlite.promotion.values import Type
from oxlite.sqlite3 import Connection

__all__ = [
    "ColumnSurvey",
    "Misfit",
    "TableSurvey",
    "key_expressions",
    "misfits",
    "not_utf8",
    "survey",
]

_ROWS_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class ColumnSurvey:
    """What is in a column.

    Attributes:
        nulls: How many rows have nothing there.
        misfits: For each type that was asked for, how many values do not fit in it.
        stored: How many there are of each of SQLite's storage classes.
    """

    nulls: int
    misfits: Mapping[str, int]
    stored: Mapping[str, int]


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


_CLASSES: Final = ("integer", "real", "text", "blob")


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
    counts = ["count(*)"]
    for name, types in asked.items():
        column = identifier(name)
        counts.append(f"count(*) - count({column})")
        counts += [f"sum(typeof({column}) = '{one}')" for one in _CLASSES]
        counts += [
            f"sum({column} IS NOT NULL AND ({one.fits_of(column)}) IS NOT 1)" for one in types
        ]
    selected = ", ".join(counts)
    (row,) = connection.execute(f"SELECT {selected} FROM {identifier(table.name)}").fetchall()
    numbers = iter([number or 0 for number in row])
    rows = next(numbers)
    columns = {}
    for name, types in asked.items():
        nulls = next(numbers)
        stored = {one: next(numbers) for one in _CLASSES}
        columns[name] = ColumnSurvey(nulls, {one.name: next(numbers) for one in types}, stored)
    return TableSurvey(rows, columns)


def misfits(
    connection: Connection, table: Table, column: Column, into: Type, *, at_most: int
) -> list[Misfit]:
    """Some of the values that do not fit in a type, by the order of the key."""
    name = identifier(column.name)
    keys = ", ".join(key_expressions(table))
    rows = connection.execute(
        f"SELECT {name}, {keys} FROM {identifier(table.name)}"
        f" WHERE {name} IS NOT NULL AND ({into.fits_of(name)}) IS NOT 1"
        f" ORDER BY {keys} LIMIT {at_most}"
    )
    return [Misfit(tuple(key), value) for value, *key in rows.fetchall()]


def not_utf8(
    connection: Connection, table: Table, columns: Sequence[str], tell: Callable[[int], object]
) -> Iterator[tuple[str, Misfit]]:
    """The texts of some columns that are no UTF-8, which PostgreSQL refuses.

    Args:
        connection: One whose ``text_factory`` is ``bytes``.
        table: Which.
        columns: Whose texts are looked at.
        tell: Is called with how many rows were read.
    """
    if not columns:
        return
    keys = ", ".join(key_expressions(table))
    width = len(table.key)
    cursor = connection.execute(
        f"SELECT {keys}, {identifiers(columns)} FROM {identifier(table.name)}"
    )
    done = 0
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        for row in rows:
            for name, value in zip(columns, row[width:], strict=True):
                if isinstance(value, bytes) and not _is_utf8(value):
                    yield name, Misfit(tuple(row[:width]), value)
        done += len(rows)
        tell(done)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def key_expressions(table: Table) -> list[str]:
    """The key of a table, in SQL."""
    if table.is_by_rowid:
        return ["rowid"]
    return [identifier(name) for name in table.key]
