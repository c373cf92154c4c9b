"""The text of a database as SQL: what ``Connection.iterdump`` yields.

The lines are those of the newest CPython, in its order. They differ where CPython's could not be
executed or would lose something:

- text with a null character is written whole, and text that is not valid UTF-8 as the cast of a
  blob;
- rows of a virtual table are left to the shadow tables that hold them: while the script runs the
  virtual table cannot be reached by its name; at its end the schema is read anew
  (https://sqlite.org/pragma.html#pragma_writable_schema), so the connection that has run it can use
  the table at once;
- a comment at the end of a definition does not swallow the semicolon;
- ``sqlite_sequence`` is named only where the script makes SQLite create it;
- a table may have two thousand columns, and a single quote in its name;
- a table of the main database is read even if a temporary one hides its name;
- a foreign key whose parent columns are not unique, which cannot be checked, stops nothing.

Invariants: no factory, adapter or converter of the connection sees what is read here. Values are
quoted by SQLite with its operators and with ``quote``, ``replace`` and ``typeof``. Everything is
read as bytes, in the encoding of the database. Rows are read while they are yielded, so memory
does not grow with the database; what others commit meanwhile may appear in tables not yet read.
"""

import re
from collections.abc import Iterator, Sequence

from oxlite.sqlite3 import Connection, Cursor, OperationalError, complete_statement

__all__: list[str] = []

_ENCODINGS = {b"a": "utf-8", b"a\0": "utf-16-le", b"\0a": "utf-16-be"}
_STRING = re.compile("'((?:[^']|'')*)'")


def _iterdump(connection: Connection, *, filter: object = None) -> Iterator[str]:
    """Yield the statements that make the main database anew.

    Args:
        connection: Where to read.
        filter: A pattern for LIKE; only objects with a matching name are written.

    Yields:
        One statement each, with its semicolon.

    Raises:
        Error: The database cannot be read.
    """
    source = _Source(connection, filter or None)
    if source.violates_foreign_keys():
        yield "PRAGMA foreign_keys=OFF;"
    yield "BEGIN TRANSACTION;"
    schema_is_open = makes_sequence = has_sequence = False
    for name, sql in source.tables():
        if name == "sqlite_sequence":
            has_sequence = True
        elif name == "sqlite_stat1":
            yield 'ANALYZE "sqlite_master";'
            yield from source.rows(name)
        elif name.startswith("sqlite_"):
            continue  # SQLite makes it itself
        elif sql.startswith("CREATE VIRTUAL TABLE"):
            if not schema_is_open:
                schema_is_open = True
                yield "PRAGMA writable_schema=ON;"
            yield (
                "INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql)"
                f"VALUES('table',{_string(name)},{_string(name)},0,{_string(sql)});"
            )
        else:
            makes_sequence |= "autoincrement" in sql.lower()
            yield _terminated(sql)
            yield from source.rows(name)
    for sql in source.others():
        yield _terminated(sql)
    if schema_is_open:
        # RESET, not OFF: the virtual tables are there for the connection that runs the script, too.
        yield "PRAGMA writable_schema=RESET;"
    # Last: the inserts above count in it too.
    if has_sequence:
        rows = list(source.rows("sqlite_sequence"))
        if rows or makes_sequence:
            yield 'DELETE FROM "sqlite_sequence";'
            yield from rows
    yield "COMMIT;"


class _Source:
    """The main database of a connection, read without the connection's factories.

    Each result column has a name of its own, or a table's column named ``x [date]`` would call a
    converter where ``PARSE_COLNAMES`` is set.
    """

    def __init__(self, connection: Connection, pattern: object) -> None:
        self._connection = connection
        self._pattern = pattern
        ((sample,),) = self._execute("SELECT CAST('a' AS BLOB) AS sample")
        self._encoding = _ENCODINGS[sample]

    def violates_foreign_keys(self) -> bool:
        """Tell whether a row lacks its parent, so that foreign keys must be off for the script."""
        try:
            violation = self._execute("SELECT 1 FROM pragma_foreign_key_check(NULL, 'main')")
            return violation.fetchone() is not None
        except OperationalError as error:
            if error.sqlite_errorname == "SQLITE_ERROR":  # "foreign key mismatch"
                return False
            raise

    def tables(self) -> list[tuple[str, str]]:
        """Return the names and definitions of tables and virtual tables, by name."""
        query = """
            SELECT CAST(name AS BLOB) AS name, CAST(sql AS BLOB) AS sql FROM main.sqlite_master
            WHERE type = 'table' AND sql NOT NULL AND (?1 IS NULL OR name LIKE ?1) ORDER BY name
        """
        found = self._execute(query, self._pattern).fetchall()
        return [(name.decode(self._encoding), sql.decode(self._encoding)) for name, sql in found]

    def others(self) -> list[str]:
        """Return the definitions of indexes, triggers and views, in the order they were made."""
        query = """
            SELECT CAST(sql AS BLOB) AS sql FROM main.sqlite_master
            WHERE type IN ('index', 'trigger', 'view')
                AND sql NOT NULL AND (?1 IS NULL OR name LIKE ?1)
        """
        return [sql.decode(self._encoding) for (sql,) in self._execute(query, self._pattern)]

    def rows(self, table: str) -> Iterator[str]:
        """Yield an INSERT for each row of a table.

        ``pragma_table_info`` lists what such an INSERT expects: generated columns are absent.
        """
        query = "SELECT CAST(name AS BLOB) AS name FROM pragma_table_info(?, 'main')"
        columns = [name.decode(self._encoding) for (name,) in self._execute(query, table)]
        values = _joined([_literal(_identifier(column)) for column in columns])
        query = f'SELECT CAST({values} AS BLOB) AS "row" FROM main.{_identifier(table)}'
        beginning = f"INSERT INTO {_identifier(table)} VALUES("
        encoding = self._encoding
        for (row,) in self._execute(query):
            try:
                text = row.decode(encoding)
            except UnicodeDecodeError:
                text = _STRING.sub(_cast_if_invalid, row.decode(encoding, "surrogateescape"))
            if "\0" in text:
                text = text.replace("\0", "'||char(0)||'")
            yield f"{beginning}{text});"

    def _execute(self, sql: str, *parameters: object) -> Cursor:
        cursor = Cursor(self._connection)
        cursor.row_factory = None
        return cursor.execute(sql, parameters)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(column: str) -> str:
    """Return the expression of a column's value as a literal.

    ``quote`` would cut a text at its first null character. No other literal can have one.
    """
    return (
        f"CASE typeof({column}) WHEN 'text' "
        f"THEN ''''||replace({column},'''','''''')||'''' ELSE quote({column}) END"
    )


def _joined(expressions: Sequence[str]) -> str:
    """Return the expression that puts commas between others, as a tree.

    A chain of thousands of columns would be deeper than SQLite allows an expression to be.
    """
    if len(expressions) == 1:
        return expressions[0]
    middle = len(expressions) // 2
    return f"({_joined(expressions[:middle])}||','||{_joined(expressions[middle:])})"


def _cast_if_invalid(literal: re.Match[str]) -> str:
    try:
        literal[0].encode()
    except UnicodeEncodeError:
        content = literal[1].replace("''", "'").encode(errors="surrogateescape")
        return f"CAST(X'{content.hex().upper()}' AS TEXT)"
    return literal[0]


def _terminated(sql: str) -> str:
    """End a definition, also one that itself ends in a comment, closed or not."""
    endings = (f"{sql}{ending}" for ending in (";", "\n;", "*/;"))
    return next(filter(complete_statement, endings), f"{sql};")
