"""Which rows are in a sample: the latest of each table, and all that those refer to.

They are kept in a database beside the file, in tables without types, so that SQLite changes nothing
of a value; the order in which they come does not matter there.

Invariant: a row is looked at once for what it refers to; what it refers to is there afterwards, if
PostgreSQL has it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from oxlite.promotion.forms import bare, form_of
from oxlite.promotion.names import identifier, identifiers, table_name
from oxlite.promotion.origin import OriginTable
from oxlite.promotion.source import ForeignKey
from oxlite.promotion.target import Target
from oxlite.promotion.values import type_of
from oxlite.sqlite3 import Connection

__all__ = ["GATHERED", "NUMBER", "gather", "within_reach"]

GATHERED: Final = "gathered"
"""The schema that they are in."""
NUMBER: Final = "oxlite_number"
"""The column that says in which order they came."""
_ROWS_AT_ONCE: Final = 200
_KEYS_AT_ONCE: Final = 1000


def within_reach(tables: Mapping[str, OriginTable], chosen: Iterable[str]) -> list[str]:
    """The chosen tables, and all that they refer to."""
    found = list(dict.fromkeys(chosen))
    for name in found:  # which grows
        found += [
            other
            for other in dict.fromkeys(key.table for key in tables[name].foreign_keys)
            if other not in found
        ]
    return found


def gather(
    there: Target,
    here: Connection,
    schema: str,
    tables: Mapping[str, OriginTable],
    chosen: Sequence[str],
    rows: int,
    tell: Callable[[str, int, int], object],
) -> None:
    """Gather the rows.

    Args:
        there: In a transaction, so that all is of one moment.
        here: With the functions of ``functions``, and with ``GATHERED`` attached.
        schema: Of the tables there.
        tables: All that are within reach.
        chosen: Those that rows are taken from; from the others, what is referred to.
        rows: How many of each at most.
        tell: Is called with a table's name, how many rows were read of it, and of how many.
    """
    for table in tables.values():
        names = identifiers(column.name for column in table.columns)
        here.execute(f"CREATE TABLE {_place(table)} ({NUMBER} INTEGER PRIMARY KEY, {names})")
    referred = {(key.table, key.referred) for one in tables.values() for key in one.foreign_keys}
    for number, (name, columns) in enumerate(sorted(referred)):
        here.execute(
            f"CREATE UNIQUE INDEX {GATHERED}.oxlite_referred_{number}"
            f" ON {identifier(name)} ({identifiers(columns)})"
        )
    for name in chosen:
        table = tables[name]
        order = ", ".join(f"t.{identifier(column)} DESC" for column in table.primary_key)
        sql = f"{_select(schema, table)} {f'ORDER BY {order} ' if order else ''}LIMIT {rows}"
        _read(there, here, table, sql, None, partial(_tell_of, tell, name, rows))
    _follow(there, here, schema, tables, tell)


def _tell_of(tell: Callable[[str, int, int], object], name: str, rows: int, done: int) -> None:
    tell(name, done, rows)


def _place(table: OriginTable) -> str:
    return f"{GATHERED}.{identifier(table.name)}"


def _select(schema: str, table: OriginTable) -> str:
    values = ", ".join(
        form_of(column.type).read_of(f"t.{identifier(column.name)}", is_djangos=table.is_djangos)
        for column in table.columns
    )
    only = "" if table.is_partitioned else "ONLY "
    return f"SELECT {values} FROM {only}{table_name(schema, table.name)} AS t"


def _read(
    there: Target,
    here: Connection,
    table: OriginTable,
    sql: str,
    parameters: Sequence[Any] | None,
    tell: Callable[[int], object],
) -> None:
    marks = ", ".join("?" * len(table.columns))
    insert = (
        f"INSERT OR IGNORE INTO {_place(table)}"
        f" ({identifiers(column.name for column in table.columns)}) VALUES ({marks})"
    )
    floats = [place for place, column in enumerate(table.columns) if form_of(column.type).is_float]
    done = 0
    with there.cursor(name="oxlite_sample") as cursor:
        cursor.execute(sql, parameters)
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            here.executemany(insert, [_without_nan(row, floats) for row in rows])
            done += len(rows)
            tell(done)


def _without_nan(row: tuple[Any, ...], floats: Sequence[int]) -> Sequence[Any]:
    """A row in which NaN is the text that PostgreSQL has for it."""
    unequal = [place for place in floats if row[place] != row[place]]
    if not unequal:
        return row
    return ["NaN" if place in unequal else value for place, value in enumerate(row)]


def _follow(
    there: Target,
    here: Connection,
    schema: str,
    tables: Mapping[str, OriginTable],
    tell: Callable[[str, int, int], object],
) -> None:
    """Fetch what rows refer to, until all of that is here."""
    looked_at = {(name, key): 0 for name, one in tables.items() for key in one.foreign_keys}
    is_whole = False
    while not is_whole:
        is_whole = True
        for (name, key), upto in looked_at.items():
            (last,) = here.execute(
                f"SELECT coalesce(max({NUMBER}), 0) FROM {_place(tables[name])}"
            ).fetchone()
            for first in range(upto, last, _KEYS_AT_ONCE):
                wanted = _missing(here, tables, name, key, first, min(first + _KEYS_AT_ONCE, last))
                if wanted:
                    _fetch(there, here, schema, tables[key.table], key, wanted, tell)
            is_whole = is_whole and upto == last
            looked_at[name, key] = last


def _missing(
    here: Connection,
    tables: Mapping[str, OriginTable],
    name: str,
    key: ForeignKey,
    after: int,
    upto: int,
) -> list[tuple[str, ...]]:
    """Keys that some rows refer to and that are not here, as PostgreSQL reads them."""
    child, parent = tables[name], tables[key.table]
    pairs = [
        (f"c.{identifier(column)}", f"p.{identifier(referred)}")
        for column, referred in zip(key.columns, key.referred, strict=True)
    ]
    texts = ", ".join(
        f"CAST({_as_text(child.column(column).type, f'c.{identifier(column)}')} AS TEXT)"
        for column in key.columns
    )
    return here.execute(
        f"SELECT DISTINCT {texts} FROM {_place(child)} AS c"
        f" WHERE c.{NUMBER} > {after} AND c.{NUMBER} <= {upto}"
        f" AND {' AND '.join(f'{column} IS NOT NULL' for column, _ in pairs)}"
        f" AND NOT EXISTS (SELECT 1 FROM {_place(parent)} AS p"
        f" WHERE {' AND '.join(f'{referred} = {column}' for column, referred in pairs)})"
    ).fetchall()


def _as_text(kind: str, column: str) -> str:
    if kind == "bytea":
        return f"'\\x' || hex({column})"  # COPY's lines have two backslashes
    if form_of(kind).declared == "TEXT":
        return column
    return type_of(kind).written.replace("{c}", column)


def _fetch(
    there: Target,
    here: Connection,
    schema: str,
    parent: OriginTable,
    key: ForeignKey,
    wanted: list[tuple[str, ...]],
    tell: Callable[[str, int, int], object],
) -> None:
    arrays = ", ".join(["%s::text[]"] * len(key.referred))
    alike = " AND ".join(
        f"t.{identifier(column)} = k.k{place}::{bare(parent.column(column).type)}"
        for place, column in enumerate(key.referred)
    )
    names = ", ".join(f"k{place}" for place, _ in enumerate(key.referred))
    # A name may have a percent sign, with which a placeholder begins.
    select, alike = (sql.replace("%", "%%") for sql in (_select(schema, parent), alike))
    sql = f"{select} JOIN unnest({arrays}) AS k({names}) ON {alike}"
    columns = [list(one) for one in zip(*wanted, strict=True)]
    _read(there, here, parent, sql, columns, partial(_tell_of, tell, parent.name, len(wanted)))
