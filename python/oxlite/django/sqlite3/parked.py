"""Connections that outlive requests: parked where Django closes them, lent to whoever opens next.

With ``CONN_MAX_AGE = 0``, which is Django's default and its advice under ASGI, each request opens a
connection: a file, its settings, some sixty functions, a schema to be read, no statement prepared.
A parked one has all that.

Invariants:
- The next one finds nothing of what the one before has done, or the connection was closed instead
  (``_native.hand_over``); and whoever has kept the old object is refused by it.
- It is lent for the same settings, and while their name leads to the file that it has open.
- No more than ``Limits.max_size`` wait for each database, none for longer than ``max_idle``, and
  none crosses a fork.
"""

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Final

from oxlite import _native
from oxlite import sqlite3 as driver
from oxlite.sqlite3 import Connection

__all__ = [
    "Limits",
    "ParkedConnections",
    "accepts_pool",
    "identity",
    "limits",
    "parked_connections",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the connections that wait.

    Attributes:
        max_size: For each database, in each process.
        max_idle: Seconds.
    """

    max_size: int = 20
    max_idle: float = 60.0


_NAMES: Final = {one.name for one in fields(Limits)}


def accepts_pool(value: object) -> bool:
    """Whether that may be the option ``pool``."""
    if isinstance(value, bool):
        return True
    return isinstance(value, Mapping) and all(
        name in _NAMES
        and isinstance(number, int | float)
        and not isinstance(number, bool)
        and number >= 0
        for name, number in value.items()
    )


def limits(value: Any) -> Limits | None:
    """What the option ``pool`` says; ``None`` if none are to be parked."""
    if value is False:
        return None
    return Limits() if value is True else Limits(**value)


def identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Which file a name leads to; ``None`` if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - it is asked at each request
    except OSError:
        return None
    return found.st_dev, found.st_ino


@dataclass(slots=True)
class _Waiting:
    parked: _native.Parked
    file: tuple[int, int]
    ends: float


class ParkedConnections:
    """The connections of a process that nobody uses."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """In a forked child they are the parent's."""
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], deque[_Waiting]] = {}
        self._sweeper: threading.Thread | None = None

    def __len__(self) -> int:
        """How many wait."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def take(self, alias: str, key: str, file: tuple[int, int]) -> Connection | None:
        """The connection that was parked last with these settings, if it has this file open.

        Args:
            alias: Of the database.
            key: Of all of its settings.
            file: What its name leads to now.
        """
        while True:
            with self._lock:
                waiting = self._waiting.get((alias, key))
                if not waiting:
                    return None
                one = waiting.pop()
            if one.file == file and one.ends >= time.monotonic():
                return one.parked.lend()
            _close(one)  # the file was replaced

    def park(
        self, alias: str, key: str, file: tuple[int, int], connection: Connection, limits: Limits
    ) -> None:
        """Close a connection for whoever has it, and keep it for the next, if that can be.

        Raises:
            oxlite.sqlite3.Error: It could not be closed.
        """
        with self._lock:
            is_full = len(self._waiting.get((alias, key), ())) >= limits.max_size
        parked = None if is_full else _native.hand_over(connection)
        if parked is None:
            connection.close()
            return
        one = _Waiting(parked, file, time.monotonic() + limits.max_idle)
        with self._lock:
            waiting = self._waiting.setdefault((alias, key), deque())
            waiting.append(one)
            surplus = waiting.popleft() if len(waiting) > limits.max_size else None
            if self._sweeper is None:
                self._sweeper = threading.Thread(
                    target=self._sweep, args=(limits.max_idle,), name="oxlite-parked", daemon=True
                )
                self._sweeper.start()
        if surplus is not None:
            _close(surplus)

    def close(self, alias: str | None = None) -> None:
        """Close all that wait, or those of one database."""
        with self._lock:
            keys = [key for key in self._waiting if alias in (None, key[0])]
            all_of_them = [one for key in keys for one in self._waiting.pop(key)]
        for one in all_of_them:
            _close(one)

    def _sweep(self, pause: float) -> None:
        """Close those whose time is over, until there are none."""
        while True:
            time.sleep(min(max(pause / 2, 0.05), 30.0))
            now = time.monotonic()
            with self._lock:
                over = []
                for key, waiting in list(self._waiting.items()):
                    while waiting and waiting[0].ends < now:
                        over.append(waiting.popleft())
                    if not waiting:
                        del self._waiting[key]
                is_done = not self._waiting
                if is_done:
                    self._sweeper = None
            for one in over:
                _close(one)
            if is_done:
                return


def _close(one: _Waiting) -> None:
    with suppress(driver.Error):  # nobody has it
        one.parked.close()


parked_connections: Final = ParkedConnections()
"""Of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=parked_connections._forget)
atexit.register(parked_connections.close)
