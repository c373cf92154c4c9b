"""Cursors: the driver's, which take Django's placeholders, and Django's around them.

Invariant: what tools replace at Django's ``CursorWrapper``, to see each statement, is what runs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from django.db.backends.sqlite3.base import FORMAT_QMARK_REGEX
from django.db.backends.utils import CursorWrapper as StockCursorWrapper

from oxlite.django.sqlite3.operations import DatabaseOperations
from oxlite.sqlite3 import Cursor

__all__ = ["CursorWrapper", "SQLiteCursorWrapper", "SQLiteLoggedCursorWrapper"]


class CursorWrapper(StockCursorWrapper):
    """Django's cursor, around the driver's.

    Django looks these methods up at each use, and makes a function around each that fetches.
    """

    cursor: Any
    db: Any

    def fetchone(self) -> Any:
        """The next row; ``None`` after the last. Raises ``django.db.Error``."""
        with self.db.wrap_database_errors:
            return self.cursor.fetchone()

    def fetchmany(self, *arguments: Any, **named: Any) -> Any:
        """The next rows. Raises ``django.db.Error``."""
        with self.db.wrap_database_errors:
            return self.cursor.fetchmany(*arguments, **named)

    def fetchall(self) -> Any:
        """All rows that are left. Raises ``django.db.Error``."""
        with self.db.wrap_database_errors:
            return self.cursor.fetchall()

    def close(self) -> None:
        """Close the cursor."""
        self.cursor.close()


class SQLiteCursorWrapper(Cursor):
    """A cursor that takes Django's placeholders: ``%s`` and ``%(name)s``.

    A literal percent sign is written ``%%`` where there are parameters.
    """

    def execute(self, query: str, params: Any = None) -> "SQLiteCursorWrapper":
        """Run one statement.

        Raises:
            oxlite.sqlite3.Error: What SQLite said.
        """
        if params is None:
            super().execute(query)
        elif type(params) is tuple or not isinstance(params, Mapping):
            super().execute(_with_question_marks(query), params)
        else:
            super().execute(self.convert_query(query, param_names=list(params)), params)
        return self

    def executemany(self, query: str, param_list: Iterable[Any]) -> "SQLiteCursorWrapper":
        """Run one statement with many sets of parameters. Raises as ``execute`` does."""
        sets: Iterator[Any] = iter(param_list)
        first = next(sets, None)
        names = list(first) if first and isinstance(first, Mapping) else None
        converted = self.convert_query(query, param_names=names)
        super().executemany(converted, sets if first is None else chain((first,), sets))
        return self

    def convert_query(self, query: str, *, param_names: list[str] | None = None) -> str:
        """A statement with SQLite's placeholders."""
        if param_names is None:
            return _with_question_marks(query)
        return query % {name: f":{name}" for name in param_names}


class SQLiteLoggedCursorWrapper(SQLiteCursorWrapper):
    """A cursor whose statements are logged, and that notes for the log what they meet at the lock.

    Below the wrapper that logs, which is Django's or whatever somebody has put in its place.

    Attributes:
        operations: Where it is noted.
    """

    operations: DatabaseOperations

    def execute(self, query: str, params: Any = None) -> "SQLiteLoggedCursorWrapper":
        """Run one statement. Raises as the base class does."""
        with self.operations.noting_the_lock(query):
            super().execute(query, params)
        return self


def _convert(query: str) -> str:
    converted: str = FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")
    return converted


_LONGEST_REMEMBERED: Final = 4096
_remembered: Final[Callable[[str], str]] = lru_cache(maxsize=512)(_convert)


def _with_question_marks(query: str) -> str:
    # An application has few statements, which it runs again and again.
    return _remembered(query) if len(query) <= _LONGEST_REMEMBERED else _convert(query)
