"""Which type of PostgreSQL's a column gets: by what it was declared as, and by what is in it.

A declared type says what was meant; SQLite lets anything be stored all the same
(https://sqlite.org/datatype3.html). So each declared type has a list: what was meant first, and
what holds more after it. The last of a list holds any text.
"""

import re
from collections.abc import Sequence
from typing import Final

from oxlite.promotion.source import Column, Table

__all__ = ["candidates", "is_by_content", "is_lossless"]

_SIZE: Final = re.compile(r"\((\d+)(?:\s*,\s*(\d+))?\)")
_LENGTH_AT_MOST: Final = 10_485_760
_PRECISION_AT_MOST: Final = 1000
"""Larger ones PostgreSQL does not make: https://www.postgresql.org/docs/current/datatype.html"""
_BY_CONTENT: Final = ("bigint", "double precision", "text", "bytea")

_BY_NAME: Final = (
    (r"BOOL", ("boolean", "bigint", "text")),
    (r"JSON", ("jsonb", "text")),
    (r"UUID|GUID|UNIQUEIDENTIFIER", ("uuid", "text")),
    (r"TIMESTAMPTZ|WITH TIME ZONE", ("timestamp with time zone", "text")),
    (
        r"DATETIME|TIMESTAMP",
        ("timestamp without time zone", "timestamp with time zone", "text"),
    ),
    (r"^DATE\b", ("date", "timestamp without time zone", "timestamp with time zone", "text")),
    (r"^TIME\b", ("time without time zone", "text")),
    (r"INTERVAL", ("interval", "text")),
    (r"INT", ("bigint", "numeric", "text")),
    (r"CHAR", ("text",)),
    (r"TEXT|CLOB|STRING", ("text",)),
    (r"BLOB|BINARY|BYTEA|IMAGE", ("bytea",)),
    (r"REAL|FLOA|DOUB", ("double precision", "numeric", "text")),
    (r"DEC|NUMERIC|MONEY", ("numeric", "text")),
)


def candidates(table: Table, column: Column) -> tuple[str, ...]:
    """The types that a column may get, what was meant first.

    One without a declared type, or with one that says nothing, is judged by what is in it: the
    first that holds all of that is meant.
    """
    if column.name == table.row_key:
        return ("bigint",)
    declared = column.declared
    size = _SIZE.search(declared)
    for pattern, names in _BY_NAME:
        if re.search(pattern, declared):
            if size is None:
                return names
            first, second = int(size.group(1)), int(size.group(2) or 0)
            if "CHAR" in pattern and 0 < first <= _LENGTH_AT_MOST:
                return (f"character varying({first})", *names)
            if pattern.startswith("DEC") and second <= first and 0 < first <= _PRECISION_AT_MOST:
                return (f"numeric({first},{second})", *names)
            return names
    return _BY_CONTENT


def is_by_content(asked: Sequence[str]) -> bool:
    """Whether a column's declaration says nothing, so that what is in it decides."""
    return tuple(asked) == _BY_CONTENT


def is_lossless(asked: Sequence[str], wider: str) -> bool:
    """Whether a type only lets more in than what was meant, and is of the same sort.

    Args:
        asked: The types that the column may get, what was meant first.
        wider: The one that holds all of it.
    """
    meant = asked[0]
    sort = meant.partition("(")[0]
    return (sort, wider) in {
        ("character varying", "text"),
        ("numeric", "numeric"),
        ("timestamp without time zone", "timestamp with time zone"),
    } or is_by_content(asked)
