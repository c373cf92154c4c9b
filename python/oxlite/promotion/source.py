"""What is in a SQLite file: tables with their columns and keys, and what else hangs on them.

Invariants:
- Tables that SQLite, Litestream, Oxlite or a virtual table's module keeps for itself are left out.
- A key says which row is meant, in the order in which the table is read: never NULL, never twice.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from oxlite.promotion.errors import PromotionError
from oxlite.promotion.names import identifier, literal
from oxlite.sqlite3 import Connection

__all__ = [
    "Column",
    "ForeignKey",
    "Index",
    "Source",
    "Table",
    "read_declarations",
    "read_left_out",
    "read_source",
]

_INTERNAL: Final = re.compile(r"(sqlite_|_litestream_|oxlite_)", re.IGNORECASE)
_MODULES: Final = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE", re.IGNORECASE)
_SHADOWS: Final = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'"
_ROWIDS: Final = ("rowid", "_rowid_", "oid")
_CHECK: Final = re.compile(r"\bCHECK\s*\(", re.IGNORECASE)
_NAMED: Final = re.compile(r'\bCONSTRAINT\s+("(?:[^"]|"")+"|\w+)\s*$', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it was declared.

    Attributes:
        name: Its name.
        declared: Its declared type, in capitals; "" for none.
        is_nullable: Whether it may be NULL, by its declaration.
        default: The SQL of its default; ``None`` for none.
        generated: The expression that it is computed by; ``None`` for a plain column.
        collation: ``BINARY``, ``NOCASE``, ``RTRIM``, or an application's own.
    """

    name: str
    declared: str
    is_nullable: bool
    default: str | None
    generated: str | None
    collation: str


@dataclass(frozen=True, slots=True)
class Index:
    """An index, or a unique constraint.

    Attributes:
        name: Its name; "" for that of a constraint.
        columns: What it is of; empty where it is of an expression.
        collations: What texts of each of them are compared by.
        is_unique: Whether a value may be there once.
        sql: How it was made; ``None`` for a constraint's.
        where: The predicate of a partial one; "" for none.
    """

    name: str
    columns: tuple[str, ...]
    collations: tuple[str, ...]
    is_unique: bool
    sql: str | None
    where: str


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One foreign key."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]
    on_update: str
    on_delete: str
    is_deferred: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: Its name.
        columns: All, in their order.
        primary_key: Its columns; empty for none.
        key: By which it is read and its rows are found; a name of the rowid that no column has
            where its columns say no more than that.
        row_key: The column that is the rowid by another name; ``None`` for none.
        is_autoincrement: Whether numbers are never given twice.
        indexes: Those that are no primary key.
        foreign_keys: What it refers to.
        checks: Names ("" for none) and expressions.
        sql: How it was made.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    key: tuple[str, ...]
    row_key: str | None
    is_autoincrement: bool
    indexes: tuple[Index, ...]
    foreign_keys: tuple[ForeignKey, ...]
    checks: tuple[tuple[str, str], ...]
    sql: str

    @property
    def declaration(self) -> tuple[str, ...]:
        """The SQL of the table and of its indexes."""
        return (self.sql, *sorted(index.sql for index in self.indexes if index.sql is not None))

    @property
    def is_by_rowid(self) -> bool:
        """Whether its rows are told apart by a rowid that no column has."""
        return not any(column.name == self.key[0] for column in self.columns)

    def column(self, name: str) -> Column:
        """One of its columns."""
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True, slots=True)
class Source:
    """A file.

    Attributes:
        tables: What is carried over.
        left_out: Tables that are not, with the reason.
        views: Names and SQL.
        triggers: Names and SQL.
        sequences: The last number given, of each table with AUTOINCREMENT.
    """

    tables: tuple[Table, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    triggers: dict[str, str] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)


def read_source(connection: Connection, *, skipped: Iterable[str] = ()) -> Source:
    """Look at what a file has.

    Args:
        connection: One to it.
        skipped: Tables that are not to be carried over.

    Raises:
        oxlite.sqlite3.Error: It cannot be read.
    """
    left_out = read_left_out(connection, skipped=skipped)
    tables = []
    kept: dict[str, dict[str, str]] = {"view": {}, "trigger": {}}
    schema = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY rowid")
    for kind, name, sql in schema.fetchall():
        if kind in kept and not _INTERNAL.match(name):
            kept[kind][name] = sql or ""
        if kind == "table" and name not in left_out:
            tables.append(_table(connection, name, sql))
    has_sequences = "sqlite_sequence" in left_out
    numbers = connection.execute("SELECT name, seq FROM sqlite_sequence") if has_sequences else ()
    # Anybody can write there, and what he likes.
    sequences = {name: number for name, number in numbers if isinstance(number, int)}
    return Source(tuple(tables), left_out, kept["view"], kept["trigger"], sequences)


def read_left_out(connection: Connection, *, skipped: Iterable[str] = ()) -> dict[str, str]:
    """The tables that are not carried over, with the reason."""
    shadows = {name for (name,) in connection.execute(_SHADOWS)}
    skipped = set(skipped)
    found = {}
    for name, sql in connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY rowid"
    ):
        if name in skipped:
            found[name] = "told to be"
        elif _INTERNAL.match(name):
            found[name] = "internal"
        elif name in shadows:
            found[name] = "kept by the module of a virtual table"
        elif _MODULES.match(sql):
            found[name] = "a virtual table: PostgreSQL has no such module"
    return found


def read_declarations(connection: Connection) -> dict[str, tuple[str, ...]]:
    """The ``declaration`` of each table, of those that are left out as well."""
    found: dict[str, tuple[str, ...]] = {}
    for table, sql in connection.execute(
        "SELECT tbl_name, sql FROM sqlite_schema WHERE type IN ('table', 'index')"
        " AND sql IS NOT NULL ORDER BY type DESC, sql"
    ):
        found[table] = (*found.get(table, ()), sql)
    return found


def _table(connection: Connection, name: str, sql: str) -> Table:
    quoted = identifier(name)
    columns: list[Column] = []
    keys: dict[int, str] = {}
    for _, column, declared, not_null, default, key, hidden in connection.execute(
        f"PRAGMA table_xinfo({quoted})"
    ).fetchall():
        if hidden == 1:
            continue
        if key:
            keys[key] = column
        generated = _generated(sql, column) if hidden in {2, 3} else None
        collation = _collation(sql, column)
        columns.append(
            Column(column, (declared or "").upper(), not not_null, default, generated, collation)
        )
    primary_key = tuple(keys[number] for number in sorted(keys))
    (is_without_rowid,) = connection.execute(
        "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", (name,)
    ).fetchone()
    row_key = None if is_without_rowid else _row_key(connection, name, primary_key, columns)
    return Table(
        name,
        tuple(columns),
        primary_key,
        _key(connection, name, primary_key, row_key, bool(is_without_rowid), columns),
        row_key,
        bool(re.search(r"\bAUTOINCREMENT\b", sql, re.IGNORECASE)) and row_key is not None,
        tuple(_indexes(connection, name)),
        tuple(_foreign_keys(connection, name)),
        tuple(_checks(sql)),
        sql,
    )


def _row_key(
    connection: Connection, table: str, primary_key: tuple[str, ...], columns: list[Column]
) -> str | None:
    """The column that is the rowid: INTEGER PRIMARY KEY alone, and no index keeps it."""
    if len(primary_key) != 1:
        return None
    (name,) = primary_key
    declared = next(column.declared for column in columns if column.name == name)
    if declared != "INTEGER":
        return None
    kept = connection.execute(f"PRAGMA index_list({identifier(table)})").fetchall()
    return None if any(origin == "pk" for _, _, _, origin, _ in kept) else name


def _key(
    connection: Connection,
    table: str,
    primary_key: tuple[str, ...],
    row_key: str | None,
    is_without_rowid: bool,
    columns: list[Column],
) -> tuple[str, ...]:
    if row_key is not None:
        return (row_key,)
    if is_without_rowid:
        return primary_key
    if primary_key:
        is_null = " OR ".join(f"{identifier(name)} IS NULL" for name in primary_key)
        found = connection.execute(f"SELECT 1 FROM {identifier(table)} WHERE {is_null} LIMIT 1")
        if found.fetchone() is None:
            return primary_key
    taken = {column.name.lower() for column in columns}
    free = next((one for one in _ROWIDS if one not in taken), None)
    if free is None:
        raise PromotionError(
            f"the rows of {table!r} cannot be told apart: it has no primary key, and columns that"
            f" hide the names of the rowid ({', '.join(_ROWIDS)}). Rename one, or skip the table"
        )
    return (free,)


def _collation(sql: str, column: str) -> str:
    """What a column's texts are compared by."""
    found = re.search(_named(column) + r"[^,]*?\bCOLLATE\s+\"?(\w+)", sql, re.IGNORECASE)
    return found.group(1).upper() if found else "BINARY"


def _indexes(connection: Connection, table: str) -> Iterable[Index]:
    listed = connection.execute(f"PRAGMA index_list({identifier(table)})").fetchall()
    for _, name, is_unique, origin, is_partial in reversed(listed):
        if origin == "pk":
            continue
        row = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?", (name,)
        ).fetchone()
        sql = row[0] if row else None
        info = connection.execute(f"PRAGMA index_xinfo({identifier(name)})").fetchall()
        columns = tuple(column for _, _, column, _, _, is_key in info if is_key)
        collations = tuple(collation for *_, collation, is_key in info if is_key)
        where = ""
        if is_partial and sql is not None:
            where = re.split(r"\bWHERE\b", sql, maxsplit=1, flags=re.IGNORECASE)[-1].strip()
        yield Index(
            "" if origin == "u" else name,
            columns if all(column is not None for column in columns) else (),
            collations,
            bool(is_unique),
            sql,
            where,
        )


def _foreign_keys(connection: Connection, table: str) -> Iterable[ForeignKey]:
    found: dict[int, list[tuple[object, ...]]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({identifier(table)})").fetchall():
        found.setdefault(row[0], []).append(row)
    (sql,) = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    is_deferred = bool(re.search(r"\bINITIALLY\s+DEFERRED\b", sql, re.IGNORECASE))
    for rows in found.values():
        columns = tuple(str(row[3]) for row in rows)
        referred = tuple(str(row[4]) for row in rows if row[4] is not None)
        other = str(rows[0][2])
        there = connection.execute(
            f"SELECT name, pk FROM pragma_table_info({literal(other)}) ORDER BY pk"
        ).fetchall()
        if referred:
            declared = {name.lower(): str(name) for name, _ in there}
            referred = tuple(declared.get(name.lower(), name) for name in referred)
        else:  # the other table's primary key is meant
            referred = tuple(str(name) for name, place in there if place)
        yield ForeignKey(columns, other, referred, str(rows[0][5]), str(rows[0][6]), is_deferred)


def _checks(sql: str) -> Iterable[tuple[str, str]]:
    """Every CHECK of a table, by its parentheses; what is in quotes is passed over."""
    for found in _CHECK.finditer(_blanked(sql)):
        end = _closing(sql, found.end())
        if end is not None:
            named = _NAMED.search(sql[: found.start()])
            name = named.group(1).strip('"').replace('""', '"') if named else ""
            yield name, sql[found.end() : end]


def _generated(sql: str, column: str) -> str:
    """The expression of a generated column; "" where it is not found."""
    found = re.search(
        _named(column) + r"[^,()]*(?:\([^)]*\))?[^,()]*?\bAS\s*\(", sql, re.IGNORECASE
    )
    end = None if found is None else _closing(sql, found.end())
    return "" if found is None or end is None else sql[found.end() : end]


def _named(column: str) -> str:
    """A pattern for a column's name where it is declared."""
    return rf"(?:{re.escape(identifier(column))}|\b{re.escape(column)}\b|\[{re.escape(column)}\])"


_QUOTED: Final = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/""", re.DOTALL
)


def _blanked(sql: str) -> str:
    """The same with what is in quotes or comments blanked out, as long as it was."""
    return _QUOTED.sub(lambda found: " " * len(found.group()), sql)


def _closing(sql: str, start: int) -> int | None:
    """Where the parenthesis closes that was opened before a place."""
    depth = 1
    for place, letter in enumerate(_blanked(sql)[start:], start):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place
    return None
