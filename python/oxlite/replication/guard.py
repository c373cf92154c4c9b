"""Nobody begins the WAL anew before Litestream has read it.

Litestream keeps a read transaction for that, and is without it at times:

- After a checkpoint of its own that has copied all, it begins that at once (``execCheckpoint`` in
  its ``db.go``), while the whole WAL is in the database. Such a reader reads nothing of the WAL,
  and SQLite lets writers begin it anew (https://sqlite.org/walformat.html, "read mark 0").
- If it makes a checkpoint because its socket was asked to send (``/sync``), the read transaction
  is of that request, and ends with it.

Then a checkpoint of the application's, which it makes where the WAL has a thousand pages, takes
away what Litestream has not read, and the replica lacks it from then on.

So a reader of ours is in the WAL from its beginning on. When the WAL has become long, Litestream
tries a checkpoint, which our reader keeps from copying all: its own reader is in the WAL from then
on. Ours lets go, and nothing is asked of its socket. Its next checkpoint copies all that it has
read, the WAL begins anew, and our reader is in it again.

Invariants:
- While a reader of ours is in the WAL, or Litestream's, nobody begins it anew but after a
  checkpoint of Litestream's, which it makes when it has read all and nobody writes.
- If it was begun anew all the same, that is seen by its salts.
- A WAL that is longer than its limit is held by nobody here.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import oxlite
from oxlite import Connection, sqlite3
from oxlite.operations import look_for_holders
from oxlite.replication.generation import Wal, identity, wal_of

__all__ = ["Guard", "is_in_wal"]

_LONG_PAGES: Final = 1000
_TURN_SECONDS: Final = 10.0
_LIMIT_BYTES: Final = 64 << 20
_FIRST_IN_WAL: Final = 124
"""The read lock of mark 1; that of mark 0, before it, is of those who read the database alone."""


class Guard:
    """Of one database. One thread uses it.

    Args:
        database: Its file, resolved.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._reader: Connection | None = None
        self._wal: Wal | None = None
        self._file: tuple[int, int] | None = None
        self._is_left = False
        self._is_compared = False
        self._changed_at = 0.0

    def note_compared(self) -> None:
        """Litestream is begun, after what it has read was compared with the WAL that there is.

        May be called by another thread.
        """
        self._is_compared = True

    @property
    def is_left(self) -> bool:
        """Whether only Litestream's own reader keeps the WAL: its socket is to be left alone."""
        return self._is_left

    def look(self, litestream: int | None) -> bool:
        """Hold, let go or hold again.

        Args:
            litestream: The number of its process, if it runs.

        Returns:
            Whether the WAL may have been begun anew before Litestream had read it.
        """
        if self._is_compared:
            self._is_compared, self._wal = False, None
        wal, before = wal_of(self._database), self._wal
        if self._reader is not None and identity(self._database) != self._file:
            self.let_go()  # another file has its name
        if wal is None:
            return False  # there is another one when somebody writes
        is_new = before is not None and wal.salts != before.salts
        is_lost = (
            before is not None
            and is_new
            and not (self._is_left and wal.was_begun_once_after(before))
        )
        self._wal = wal
        is_due = time.monotonic() - self._changed_at > _TURN_SECONDS
        if is_new:
            self._is_left, self._changed_at = False, 0.0
        elif self._is_left and is_due:  # somebody reads for long, so that it is not begun anew
            self._is_left, self._changed_at = False, time.monotonic()
        if self._reader is None and not self._is_left:
            self._hold()
        elif (self._reader is not None and wal.frames * wal.page_size > _LIMIT_BYTES) or (
            self._reader is not None
            and litestream is not None
            and is_due
            and wal.frames >= _LONG_PAGES
            and is_in_wal(self._database, litestream)
        ):
            self._leave(litestream)
        return is_lost

    def _leave(self, litestream: int | None) -> None:
        """Let go. If Litestream's reader is in the WAL, that keeps it."""
        self._is_left = litestream is not None and is_in_wal(self._database, litestream)
        self._changed_at = time.monotonic()
        self.let_go()

    def let_go(self) -> None:
        """Read no more."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(sqlite3.Error):
                reader.close()

    def _hold(self) -> None:
        wal = self._wal
        if wal is not None and wal.frames * wal.page_size > _LIMIT_BYTES:
            return
        self._file = identity(self._database)
        try:
            self._reader = oxlite.connect(
                self._database, journal="keep", isolation_level=None, timeout=0.1
            )
            self._reader.execute("BEGIN")
            self._reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error:
            self.let_go()
            return
        if not is_in_wal(self._database, os.getpid()):
            self.let_go()


def is_in_wal(database: Path, process_id: int) -> bool:
    """Whether a process reads the WAL of a database, and so keeps it from being begun anew.

    Args:
        database: Its file, resolved.
        process_id: Of the process; its locks are seen if it is this user's.
    """
    holders = look_for_holders(database, with_libraries=False, process_ids=[process_id])
    return any(
        lock.is_read_mark and lock.first >= _FIRST_IN_WAL
        for holder in holders or ()
        for lock in holder.locks
    )
