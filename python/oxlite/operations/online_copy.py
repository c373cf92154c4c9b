"""A copy of a database that others use meanwhile: one snapshot of it, page by page.

Invariants:
- It is what one read transaction sees, however much is written meanwhile; it always ends.
- Nobody waits for it, if the database has a WAL. With a rollback journal writers wait until it has
  ended, since one snapshot is a lock there (https://sqlite.org/isolation.html).
- What slows it down does so no more when the WAL is larger than its limit: what is read cannot be
  overwritten, so the WAL grows until the copy has ended.
"""

import os
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from oxlite import sqlite3
from oxlite.operations.errors import OperationsError
from oxlite.operations.files import roll_back
from oxlite.operations.niceness import ended_with_its_work
from oxlite.operations.verification import opened_untrusted, row_counts

__all__ = ["Copied", "copy_online", "opened_to_read"]

_PAGES_AT_ONCE: Final = 256
_WAL_LIMIT_BYTES: Final = 64 << 20
"""That of the profiles (docs/wal.md); beyond it the copy is no more slowed down."""
_TIMEOUT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.1


class Copied(NamedTuple):
    """What was copied.

    Attributes:
        at: When the snapshot was taken.
        rows: How many rows each table has in it.
    """

    at: datetime
    rows: dict[str, int | None]


def opened_to_read(database: Path) -> sqlite3.Connection:
    """A connection that cannot write, and trusts nothing of what it reads.

    Raises:
        OperationsError: It is not there, no database, or half changed.
        oxlite.sqlite3.Error: It cannot be opened.
    """
    if not database.exists():
        raise OperationsError(f"there is no {database}")
    if not database.is_file():
        raise OperationsError(f"{database} is no file")
    uri = f"file:{quote(os.fsencode(database.absolute()))}?mode=ro"
    try:
        connection = opened_untrusted(uri, timeout=_TIMEOUT_SECONDS)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname == "SQLITE_NOTADB":
            raise OperationsError(f"{database} is no SQLite database, or it is encrypted") from None
        if error.sqlite_errorname == "SQLITE_READONLY_ROLLBACK":
            raise OperationsError(
                f"{database} is half changed: {database.name}-journal was left by a program that"
                " has ended in the midst of a transaction. Who may write the database makes it"
                f" whole by reading it: {roll_back(database)}"
            ) from None
        raise
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def copy_online(
    database: Path,
    target: Path,
    *,
    bytes_per_second: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Copied:
    """Copy a database to a file, which is empty.

    Args:
        database: Others may write to it meanwhile.
        target: The file; it is not synced.
        bytes_per_second: How fast at the most, as long as the WAL is not larger than its limit.
        progress: Called from time to time with how many bytes are copied, and how many there are.

    Raises:
        OperationsError: It is not there, no database, or half changed.
        oxlite.sqlite3.Error: It cannot be read, or the target cannot be written.
    """
    with closing(opened_to_read(database)) as source, ended_with_its_work(source.interrupt):
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # takes the snapshot
        at = datetime.now(UTC)
        page_size = int(source.execute("PRAGMA page_size").fetchone()[0])
        pace = _Pace(database, page_size, bytes_per_second, progress)
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            # It is nobody's yet: whoever is killed meanwhile leaves nothing that is used.
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            source.backup(copy, pages=pace.pages_at_once, progress=pace.note)
        rows = row_counts(source)
        source.execute("ROLLBACK")
    return Copied(at, rows)


class _Pace:
    """Says how far it is, and sleeps where that is too far."""

    def __init__(
        self,
        database: Path,
        page_size: int,
        bytes_per_second: float | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._wal = f"{database.resolve()}-wal"
        self._page_size = page_size
        self._rate = bytes_per_second
        self._progress = progress
        self._began = time.monotonic()

    @property
    def pages_at_once(self) -> int:
        """So many take a tenth of a second at the most, where it is slowed down."""
        if self._rate is None:
            return _PAGES_AT_ONCE
        return max(1, min(_PAGES_AT_ONCE, int(self._rate * _PAUSE_SECONDS / self._page_size)))

    def note(self, _code: int, left: int, pages: int) -> None:
        done = (pages - left) * self._page_size
        if self._progress is not None:
            self._progress(done, pages * self._page_size)
        if self._rate is None or not left:
            return
        ahead = done / self._rate - (time.monotonic() - self._began)
        while ahead > 0 and not self._is_wal_large():
            time.sleep(min(ahead, _PAUSE_SECONDS))
            ahead -= _PAUSE_SECONDS

    def _is_wal_large(self) -> bool:
        try:
            return os.stat(self._wal).st_size > _WAL_LIMIT_BYTES  # noqa: PTH116 - no Path is needed
        except OSError:
            return False
