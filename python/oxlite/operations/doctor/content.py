"""The database opened, as one opens the file of a stranger.

Invariants:
- Nothing is written, and nothing that the file contains is believed or run: it is opened with the
  profile ``untrusted`` (``docs/profiles.md``). Beyond that an authorizer lets no statement end it,
  and refuses other files and pragmas that act. A file with a journal beside it that somebody has to
  roll back is opened read-only, so that SQLite forgets its CHECK constraints.
- No wait and no query is without an end.

Source: https://sqlite.org/security.html, "Untrusted SQLite Database Files".
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from oxlite import sqlite3
from oxlite.operations.doctor.place import Place, may_write
from oxlite.operations.verification import opened_untrusted

__all__ = ["Content", "can_be_hot", "opened", "text", "would_leave_strange_files"]

_LOCK_SECONDS: Final = 2.0
_QUICK_SECONDS: Final = 10.0
_LEAST_SECONDS: Final = 0.001
_TICK_STEPS: Final = 20_000
_TELL_EVERY_SECONDS: Final = 0.1

# Beyond the profile's: what other programs make has to be examined as well, with as many columns
# and terms as SQLite takes. No value that is larger is looked at.
_LIMITS: Final = {
    "SQLITE_LIMIT_LENGTH": 128 << 20,
    "SQLITE_LIMIT_SQL_LENGTH": 16_000_000,
    "SQLITE_LIMIT_TRIGGER_DEPTH": 1,
    "SQLITE_LIMIT_WORKER_THREADS": 0,
    "SQLITE_LIMIT_LIKE_PATTERN_LENGTH": 1_000,
    "SQLITE_LIMIT_VARIABLE_NUMBER": 1_000,
}

_ALLOWED: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        # An R*Tree prepares these when its table is looked at; `query_only` lets none of them run.
        sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE,
    }
)  # fmt: skip

# These answer with rows, whatever they are given (https://sqlite.org/pragma.html).
_ANSWERING: Final = frozenset(
    {
        "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo",
        "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo",
    }
)  # fmt: skip

# Without an argument they do something (see oxlite.environment).
_ACTING: Final = frozenset({"incremental_vacuum", "optimize", "shrink_memory", "wal_checkpoint"})


class Content:
    """What is in a database, asked with care.

    Args:
        connection: See ``opened``.
        is_quick: Whether a check may take only so long.
        progress: Is told what is done: a name, how much of it, and of how much (0: unknown).
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        is_quick: bool,
        progress: Callable[[str, int, int], None] | None,
    ) -> None:
        self.connection = connection
        self.is_quick = is_quick
        self._progress = progress
        self._told_at = 0.0
        self._ends = float("inf")
        self.begin()

    def begin(self) -> None:
        """Begin another check, which has all of the time again."""
        if self.is_quick:
            self._ends = time.monotonic() + _QUICK_SECONDS

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            oxlite.StatementTimeout: The check has taken too long.
            oxlite.sqlite3.Error: It cannot be answered.
        """
        self._limit()
        return self.connection.execute(sql, parameters).fetchall()

    def rows_before_error(self, sql: str) -> tuple[list[tuple[Any, ...]], sqlite3.Error | None]:
        """The rows of a query that may fail in the middle, and with what it has failed."""
        self._limit()
        found = []
        try:
            for row in self.connection.execute(sql):
                found.append(row)
        except sqlite3.Error as error:
            return found, error
        return found, None

    def _limit(self) -> None:
        if self.is_quick:
            left = self._ends - time.monotonic()
            self.connection.statement_timeout = max(left, _LEAST_SECONDS)

    def value(self, sql: str, *parameters: object) -> Any:  # noqa: ANN401 - as SQLite has it
        """The first value of the first row; None without one."""
        found = self.rows(sql, *parameters)
        return found[0][0] if found else None

    def tell(self, name: str, done: int, total: int) -> None:
        """Say how far something has come, if anybody wants to know; not too often."""
        now = time.monotonic()
        if self._progress is not None and now - self._told_at >= _TELL_EVERY_SECONDS:
            self._told_at = now
            self._progress(name, done, total)

    @contextmanager
    def told(self, name: str, pages: int) -> Iterator[None]:
        """A block in which a scan says how far it has come, in steps of SQLite's.

        The scan of the trees takes one step for each page, so until it has looked at all pages that
        is how far it is; how long the rows take afterwards is not known.
        """
        if self._progress is None:
            yield
            return
        done = 0

        def tick() -> None:
            nonlocal done
            done += _TICK_STEPS
            self.tell(name, done if done < pages else done - pages, pages if done < pages else 0)

        self.connection.set_progress_handler(tick, _TICK_STEPS)
        try:
            yield
        finally:
            self.connection.set_progress_handler(None, 0)


@contextmanager
def opened(
    place: Place, *, is_quick: bool, progress: Callable[[str, int, int], None] | None
) -> Iterator[Content]:
    """The content of a database for the length of a block.

    Raises:
        oxlite.sqlite3.Error: It cannot be opened or read.
    """
    connection = opened_untrusted(place.path.as_uri(), timeout=_LOCK_SECONDS)
    try:
        for name, limit in _LIMITS.items():
            connection.setlimit(getattr(sqlite3, name), limit)
        connection.text_factory = text
        # The profile looks whether there is something in it; here nothing at all is taken away.
        keeps_wal = "-wal" in place.sidecars
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps_wal)
        connection.set_authorizer(_authorize)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield Content(connection, is_quick=is_quick, progress=progress)
    finally:
        connection.close()


def can_be_hot(place: Place) -> bool:
    """Whether a journal lies there that whoever opens the file for writing may roll back.

    Source: https://sqlite.org/fileformat2.html#the_rollback_journal, "zeroed header".
    """
    start = place.bytes.get("-journal")
    return "-journal" in place.sidecars and (start is None or start[:1] not in (b"", b"\0"))


def would_leave_strange_files(place: Place) -> bool:
    """Whether opening it makes a WAL and an index that its owner could not write.

    SQLite makes both with the mode of the database, and only root gives them to its owner; where
    another program opens the database meanwhile, they stay.
    """
    header = place.header
    is_made = header is not None and header.is_wal and "-wal" not in place.sidecars
    user = os.geteuid()
    is_strange = user not in {0, place.status.st_uid}
    return is_made and is_strange and not may_write(place.status, user, os.getegid())


def text(content: bytes) -> str:
    """Text of a file that may not be UTF-8."""
    return content.decode(errors="replace")


def _authorize(
    action: int, first: str | None, second: str | None, _schema: str | None, _by: str | None
) -> int:
    if action in _ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and second in _REFUSED):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first is not None:
        name = first.lower()
        if name in _ANSWERING or (second is None and name not in _ACTING):
            return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


_REFUSED: Final = frozenset({"load_extension", "fts3_tokenizer"})
