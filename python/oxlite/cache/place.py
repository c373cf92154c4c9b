"""The file of a cache: who makes it, whose it is, and how one that is damaged is emptied.

Whoever makes or mends it holds a lock among all processes, and looks again first: another one may
have done it.

Invariants:
- A file that is not a cache is left as it is: it has other tables, or it is damaged and there is
  nothing beside it by which it is known to have been one.
- A damaged file is emptied in place, in one transaction, with others connected; where its first
  page is no more, it is deleted and made anew.
- A file that was deleted is made anew with a WAL of its own, which nobody else writes.
- Nobody uses a file after a boot before all of its pages were seen to fit together.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from oxlite import sqlite3
from oxlite.cache import recency, store
from oxlite.cache.locks import lock_of_file, pauses
from oxlite.connection import ProfileName, connect

__all__ = ["Place", "harden", "is_damage", "is_misshapen"]

_log = logging.getLogger("oxlite.cache")

_LOG_FRACTION: Final = 8
_LEAST_LOG_BYTES, _MOST_LOG_BYTES = 4 << 20, 64 << 20
_SAY_SECONDS: Final = 10.0
_RESET_SECONDS: Final = 0.5
_LOOKED_AT_BYTES_PER_SECOND: Final = 100 << 20
_DAMAGED: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class Place:
    """The file of a cache.

    Args:
        path: The file.
        size: The limit of the cache, in bytes.
        profile: Of its connections.
        lock_timeout: For how many seconds locks are waited for.
        is_waited_for: Whether one waits for longer where another one may be looking at the whole
            file after a boot. Else that is a miss.

    Attributes:
        path: The file.
        pragmas: What its connections set beside the profile.
        resets: How often this process has emptied it.
        repairs: How often it has mended something. It is opened anew then, since a connection that
            has seen a view in the place of the table does not look again.
    """

    def __init__(
        self,
        path: str,
        size: int | None,
        profile: ProfileName,
        lock_timeout: float,
        is_waited_for: bool,
    ) -> None:
        self.path = path
        self._file = Path(path)
        self.resets = self.repairs = 0
        self._profile: ProfileName = profile
        self._lock_timeout = lock_timeout
        self._is_waited_for = is_waited_for
        log_bytes = _MOST_LOG_BYTES if size is None else size // _LOG_FRACTION
        self.pragmas: Mapping[str, Any] = {
            "journal_size_limit": min(max(log_bytes, _LEAST_LOG_BYTES), _MOST_LOG_BYTES),
        }
        self._said_at = -float("inf")

    def identity(self) -> tuple[int, int] | None:
        """Which file it is; ``None`` if there is none."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def prepare(self) -> tuple[int, int] | None:
        """Make the file and its table if they are not there, and say which file it is.

        Raises:
            oxlite.sqlite3.Error: It cannot be opened, or is no cache.
            OSError: It cannot be made.
            TimeoutError: Another one makes or mends it, and does not come to an end.
        """
        with self._alone():
            self._make_private()
            try:
                self._prepare_table()
                self._look_after_boot()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._reset(error)
            recency.note_boot(self.path)
            return self.identity()

    def repair(self, error: Exception, sql: str, parameters: Sequence[Any]) -> None:
        """Empty the file, if a statement that has failed fails again.

        Raises:
            oxlite.sqlite3.Error, OSError, TimeoutError: As ``prepare``.
        """
        with self._alone():
            try:
                self._try(sql, parameters)
            except sqlite3.DatabaseError as again:
                if is_damage(again):
                    self._reset(error)
                elif is_misshapen(again):
                    self._prepare_table()
                else:
                    raise
                self.repairs += 1

    def say(self, what: object) -> None:
        """Say in the log why the cache goes on without its file, but not again and again."""
        now = time.monotonic()
        if now >= self._said_at + _SAY_SECONDS:
            self._said_at = now
            _log.warning("the cache %s goes on without its file: %s", self.path, what)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        timeout = self._lock_timeout + (self._look_seconds() if self._is_waited_for else 0.0)
        lock, left = lock_of_file(self.path), pauses(timeout)
        while not lock.try_acquire():
            pause = next(left, None)
            if pause is None:
                raise TimeoutError(f"another process makes or mends {self.path}")
            time.sleep(pause)
        try:
            yield
        finally:
            lock.release()

    def _look_seconds(self) -> float:
        """For how long another one may look at the file after a boot."""
        try:
            return self._file.stat().st_size / _LOOKED_AT_BYTES_PER_SECOND
        except OSError:
            return 0.0

    def _make_private(self) -> None:
        """A file that is made is for its owner alone, and has no part of one that was deleted."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        if os.path.lexists(self.path):
            return
        # Whoever has the file open that was deleted goes on with its own WAL until he looks.
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(self.path + suffix).unlink()
        recency.put_beside(self.path)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, flags, 0o600))

    def _connect(self) -> sqlite3.Connection:
        return connect(
            self.path,
            profile=self._profile,
            timeout=self._lock_timeout,
            pragmas=dict(self.pragmas),
            isolation_level=None,
        )

    def _try(self, sql: str, parameters: Sequence[Any]) -> None:
        """Run a statement to its end, and take it back."""
        with contextlib.closing(self._connect()) as connection:
            harden(connection)
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            connection.execute("BEGIN")
            try:
                connection.execute(sql, parameters).fetchall()
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _prepare_table(self) -> None:
        with contextlib.closing(self._connect()) as connection:
            [(application,)] = connection.execute("PRAGMA application_id").fetchall()
            is_ours = application == store.APPLICATION_ID
            if connection.execute("PRAGMA encoding").fetchone() != ("UTF-8",):
                raise sqlite3.OperationalError(f"{self.path} is no cache: it is not in UTF-8")
            if is_ours and connection.execute(store.OWN_SCHEMA).fetchall() == [(store.SCHEMA,)]:
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                foreign = connection.execute(store.FOREIGN_TABLES).fetchone()
                if foreign is not None or application not in (0, store.APPLICATION_ID):
                    raise sqlite3.OperationalError(
                        f"{self.path} is no cache"
                        + (f": it has a table {foreign[0]!r}" if foreign is not None else "")
                        + ". Give the cache a file of its own"
                    )
                for kind, name in connection.execute(
                    "SELECT type, name FROM sqlite_schema WHERE name = 'oxlite_cache_entry'"
                ).fetchall():
                    connection.execute(f"DROP {kind} {name}")
                connection.execute(store.SCHEMA)
                connection.execute(f"PRAGMA application_id = {store.APPLICATION_ID}")
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _look_after_boot(self) -> None:
        """Once after each boot, see that the pages fit together: a power cut may have mixed them.

        SQLite does not notice all of it when it looks for a row. In a tree that is out of order a
        row is hidden, and comes back, with its old value, once another one is written beside it.
        """
        if recency.is_of_this_boot(self.path):
            return
        with contextlib.closing(self._connect()) as connection:
            [(found,), *_] = connection.execute("PRAGMA quick_check(1)").fetchall()
        if found != "ok":
            self._reset(sqlite3.DatabaseError(found))

    def _reset(self, error: Exception) -> None:
        """Empty a damaged file in place, with others connected: https://sqlite.org/c3ref/c_dbconfig_defensive.html."""
        if not recency.is_beside(self.path):
            raise error
        _log.warning("%s is damaged (%s), and is emptied: it was a cache", self.path, error)
        self.resets += 1
        timeout = min(self._lock_timeout, _RESET_SECONDS)
        connection = sqlite3.connect(self.path, timeout=timeout, isolation_level=None)
        with contextlib.closing(connection):
            # Without having read the schema, WAL mode would be lost.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_RESET_DATABASE, True)
            try:
                connection.execute("VACUUM")
                is_emptied = True
            except sqlite3.Error:
                # Its first page is no more, by which one would know that it is in WAL mode: others
                # who are connected are in the way.
                is_emptied = False
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_RESET_DATABASE, False)
        if not is_emptied:
            Path(self.path).unlink()
            self._make_private()
        self._prepare_table()


def harden(connection: sqlite3.Connection) -> None:
    """Nothing that somebody has put into the file is run: neither triggers nor views."""
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def is_damage(error: BaseException) -> bool:
    """Whether an error says that the file is damaged."""
    name = getattr(error, "sqlite_errorname", "")
    return any(name.startswith(one) for one in _DAMAGED)


def is_misshapen(error: BaseException) -> bool:
    """Whether an error says that the table is not there, or another one: the SQL is right."""
    name = getattr(error, "sqlite_errorname", "")
    return name == "SQLITE_ERROR" or name.startswith(("SQLITE_CONSTRAINT", "SQLITE_MISMATCH"))
