"""How a cache asks its file, and goes on where that fails.

Invariants:
- A file that cannot be read is a miss, and a damaged one is emptied and used again. What is the
  caller's mistake is raised.
- What could not be written is not there for this process, until it can be.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from oxlite import sqlite3
from oxlite.cache import store
from oxlite.cache.entry import Codec
from oxlite.cache.hidden import hidden_of
from oxlite.cache.place import Place, is_damage, is_misshapen
from oxlite.cache.recency import Recency
from oxlite.cache.steps import Blocking, Read, Steps, Write

__all__ = ["SLICE", "Access", "milliseconds"]

SLICE: Final = 500
"""So many entries are looked at, or written, at once."""


def milliseconds() -> int:
    """Now, since 1970."""
    return time.time_ns() // 1_000_000


class Access:
    """Asks the file of a cache.

    Args:
        place: The file.
        codec: Makes bytes of values.

    Attributes:
        place: The file.
        codec: See there.
        recency: When entries were used, once the file was opened.
        note: Notes that the entry of a number is used now.
        hits: How many keys were found.
        misses: How many were not.
        failures: How often the file could not be read or written.
        hidden: What stands in the file and is not to be seen, since it could not be replaced.
    """

    def __init__(self, place: Place, codec: Codec) -> None:
        self.place = place
        self.codec = codec
        self.recency: Recency | None = None
        self.note: Callable[[int], None] = _forget
        self.hits = self.misses = self.failures = 0
        self.hidden = hidden_of(place.path)

    def use(self, recency: Recency) -> None:
        """From now on it is noted there when entries are used."""
        self.recency = recency
        self.note = recency.note

    def _read(self, sql: str, parameters: Sequence[Any]) -> Steps[list[Any]]:
        try:
            rows: list[Any] = yield Read(sql, parameters)
        except (sqlite3.Error, OSError) as error:
            yield from self._survive(error, sql, parameters)
            return []
        return rows

    def _write(self, sql: str, parameters: Sequence[Any]) -> Steps[list[Any] | None]:
        """The rows that came back, ``None`` if it could not be written."""
        try:
            rows: list[Any] = yield Write(sql, parameters)
        except (sqlite3.Error, OSError) as error:
            yield from self._survive(error, sql, parameters)
            return None
        return rows

    def _hide(self, numbers: Sequence[int]) -> Steps[None]:
        """What stands there could not be replaced or deleted, and is not to be seen."""
        for begin in range(0, len(numbers), SLICE):
            part = numbers[begin : begin + SLICE]
            try:
                rows = yield Read(store.ROWS, (json.dumps(part),))
            except (sqlite3.Error, OSError):
                for number in part:
                    self.hidden.hide(number, None)
            else:
                # Where nothing stands there is nothing to hide.
                for number, *row in rows:
                    self.hidden.hide(number, row)

    def _deleted_numbers(self, numbers: Sequence[int]) -> Steps[list[bool] | None]:
        parameters = (json.dumps(numbers), milliseconds())
        rows = yield from self._write(store.DELETE_IDS, parameters)
        if rows is None:
            return None
        for number in numbers:
            self.hidden.show(number)
        return [bool(row[0]) for row in rows]

    def _survive(self, error: Exception, sql: str, parameters: Sequence[Any]) -> Steps[None]:
        """A cache may forget, and must not bring a site down.

        Raises:
            oxlite.sqlite3.Error: It is a mistake of the caller's, and not the file's.
        """
        if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
            raise error
        self._fail(error)
        if is_damage(error) or is_misshapen(error):
            try:
                yield Blocking(lambda: self.place.repair(error, sql, parameters))
            except (sqlite3.Error, OSError) as again:
                self.place.say(again)

    def _fail(self, error: Exception) -> None:
        self.failures += 1
        self.place.say(f"{type(error).__name__}: {error}")


def _forget(_number: int) -> None:
    """Nobody keeps it yet."""
