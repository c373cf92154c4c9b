"""Expressions of SQLite's, with names as PostgreSQL's tables have them.

SQLite finds ``Price`` and ``[PRICE]`` where a column is named ``price``; PostgreSQL has names as
they were declared, and reads a word without quotes in small letters. SQLite's REAL has 8 bytes,
PostgreSQL's 4.
"""

import re
from collections.abc import Iterable
from typing import Final

from oxlite.promotion.names import identifier

__all__ = ["with_names"]

_TOKEN: Final = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|[^\W\d]\w*""",
    re.DOTALL,
)
_AFTER_AS: Final = re.compile(r"\bAS\s+\Z", re.IGNORECASE)


def with_names(sql: str, columns: Iterable[str]) -> str:
    """The same SQL, with the names of columns in double quotes, as they were declared."""
    known = {name.lower(): name for name in columns}

    def written(found: re.Match[str]) -> str:
        token = found.group()
        if token[0] in "'-/":
            return token
        if token[0] in '"`[':
            close = "]" if token[0] == "[" else token[0]
            name = token[1:-1].replace(close * 2, close)
            declared = known.get(name.lower())
            return token if declared is None and token[0] == '"' else identifier(declared or name)
        is_function_or_blob = re.match(r"\s*\(|'", sql[found.end() :])
        if _AFTER_AS.search(sql[: found.start()]):
            return "double precision" if token.upper() == "REAL" else token
        if is_function_or_blob:
            return token
        declared = known.get(token.lower())
        return token if declared is None else identifier(declared)

    return _TOKEN.sub(written, sql)
