"""The standard library's driver with mistakes, for tests that the fuzzer finds mistakes."""

# ruff: noqa: ANN401

import os
import sqlite3
import time
from typing import Any

MISTAKE = os.environ.get("OXLITE_FUZZ_MISTAKE", "rowcount")


class Cursor(sqlite3.Cursor):
    """A cursor with a mistake."""

    def execute(self, *arguments: Any) -> Any:
        """Hangs or crashes at a savepoint, if asked to."""
        if MISTAKE in ("hang", "crash") and "SAVEPOINT" in str(arguments[0]):
            if MISTAKE == "hang":
                time.sleep(1000)
            os.abort()
        return super().execute(*arguments)

    def fetchone(self) -> Any:
        """Loses the type of a boolean's neighbour."""
        row = super().fetchone()
        if MISTAKE == "row" and isinstance(row, tuple):
            return tuple(1.0 if item == 1 else item for item in row)
        return row

    @property
    def rowcount(self) -> int:
        """Forgets that nothing has been counted."""
        count = super().rowcount
        return 0 if MISTAKE == "rowcount" and count == -1 else count


class Connection(sqlite3.Connection):
    """A connection with a mistake."""

    def cursor(self, factory: Any = Cursor) -> Any:
        """A cursor of ours."""
        return super().cursor(factory)


def connect(*arguments: Any, **options: Any) -> Any:
    """Connects with our class."""
    if len(arguments) < 6:
        options.setdefault("factory", Connection)
    return sqlite3.connect(*arguments, **options)


def __getattr__(name: str) -> Any:
    """Everything else is the standard library's."""
    return getattr(sqlite3, name)
