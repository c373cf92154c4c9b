"""Where the tasks of a backend are: in the file of a database of the site, or in one of their own.

Invariants:
- In the site's database a task is written by the connection of the thread that enqueues it, so it
  is part of what is open there.
- In a file of its own it is written when the site's transaction has committed; only its number is
  taken before.
- A process has one queue for each file. Django makes backends for each thread and each request.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction

from oxlite._native import Announcement
from oxlite.django.sqlite3.base import DatabaseWrapper
from oxlite.django.sqlite3.validation import database_file
from oxlite.notifications import joined
from oxlite.own_tables import rows_of
from oxlite.sqlite3 import Connection
from oxlite.tasks import Queue, store

__all__ = ["OwnFile", "Place", "SiteDatabase"]

_queues: Final[dict[tuple[str, str], Queue]] = {}


def _queue(path: str | Path, profile: Any) -> Queue:
    """The only one of a file; it opens that when it is first used."""
    which = (os.path.abspath(path), str(profile))  # noqa: PTH100 - as Queue has it
    found = _queues.get(which)
    return found or _queues.setdefault(which, Queue(path, profile=profile))


@lru_cache(maxsize=64)
def _file(name: str) -> Path | None:
    return database_file(name)


class Place(ABC):
    """See the module."""

    @abstractmethod
    def enqueue(self, parameters: tuple[Any, ...], note: Callable[[int], None]) -> tuple[int, bool]:
        """Enqueue a task with these parameters of ``store.ENQUEUE``.

        Args:
            parameters: See there.
            note: Called with its number when it has been written, if it is new.

        Returns:
            Its number, and whether it is new: not if it is unique and was there.
        """

    @abstractmethod
    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Read; nothing where there are no tables."""

    @abstractmethod
    def write(self, sql: str, parameters: tuple[Any, ...], also: Sequence[str] = ()) -> list[Any]:
        """Write.

        Args:
            sql: A statement whose rows begin with what is signalled.
            parameters: Its parameters.
            also: What is signalled beside that, if there are rows.

        Returns:
            The rows.
        """

    @abstractmethod
    def claim(self, parameters: tuple[Any, ...]) -> list[Any]:
        """Claim tasks, of which nobody is to hear: the rows of ``store.CLAIM``."""

    @property
    @abstractmethod
    def queue(self) -> Queue:
        """The file, for workers, and for who waits for results."""

    def _enqueued(self, parameters: tuple[Any, ...]) -> tuple[int, bool]:
        while True:
            if rows := self.write(store.ENQUEUE, parameters):
                return rows[0][1], True
            if rows := self.query(store.FIND_UNIQUE, (parameters[store.UNIQUE_KEY],)):
                return rows[0][0], False
            # It has ended in between.


class SiteDatabase(Place):
    """In the file of a database of the site.

    Args:
        alias: Of the database. Which file it is, is asked at each use: tests have another one.
        backend: The alias of the backend, for errors.
    """

    def __init__(self, alias: str, backend: str) -> None:
        self.alias = alias
        self._backend = backend

    @property
    def wrapper(self) -> Any:
        """Django's connection of this thread.

        Raises:
            django.core.exceptions.ImproperlyConfigured: The database is none of Oxlite's.
        """
        wrapper = connections[self.alias]
        if not isinstance(wrapper, DatabaseWrapper):
            raise ImproperlyConfigured(
                f"TASKS[{self._backend!r}] is in DATABASES[{self.alias!r}], whose ENGINE is"
                f" {wrapper.settings_dict['ENGINE']!r}: it takes 'oxlite.django.sqlite3', or a file"
                " of its own, OPTIONS = {'path': BASE_DIR / 'tasks.db'}"
            )
        return wrapper

    def connection(self) -> Connection:
        """The driver's connection of this thread, with whatever transaction is open there.

        Raises:
            django.core.exceptions.ImproperlyConfigured: The database is none of Oxlite's.
            django.db.transaction.TransactionManagementError: An error has broken the transaction.
        """
        wrapper = self.wrapper
        wrapper.validate_no_broken_transaction()
        return joined(wrapper)

    def enqueue(self, parameters: tuple[Any, ...], note: Callable[[int], None]) -> tuple[int, bool]:
        """As part of the transaction that is open in this thread."""
        number, is_new = self._enqueued(parameters)
        if is_new:
            note(number)
        return number, is_new

    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """What this thread's transaction sees."""
        connection = self.connection()
        with self.wrapper.wrap_database_errors:
            return store.TABLES.look(lambda: rows_of(connection, sql, parameters))

    def write(self, sql: str, parameters: tuple[Any, ...], also: Sequence[str] = ()) -> list[Any]:
        """As part of the transaction that is open in this thread."""
        connection, file = self.connection(), self.file
        # A database in memory is this process's alone: nobody hears of it.
        announcement = Announcement.of_rows(str(file), store.TOPIC_PREFIX) if file else None
        with self.wrapper.wrap_database_errors:
            rows = store.TABLES.execute(connection, sql, parameters, announcement)
            if rows and also and announcement:
                announcement.follow(connection, list(also))
        return rows

    def claim(self, parameters: tuple[Any, ...]) -> list[Any]:
        """As part of the transaction that is open in this thread."""
        connection = self.connection()
        with self.wrapper.wrap_database_errors:
            return store.TABLES.execute(connection, store.CLAIM, parameters)

    @property
    def file(self) -> Path | None:
        """The file; ``None`` if the database is in memory."""
        return _file(str(self.wrapper.settings_dict["NAME"]))

    @property
    def queue(self) -> Queue:
        """One for each file that the database has been."""
        file = self.file
        if file is None:
            raise ImproperlyConfigured(
                f"DATABASES[{self.alias!r}] is in memory: its tasks can be run in this thread"
                " alone, by oxlite.django.tasks.run_ready_tasks(). In tests with workers, give it a"
                " file: 'TEST': {'NAME': BASE_DIR / 'test.sqlite3'}"
            )
        return _queue(file, self.wrapper.settings_dict["OPTIONS"].get("profile", "web"))


class OwnFile(Place):
    """In a file of its own.

    Args:
        path: The file.
        profile: That of its connections.
        using: The alias of the database of the site for whose commits it waits.
    """

    def __init__(self, path: str | Path, profile: Any, using: str) -> None:
        self._queue = _queue(path, profile)
        self._using = using

    def enqueue(self, parameters: tuple[Any, ...], note: Callable[[int], None]) -> tuple[int, bool]:
        """When the transaction of the site has committed; at once if none is open."""
        if not connections[self._using].in_atomic_block:
            number, is_new = self._enqueued(parameters)
            if is_new:
                note(number)
            return number, is_new
        unique_key = parameters[store.UNIQUE_KEY]
        if unique_key is not None and (rows := self.query(store.FIND_UNIQUE, (unique_key,))):
            return rows[0][0], False
        number = self._reserved()

        def enqueue() -> None:
            if self._enqueued((*parameters[:-1], number))[1]:
                note(number)

        transaction.on_commit(enqueue, using=self._using)
        return number, True

    def _reserved(self) -> int:
        with self._queue.database.write() as connection:
            store.TABLES.prepare(connection)
            if rows := rows_of(connection, store.RESERVE):
                return int(rows[0][0])
            rows_of(connection, store.RESERVE_FIRST)
            return 1

    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """What is committed."""
        return store.TABLES.look(lambda: self._queue.database.query(sql, parameters))

    def write(self, sql: str, parameters: tuple[Any, ...], also: Sequence[str] = ()) -> list[Any]:
        """A transaction of its own."""
        with self._queue.database.write() as connection:
            announcement = Announcement.of_rows(self._queue.path, store.TOPIC_PREFIX)
            rows = store.TABLES.execute(connection, sql, parameters, announcement)
            if rows and also:
                announcement.follow(connection, list(also))
        return rows

    def claim(self, parameters: tuple[Any, ...]) -> list[Any]:
        """A transaction of its own."""
        return store.TABLES.write(self._queue.database, store.CLAIM, parameters)

    @property
    def queue(self) -> Queue:
        """The only one."""
        return self._queue
