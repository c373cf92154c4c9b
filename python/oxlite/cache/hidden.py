"""Values that could not be replaced or deleted, and are not to be seen any more.

Invariants:
- All caches of a process that use one file have the same.
- What is hidden is one row. Once somebody else has written another one, that is seen.
- Beyond the bound everything is hidden, until the cache could be cleared.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final
from weakref import WeakValueDictionary

__all__ = ["Hidden", "Row", "hidden_of"]

_AT_MOST: Final = 10_000
_EVERYTHING: Final = 2**64
"""No key has that number."""

Row = Sequence[Any]
"""Value and expiry, as they are stored."""


class Hidden:
    """What is hidden of one file.

    Attributes:
        rows: What is hidden, by number; empty where nothing is.
        is_everything: Whether there was too much to remember.
    """

    def __init__(self) -> None:
        # A hash of the row, or ``None`` for the first that is found there.
        self.rows: dict[int, int | None] = {}
        self.is_everything = False

    def __bool__(self) -> bool:
        """Whether anything is hidden."""
        return bool(self.rows)

    def hide(self, number: int, row: Row | None) -> None:
        """Hide what stands under a number: that row, or the first that is found."""
        if len(self.rows) >= _AT_MOST and number not in self.rows:
            self.is_everything = True
            self.rows.clear()
            self.rows[_EVERYTHING] = None
        if not self.is_everything:
            self.rows[number] = None if row is None else _mark(row)

    def hides(self, number: int, row: Row) -> bool:
        """Whether that row, which stands there now, is hidden."""
        if self.is_everything:
            return True
        if number not in self.rows:
            return False
        found = _mark(row)
        mark = self.rows[number]
        if mark is None:
            mark = self.rows[number] = found
        if mark == found:
            return True
        del self.rows[number]
        return False

    def show(self, number: int) -> None:
        """What stands there is written by us."""
        self.rows.pop(number, None)

    def clear(self) -> None:
        """Nothing is there any more."""
        self.rows.clear()
        self.is_everything = False

    def some(self, count: int) -> list[int]:
        """Some of the numbers whose row is known."""
        known = (number for number, mark in self.rows.items() if mark is not None)
        return list(islice(known, count))


_of: "WeakValueDictionary[str, Hidden]" = WeakValueDictionary()


def hidden_of(path: str) -> Hidden:
    """What is hidden of the file, in this process."""
    return _of.setdefault(path, Hidden())


def _mark(row: Row) -> int:
    return hash((row[0], row[1]))
