"""The tables of a database, with their columns, indexes and foreign keys.

Source: https://sqlite.org/pragma.html, table_list, table_xinfo, index_list, index_xinfo and
foreign_key_list.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from oxlite.operations.doctor.content import Content

__all__ = ["ForeignKey", "Index", "Schema", "Table", "read_schema"]


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a table.

    Attributes:
        name: Its name.
        is_unique: Whether it is one.
        origin: ``c`` (CREATE INDEX), ``u`` (UNIQUE) or ``pk`` (PRIMARY KEY).
        keys: Of each column: its name (None for an expression), whether descending, the collation.
        where: The condition of a partial index, without needless blanks; "" for others.
        expressions: Its text, if one of its columns is an expression; else "".
    """

    name: str
    is_unique: bool
    origin: str
    keys: tuple[tuple[str | None, bool, str], ...]
    where: str
    expressions: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, in lower case; of an expression a name that no column has."""
        return tuple("" if name is None else name.lower() for name, _, _ in self.keys)

    def serves(self, columns: tuple[str, ...]) -> bool:
        """Whether rows with given values of some columns are found by it."""
        lowered = {column.lower() for column in columns}
        found = set(self.columns[: len(lowered)])
        return found == lowered and (not self.where or self._is_not_null(lowered))

    def _is_not_null(self, columns: set[str]) -> bool:
        # `x = ?` implies `x IS NOT NULL` (https://sqlite.org/partialindex.html, 3).
        column = re.fullmatch(r'[`"\[]?(\w+)[`"\]]? is not null', self.where, re.IGNORECASE)
        return column is not None and column[1].lower() in columns


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key of a table.

    Attributes:
        parent: The table that it refers to.
        columns: Its columns.
        parent_columns: Those of the parent; empty for the parent's primary key.
    """

    parent: str
    columns: tuple[str, ...]
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is none of SQLite's own, of no module, and no part of a virtual one.

    Attributes:
        name: Its name.
        has_rowid: Whether it is no WITHOUT ROWID table.
        columns: The names of its columns.
        defaults: By column, the text of its default.
        primary_key: The columns of its primary key, in order.
        rowid_column: The column that is another name of its rowid, or None.
        indexes: All of them.
        foreign_keys: All of them.
        sql: The statement that made it.
    """

    name: str
    has_rowid: bool
    columns: tuple[str, ...]
    defaults: Mapping[str, str]
    primary_key: tuple[str, ...]
    rowid_column: str | None
    indexes: tuple[Index, ...]
    foreign_keys: tuple[ForeignKey, ...]
    sql: str

    def is_key(self, columns: tuple[str, ...]) -> bool:
        """Whether columns can be what a foreign key refers to: https://sqlite.org/foreignkeys.html."""
        wanted = sorted(column.lower() for column in columns)
        if wanted == sorted(column.lower() for column in self.primary_key):
            return True
        return any(
            index.is_unique and not index.where and sorted(index.columns) == wanted
            for index in self.indexes
        )


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables, and the names of what else one can refer to.

    Attributes:
        tables: By name, in lower case.
        others: The names of views and of virtual tables, in lower case.
    """

    tables: Mapping[str, Table]
    others: frozenset[str]


_TABLES: Final = """
SELECT l.name, l.type, l.wr, coalesce(s.sql, '') FROM pragma_table_list AS l
JOIN sqlite_schema AS s ON s.name = l.name AND s.type IN ('table', 'view')
WHERE l.schema = 'main' ORDER BY l.name
"""


def read_schema(content: Content) -> Schema:
    """Read it.

    Raises:
        oxlite.sqlite3.Error: It cannot be read.
    """
    tables, others = {}, set()
    for name, kind, without_rowid, sql in content.rows(_TABLES):
        if kind != "table" or name.lower().startswith("sqlite_"):
            others.add(name.lower())
        else:
            tables[name.lower()] = _table(content, name, not without_rowid, sql)
    return Schema(tables, frozenset(others))


def _table(content: Content, name: str, has_rowid: bool, sql: str) -> Table:
    columns = content.rows("SELECT name, type, dflt_value, pk FROM pragma_table_xinfo(?)", name)
    key = [(place, column) for column, _, _, place in columns if place]
    primary_key = tuple(column for _, column in sorted(key))
    indexes = tuple(_indexes(content, name))
    # INTEGER PRIMARY KEY has no index of its own (https://sqlite.org/lang_createtable.html#rowid).
    is_rowid = (
        has_rowid and len(primary_key) == 1 and not any(index.origin == "pk" for index in indexes)
    )
    return Table(
        name=name,
        has_rowid=has_rowid,
        columns=tuple(column for column, _, _, _ in columns),
        defaults={column: text for column, _, text, _ in columns if text is not None},
        primary_key=primary_key,
        rowid_column=primary_key[0] if is_rowid else None,
        indexes=indexes,
        foreign_keys=_foreign_keys(content, name),
        sql=sql,
    )


def _indexes(content: Content, table: str) -> list[Index]:
    listed = content.rows(
        "SELECT l.name, l.\"unique\", l.origin, coalesce(s.sql, '') FROM pragma_index_list(?) AS l"
        " LEFT JOIN sqlite_schema AS s ON s.type = 'index' AND s.name = l.name ORDER BY l.name",
        table,
    )
    found = []
    for name, is_unique, origin, sql in listed:
        keys = content.rows(
            'SELECT name, "desc", coll, cid FROM pragma_index_xinfo(?) WHERE key', name
        )
        where = re.search(r"\)\s*WHERE\b(.*)\Z", sql, re.IGNORECASE | re.DOTALL)
        has_expression = any(number == -2 for *_, number in keys)
        found.append(
            Index(
                name,
                bool(is_unique),
                origin,
                tuple((column, bool(desc), coll) for column, desc, coll, _ in keys),
                " ".join(where[1].split()) if where else "",
                " ".join(sql.partition("(")[2].split()) if has_expression else "",
            )
        )
    return found


def _foreign_keys(content: Content, table: str) -> tuple[ForeignKey, ...]:
    columns: dict[int, list[tuple[str, str | None]]] = defaultdict(list)
    parents = {}
    for number, parent, column, parent_column in content.rows(
        'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq', table
    ):
        parents[number] = parent
        columns[number].append((column, parent_column))
    return tuple(
        ForeignKey(
            parents[number],
            tuple(column for column, _ in pairs),
            tuple(other for _, other in pairs if other is not None),
        )
        for number, pairs in columns.items()
    )
