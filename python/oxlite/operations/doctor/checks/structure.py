"""Indexes, defaults and numbers of rows, as the schema has them."""

from collections.abc import Iterator
from typing import Final

from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.schema import Index, Table
from oxlite.operations.doctor.subject import Inside
from oxlite.operations.verification import quoted

__all__ = ["CHECKS", "ILLNESSES"]

_NO_INDEX: Final = Illness(
    "foreign-key-without-index",
    "warning",
    "Deleting a row of the parent, or changing its key, reads all of this table, with the write"
    " lock held.",
)
_DUPLICATE: Final = Illness(
    "duplicate-index",
    "warning",
    "Each write changes both, and the file holds both; queries use one.",
)
_PREFIX: Final = Illness(
    "prefix-index",
    "hint",
    "The longer index serves the same queries; each write changes both. The shorter one is"
    " smaller, so measure before you drop it.",
)
_DEFAULT: Final = Illness(
    "double-quoted-default",
    "hint",
    "Double quotes are for names. Oxlite's profiles refuse such a statement, so a dump of this"
    " table cannot be restored with them.",
)
_SEQUENCE: Final = Illness(
    "autoincrement-near-end",
    "error",
    "AUTOINCREMENT gives no number twice. After 9223372036854775807 each INSERT fails: database or"
    " disk is full.",
)
_ROWID: Final = Illness(
    "rowid-near-end",
    "warning",
    "After 9223372036854775807 SQLite tries numbers at random, so new rows are no longer the last"
    " ones, and INSERT becomes slow.",
)

# So many rows are read in about a millisecond.
_MANY_ROWS: Final = 1_000
_LAST: Final = 2**63 - 1
_NEAR: Final = 2**20


def _check_foreign_keys(inside: Inside) -> Iterator[Finding]:
    """Foreign keys without an index: https://sqlite.org/foreignkeys.html#fk_indexes."""
    for table in inside.schema.tables.values():
        for columns in dict.fromkeys(key.columns for key in table.foreign_keys):
            if _is_found(table, columns):
                continue
            is_large = _has_rows(inside, table, _MANY_ROWS)
            names = ", ".join(map(quoted, columns))
            yield _NO_INDEX.found(
                f"{table.name}({', '.join(columns)}) has no index"
                + (f", and {_MANY_ROWS:,} rows or more." if is_large else "; it is small yet."),
                f"CREATE INDEX {quoted('_'.join((table.name, *columns)))}"
                f" ON {quoted(table.name)} ({names});",
                severity=None if is_large else "hint",
            )


def _check_indexes(inside: Inside) -> Iterator[Finding]:
    """Indexes that are there twice, or begin a longer one: https://sqlite.org/queryplanner.html."""
    for table in inside.schema.tables.values():
        dropped: set[str] = set()
        for index in sorted(table.indexes, key=lambda one: (one.is_unique, one.name)):
            if index.origin != "c":
                continue  # it belongs to the table
            if table.rowid_column and index.columns == (table.rowid_column.lower(),):
                dropped.add(index.name)
                yield _double(table, index, f"the primary key {table.rowid_column}")
                continue
            others = [one for one in table.indexes if one is not index and one.name not in dropped]
            same = next((one for one in others if _is_same(index, one)), None)
            longer = next((one for one in others if _begins(index, one)), None)
            if same is not None:
                dropped.add(index.name)
                yield _double(table, index, same.name)
            elif longer is not None:
                yield _PREFIX.found(
                    f"{index.name} of {table.name} is the beginning of {longer.name}.",
                    f"DROP INDEX {quoted(index.name)};",
                )


def _check_defaults(inside: Inside) -> Iterator[Finding]:
    """Strings in double quotes: https://sqlite.org/quirks.html#dblquote."""
    for table in inside.schema.tables.values():
        columns = [
            name for name, text in table.defaults.items() if text.lstrip("( ").startswith('"')
        ]
        if columns:
            yield _DEFAULT.found(
                f"{table.name} has defaults in double quotes: {', '.join(columns)}.",
                "-- in SQLite's own shell; then VACUUM\nPRAGMA writable_schema = ON;\n"
                f"UPDATE sqlite_schema SET sql = {_single_quoted(table, columns)}"
                f" WHERE type = 'table' AND name = {_literal(table.name)};\n"
                "PRAGMA writable_schema = RESET;",
            )


def _check_sequences(inside: Inside) -> Iterator[Finding]:
    """Numbers that come to their end: https://sqlite.org/autoinc.html."""
    has = inside.content.value("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'")
    sequences = dict(inside.content.rows("SELECT name, seq FROM sqlite_sequence")) if has else {}
    for table in inside.schema.tables.values():
        if not table.has_rowid:
            continue
        last = inside.content.value(f"SELECT max({_rowid(table)}) FROM {quoted(table.name)}")
        given = sequences.get(table.name)
        if isinstance(given, int) and given > _LAST - _NEAR:
            yield _SEQUENCE.found(
                f"{table.name} has given the number {given:,}.",
                f"{_renumbered(table)}\nUPDATE sqlite_sequence SET seq ="
                f" (SELECT coalesce(max({_rowid(table)}), 0) FROM {quoted(table.name)})"
                f" WHERE name = {_literal(table.name)};",
            )
        elif isinstance(last, int) and last > _LAST - _NEAR:
            yield _ROWID.found(
                f"A row of {table.name} has the number {last:,}.", _renumbered(table)
            )


def _is_found(table: Table, columns: tuple[str, ...]) -> bool:
    lowered = sorted(column.lower() for column in columns)
    if table.rowid_column and lowered == [table.rowid_column.lower()]:
        return True
    return any(index.serves(columns) for index in table.indexes)


def _has_rows(inside: Inside, table: Table, count: int) -> bool:
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {quoted(table.name)} LIMIT ?)"
    return bool(inside.content.value(sql, count) >= count)


def _double(table: Table, index: Index, other: str) -> Finding:
    return _DUPLICATE.found(
        f"{index.name} of {table.name} is the same as {other}.", f"DROP INDEX {quoted(index.name)};"
    )


def _is_same(index: Index, other: Index) -> bool:
    if (index.where, index.expressions) != (other.where, other.expressions):
        return False
    # A unique index is more than one that is not.
    return _lowered(index) == _lowered(other) and (other.is_unique or not index.is_unique)


def _begins(index: Index, other: Index) -> bool:
    if index.is_unique or index.where or other.where or index.expressions or other.expressions:
        return False
    keys, longer = _lowered(index), _lowered(other)
    return len(keys) < len(longer) and longer[: len(keys)] == keys


def _lowered(index: Index) -> tuple[tuple[str, bool, str], ...]:
    return tuple(
        (name, is_descending, collation)
        for name, (_, is_descending, collation) in zip(index.columns, index.keys, strict=True)
    )


def _rowid(table: Table) -> str:
    """A name of the rowid that no column has taken."""
    if table.rowid_column:
        return quoted(table.rowid_column)
    taken = {column.lower() for column in table.columns}
    return next((name for name in ("rowid", "oid", "_rowid_") if name not in taken), "NULL")


def _renumbered(table: Table) -> str:
    """Gives the last rows the next numbers after the others."""
    name, number, end = quoted(table.name), _rowid(table), _LAST - _NEAR
    return (
        "-- what refers to these rows must be changed as well\n"
        f"UPDATE {name} SET {number} = moved.new FROM (SELECT {number} AS old,"
        f" (SELECT coalesce(max({number}), 0) FROM {name} WHERE {number} <= {end})"
        f" + row_number() OVER (ORDER BY {number}) AS new FROM {name} WHERE {number} > {end})"
        f" AS moved WHERE {name}.{number} = moved.old;"
    )


def _single_quoted(table: Table, columns: list[str]) -> str:
    sql = table.sql
    for column in columns:
        text = table.defaults[column].strip("() ")
        if text.endswith('"'):
            plain = text[1:-1].replace('""', '"').replace("'", "''")
            sql = sql.replace(text, f"'{plain}'")
    return _literal(sql)


def _literal(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


CHECKS: Final = (_check_foreign_keys, _check_indexes, _check_defaults, _check_sequences)

ILLNESSES: Final = (_NO_INDEX, _DUPLICATE, _PREFIX, _DEFAULT, _SEQUENCE, _ROWID)
