"""Names and texts, written into SQL of either side."""

from collections.abc import Iterable
from typing import Final

__all__ = ["NAME_BYTES", "identifier", "identifiers", "literal", "table_name"]

NAME_BYTES: Final = 63
"""https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS"""


def identifier(name: str) -> str:
    """A name in double quotes, as SQLite and PostgreSQL both read it."""
    return '"' + name.replace('"', '""') + '"'


def identifiers(names: Iterable[str]) -> str:
    """Names, with commas between them."""
    return ", ".join(map(identifier, names))


def table_name(schema: str, table: str) -> str:
    """A table of PostgreSQL's, with its schema."""
    return f"{identifier(schema)}.{identifier(table)}"


def literal(text: str) -> str:
    """A text in single quotes, as SQLite reads it, and PostgreSQL where no backslash escapes."""
    return "'" + text.replace("'", "''") + "'"
