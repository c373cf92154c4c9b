"""Where the tasks of a backend are: in the file of a database of the site, or in one of their own.

Invariants:
- In the site's database a task is written by the connection of the thread that enqueues it, so it
  is part of what is open there.
- In a file of its own it is written when the site's transaction has committed; only its number is
  taken before. Of what is unique one is written.
- A process has one queue for each file. Django makes backends for each thread and each request.
"""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
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

_log = logging.getLogger("oxlite.tasks")

_TRIES: Final = 10
"""So often a task that is unique may end while another one of its kind is enqueued."""

_NAME: Final = 1
"""Which of the parameters the name is."""

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
    def enqueue(
        self, parameters: tuple[Any, ...], note: Callable[[int], None]
    ) -> tuple[int, tuple[Any, ...] | None]:
        """Enqueue a task with these parameters of ``store.ENQUEUE``.

        Args:
            parameters: See there.
            note: Called with its number when it has been written, if it is new.

        Returns:
            Its number, and its parameters: these if it is new. If it is unique and was there, those
            of the one that is to be written by a commit; ``None`` for one that is written.
        """

    @abstractmethod
    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Read; nothing where there are no tables."""

    @abstractmethod
    def reader(self) -> Callable[[str, tuple[Any, ...]], list[Any]]:
        """What reads as ``query`` does in this thread, and can be called in an event loop."""

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

    def _enqueued_now(
        self, parameters: tuple[Any, ...], note: Callable[[int], None]
    ) -> tuple[int, tuple[Any, ...] | None]:
        number, is_new = self._enqueued(parameters)
        if not is_new:
            return number, None
        note(number)
        return number, parameters

    def _enqueued(self, parameters: tuple[Any, ...]) -> tuple[int, bool]:
        """Write a task; its number, and whether it is new.

        Raises:
            RuntimeError: Something else than a unique key keeps it from being written.
        """
        for _ in range(_TRIES):
            if rows := self.write(store.ENQUEUE, parameters):
                return rows[0][1], True
            if rows := self.query(store.FIND_UNIQUE, (parameters[store.UNIQUE_KEY],)):
                return rows[0][0], False
            # It has ended in between.
        raise RuntimeError(
            f"a task {parameters[_NAME]} cannot be written: there is another one with the number"
            f" {parameters[-1]} that was taken for it, or a trigger prevents it"
        )


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
            AssertionError: The test that runs may not use the database.
        """
        wrapper = self.wrapper
        wrapper.cursor().close()  # which a test may forbid
        wrapper.validate_no_broken_transaction()
        return joined(wrapper)

    def enqueue(
        self, parameters: tuple[Any, ...], note: Callable[[int], None]
    ) -> tuple[int, tuple[Any, ...] | None]:
        """As part of the transaction that is open in this thread."""
        return self._enqueued_now(parameters, note)

    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """What this thread's transaction sees."""
        connection = self.connection()
        with self.wrapper.wrap_database_errors:
            return store.TABLES.look(lambda: rows_of(connection, sql, parameters))

    def reader(self) -> Callable[[str, tuple[Any, ...]], list[Any]]:
        """By the connection that is open then."""
        wrapper = self.wrapper

        def read(sql: str, parameters: tuple[Any, ...]) -> list[Any]:
            if wrapper.connection is None:
                return self.query(sql, parameters)
            connection = joined(wrapper.connection)
            with wrapper.wrap_database_errors:
                return store.TABLES.look(lambda: rows_of(connection, sql, parameters))

        return read

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

    def enqueue(
        self, parameters: tuple[Any, ...], note: Callable[[int], None]
    ) -> tuple[int, tuple[Any, ...] | None]:
        """When the transaction of the site has committed; at once if none is open."""
        if not connections[self._using].in_atomic_block:
            return self._enqueued_now(parameters, note)
        unique_key = parameters[store.UNIQUE_KEY]
        if unique_key is not None:
            for waiting in self._waiting():
                if waiting.unique_key == unique_key:
                    return waiting.number, waiting.parameters
            if rows := self.query(store.FIND_UNIQUE, (unique_key,)):
                return rows[0][0], None
        number = self._reserved()
        waiting = _Waiting(self, parameters, number, note)
        # What else waits for the commit is done, whatever becomes of this.
        transaction.on_commit(waiting, using=self._using, robust=True)
        return number, parameters

    def _waiting(self) -> Iterator["_Waiting"]:
        """Those of the transaction that is open; what was rolled back is none of them."""
        for _savepoints, call, *_ in connections[self._using].run_on_commit:
            if isinstance(call, _Waiting) and call.place.queue is self._queue and not call.is_done:
                yield call

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

    def reader(self) -> Callable[[str, tuple[Any, ...]], list[Any]]:
        """No connection is a thread's here."""
        return self.query

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


class _Waiting:
    """A task that is written when the site's transaction has committed."""

    def __init__(
        self,
        place: OwnFile,
        parameters: tuple[Any, ...],
        number: int,
        note: Callable[[int], None],
    ) -> None:
        self.place = place
        self.parameters = parameters
        self.unique_key = parameters[store.UNIQUE_KEY]
        self.number = number
        self.is_done = False
        self._note = note
        # By which Django's log calls it.
        self.__qualname__ = f"enqueue() of {parameters[_NAME]}"

    def __call__(self) -> None:
        """Write it."""
        self.is_done = True
        number, is_new = self.place._enqueued((*self.parameters[:-1], self.number))
        if is_new:
            self._note(number)
            return
        _log.warning(
            "task %d (%s) is not written: task %d with the same unique key was faster to commit",
            self.number,
            self.parameters[_NAME],
            number,
        )
