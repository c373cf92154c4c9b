"""What ``oxlite.Database`` and ``oxlite.aio.Database`` have in common: options, state, statistics.

Invariants:
- Nothing is done with a closed database.
- In a forked child the connections of the parent are left alone, and new ones opened.
"""

import atexit
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Literal
from weakref import WeakSet

from oxlite import sqlite3
from oxlite._native import Announcement, Feed, Hearing, LockedError, Subscription
from oxlite.connection import BusyPolicy, ConnectOptions, ProfileName
from oxlite.database.factory import ConnectionFactory
from oxlite.database.statistics import DatabaseStatistics, statistics
from oxlite.notifications import channels_of
from oxlite.schema import require_range
from oxlite.sqlite3 import Connection

__all__ = ["CHUNK_SIZE", "DatabaseBase", "check_chunk_size"]

CHUNK_SIZE = 64
"""How many rows ``stream`` fetches at once."""

# In a forked child they begin anew.
_databases: "WeakSet[DatabaseBase]" = WeakSet()


def _begin_anew() -> None:
    for database in list(_databases):
        if not database._is_closed:
            database._begin_listening()
            database._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@atexit.register
def _end_all_listening() -> None:
    """Leave no memory behind that was shared with other processes, whoever forgot to close."""
    for database in list(_databases):
        database._end_listening(quietly=True)


class DatabaseBase(ABC):
    """See the module."""

    def __init__(
        self,
        path: str | bytes | PathLike[str] | PathLike[bytes],
        profile: ProfileName = "web",
        readers: int = 4,
        timeout: float = 5.0,
        *,
        setup: Callable[[Connection], object] | None = None,
        row_factory: Callable[[sqlite3.Cursor, tuple[Any, ...]], object] | None = None,
        pragmas: Mapping[str, bool | int | str] | None = None,
        journal: Literal["profile", "keep"] = "profile",
        busy: BusyPolicy = "gate",
        durable_commit: Literal["group", "each", "shared"] = "group",
        detect_types: int = 0,
        cached_statements: int = 128,
        statement_timeout: float | None = None,
        slow_statement: float | None = None,
        extensions: Iterable[str | PathLike[str]] | None = None,
    ) -> None:
        """Check what can be checked without a file.

        ``oxlite.Database`` opens its writer too, so that what is wrong is known at once;
        ``oxlite.aio.Database`` does so when it is entered or awaited. Readers are opened when
        they are first needed.

        Args:
            path: The file. A database in memory belongs to one connection, so it is refused.
            profile: As for ``oxlite.connect``.
            readers: How many queries can run at the same time, at least 1; more of them wait.
            timeout: How long a call waits, in seconds: for a reader or the writer, and for a lock
                of the file, all together.
            setup: Called with each new connection of the driver before it is used: for functions,
                collations, ATTACH. With asyncio it is called in a native thread.
            row_factory: What makes the rows, called with the driver's cursor and a tuple, such as
                ``oxlite.sqlite3.Row``; ``None`` for tuples.
            pragmas: As for ``oxlite.connect``, like the rest.
            journal: See there.
            busy: How a lock of the file is waited for; see there. The writes of this process wait
                for their turn in any case.
            durable_commit: ``"group"``: what is executed at the same time is committed together.
                ``"each"``: every call by itself. ``"shared"``: as ``"group"``, and the commits of
                all processes that say so are durable and share their syncs: see
                ``oxlite.connect``.
            detect_types: See there.
            cached_statements: See there.
            statement_timeout: See there.
            slow_statement: See there.
            extensions: See there.

        Raises:
            ValueError: A database that is not in a file, a choice that there is not, or a number
                out of range.
            TypeError: ``setup`` or ``row_factory`` cannot be called.
            oxlite.sqlite3.Error: As for ``oxlite.connect``, on opening.
        """
        require_range("Database", "readers", readers)
        for name, function in (("setup", setup), ("row_factory", row_factory)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} takes a function, not {type(function).__name__}")
        options: ConnectOptions = {
            "profile": profile,
            "timeout": timeout,
            "pragmas": pragmas,
            "journal": journal,
            "busy": busy,
            "detect_types": detect_types,
            "cached_statements": cached_statements,
            "statement_timeout": statement_timeout,
            "slow_statement": slow_statement,
            "extensions": extensions,
        }
        self._factory = ConnectionFactory(
            path, options, setup=setup, row_factory=row_factory, durable_commit=durable_commit
        )
        self._timeout = timeout
        self._reader_count = readers
        self._is_closed = False
        self._begin_listening()
        self._start()
        _databases.add(self)
        self._begin()

    @property
    def path(self) -> str:
        """The file."""
        return self._factory.path

    def _begin_listening(self) -> None:
        """Begin with no listener, in this process."""
        # A signal handler may close it while its thread is in ``listen``.
        self._feed_lock = threading.RLock()
        self._feed: tuple[Feed, Connection] | None = None
        # Whether this one has made the table of notifications, or found it.
        self._can_notify = False
        self._announced: Announcement | None = None
        self._announced_rows: dict[str, Announcement] = {}

    def _subscribe(self, channels: tuple[str, ...], since: str | None) -> Subscription:
        """Listen to channels from now on; the first one opens a reader for all.

        Raises:
            oxlite.LockedError: Another program has the file for itself; soon.
        """
        self._check()
        names = channels_of(channels)
        return self._opened_feed().listen(names, since)

    def _hear(self, topics: list[str]) -> Hearing:
        """Hear whenever rows come to a table of Oxlite's that names one of the topics."""
        self._check()
        return self._opened_feed().hear(topics)

    def _opened_feed(self) -> Feed:
        with self._feed_lock:
            if self._feed is None:
                self._check()  # it may have been closed meanwhile
                reader = self._factory.reader()
                self._feed = Feed(reader), reader
            feed, _reader = self._feed
        return feed

    def _has_notifications(self) -> bool:
        """Whether there is a table of notifications, or it cannot be known just now."""
        try:
            return self._opened_feed().has_table()
        except LockedError:
            return True

    def _announcement(self, channel: str) -> Announcement:
        """What is signalled when a notification in a channel is committed.

        The latest one is kept, and with it the memory that processes share for it.
        """
        announcement = self._announced = Announcement(self._factory.path, channel)
        return announcement

    def _row_announcement(self, prefix: str) -> Announcement:
        """What is signalled when a statement is committed: what its rows name, after a prefix."""
        announcement = self._announced_rows.get(prefix)
        if announcement is None:
            announcement = Announcement.of_rows(self._factory.path, prefix)
            self._announced_rows[prefix] = announcement
        return announcement

    def _end_listening(self, quietly: bool = False) -> None:
        """End all who listen, and announce nothing more."""
        self._announced, self._announced_rows = None, {}
        with self._feed_lock:
            ended, self._feed = self._feed, None
        if ended is not None:
            feed, reader = ended
            feed.close(quietly)
            reader.close()

    @abstractmethod
    def _start(self) -> None:
        """Begin with no connection, in this process."""

    @abstractmethod
    def _begin(self) -> None:
        """Called once, by the process that makes it."""

    @abstractmethod
    def _counts(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Readers: idle, lent, waited for. Writer: waited for, batches, and writes in them."""

    @abstractmethod
    def _open_writer(self) -> Connection | None:
        """The writing connection, if it is open; only to look at."""

    def _check(self) -> None:
        """Refuse a closed database."""
        if self._is_closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed Database.")

    def stats(self) -> DatabaseStatistics:
        """What it is doing now, and what this process has done in the queue and with the WAL.

        Raises:
            oxlite.sqlite3.ProgrammingError: The database is closed.
        """
        self._check()
        return statistics(*self._counts(), self._open_writer())


def check_chunk_size(chunk_size: int) -> None:
    """Refuse a number of rows that is not positive with a ``ValueError``."""
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
