"""Nobody begins the WAL anew before Litestream has read it, and Litestream gets its turn for that.

Litestream makes the checkpoints while it replicates: it alone knows what it has read. The keepers
of Oxlite's own connections make none meanwhile (``crates/oxlite-core/src/write/wal.rs``). Four
things are left to see to:

- **Other programs.** Their connections make checkpoints where the WAL has a thousand pages.
  Litestream keeps a read transaction against that, and yet is without protection at times: it
  begins it at once after a checkpoint that has copied all (``execCheckpoint`` in its ``db.go``),
  and whoever begins to read while all of the WAL is in the database reads nothing of it, and SQLite
  lets writers begin it anew (https://sqlite.org/walformat.html, "read mark 0"). So a reader of ours
  is in the WAL from its first frame on.
- **Writers that never pause.** Litestream knows of no queue, and would not get the write lock.
- **Writers that are killed.** What one has written whole into the WAL, and not entered in its
  index, is no transaction for those who live: they write over it. Litestream reads the file alone,
  and takes it for one. If it makes a checkpoint then, the replica has what the database has not.
- **Notes that are deleted.** What Litestream has read stands beside the database alone.

So there are turns. Where the WAL is due, our reader lets go at the head of the queue of writers,
what was never committed is cut off, and Litestream is asked: it reads what is left, copies it into
the database, and begins the WAL anew. Our reader is in the new one before anybody else writes.

Invariants:
- Outside of a turn a reader of ours is in the WAL, if there is anything in it that is not in the
  database.
- If the WAL was begun anew before Litestream had read it, that is seen by what is left of it in the
  file, and all is sent once more. (Who overwrites that as well has Litestream itself begin anew.)
- Where Litestream does not read at all, the WAL does not grow beyond its limit for that: it is cut,
  and all is sent once more when Litestream reads again.
"""

import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import oxlite
from oxlite import Connection, sqlite3
from oxlite.operations import look_for_holders
from oxlite.operations.top.kept_file import KeptFile
from oxlite.operations.top.wal_index import Torn, read_wal_index
from oxlite.replication.errors import LitestreamFailed
from oxlite.replication.generation import (
    Wal,
    end_of_read,
    has_commit,
    has_unread,
    identity,
    wal_of,
)
from oxlite.replication.lull import LULL_SECONDS, Lull
from oxlite.replication.notes import Notes

__all__ = ["WAL_LIMIT_BYTES", "Committed", "Guard"]

WAL_LIMIT_BYTES: Final = 64 << 20
"""``journal_size_limit`` of the production profiles."""

_DUE_PAGES: Final = 1000
_URGENT_BYTES: Final = WAL_LIMIT_BYTES // 4
_TURN_EVERY_SECONDS: Final = 1.0
_URGENT_SECONDS: Final = 0.02
_PAUSE_AT_MOST_SECONDS: Final = 8.0
"""Between two turns, where each is in vain since somebody reads for long."""

_LULLS: Final = 3
"""In a turn: each comes about with a chance of a half, by who is quicker to get the write lock."""

_ASK_SECONDS: Final = 1.0
"""Of a turn; the longer the WAL, the longer it takes to read it, and writers wait for that."""
_ASK_AT_MOST_SECONDS: Final = 10.0

_READINGS: Final = 5
_READING_SECONDS: Final = 0.05
_LOCK_WITHIN_SECONDS: Final = 0.2
_LOCK_PAUSE_SECONDS: Final = 0.0005
_HOPELESS_SECONDS: Final = 60.0
_FIRST_IN_WAL: Final = 124
"""The read lock of mark 1; that of mark 0, before it, is of those who read the database alone."""


@dataclass(frozen=True, slots=True)
class Committed:
    """How far a WAL is committed.

    Attributes:
        wal: It.
        end: In bytes of its file, by its index.
    """

    wal: Wal
    end: int


class Guard:
    """Of one database. Threads wait for one another.

    Args:
        database: Its file, resolved.
        ask: Has Litestream read all that is committed, and make a checkpoint if the WAL is long. It
            raises ``LitestreamFailed`` where that does not answer within the seconds it is given.

    Attributes:
        is_held: Whether a reader of ours is in the WAL.
        is_busy: Whether the WAL was written to between the last two looks.
    """

    def __init__(self, database: Path, ask: Callable[[float], object]) -> None:
        self._database = database
        self._ask = ask
        self._file: tuple[int, int] | None = None
        self._notes = Notes(database)
        self._in_line: Connection | None = None
        self._reader: Connection | None = None
        self._writer: Connection | None = None
        self.is_held = False
        self._in_vain: Wal | None = None
        self._wal: Wal | None = None
        self._turn_at = self._cut_at = 0.0
        self._pause = _URGENT_SECONDS
        self._has_read_at = time.monotonic()
        self._has_read_too_much = False
        self._index = KeptFile(Path(f"{database}-shm"))
        self.is_busy = False
        self._lock = threading.RLock()

    def hold(self) -> None:
        """Be in the WAL that there is. Litestream is about to begin, and to compare itself."""
        with self._lock:
            self._check_file()
            self._wal = wal_of(self._database)
            self._notes.forget()
            self._has_read_at = time.monotonic()
            self._hold()

    def end(self) -> int | None:
        """The end of what is committed in the WAL, in bytes; ``None`` if it cannot be known now."""
        with self._lock, suppress(sqlite3.Error, OSError, Torn), self._write_lock():
            wal, index = wal_of(self._database), read_wal_index(self._index)
            return None if wal is None or index is None else wal.end_of(index.frames)
        return None

    def committed(self) -> Committed | None:
        """What is committed in the WAL now; ``None`` if there is nothing that can be known."""
        with self._lock, suppress(OSError, Torn):
            for _ in range(_READINGS):
                wal = wal_of(self._database)
                index = read_wal_index(self._index)
                after = wal_of(self._database)
                if wal is None or index is None or not index.frames:
                    return None
                if after is not None and wal.salts == after.salts:
                    return Committed(wal, wal.end_of(index.frames))
        return None

    def has_read(self, committed: Committed) -> bool:
        """Whether Litestream has read all that was committed, as far as the WAL is still that one.

        If it has read more than is committed now, and goes on to have, it has read what a writer
        has left who was killed: the next look says that all is to be sent anew.
        """
        for _ in range(_READINGS):
            try:
                end = end_of_read(self._database, committed.wal)
            except (OSError, struct.error):
                return False
            now = self.committed()
            if now is None or now.wal.salts != committed.wal.salts:
                return True  # nobody begins it anew before it was read
            if (end or 0) <= now.end:
                return (end or 0) >= committed.end
            time.sleep(_READING_SECONDS)  # a writer may be about to enter it in the index
        self._has_read_too_much = True
        return False

    def commit_nothing(self) -> None:
        """Commit a transaction that changes nothing, so that Litestream counts one more."""
        with self._lock, suppress(sqlite3.Error):
            writer = self._as_writer()
            (version,) = writer.execute("PRAGMA user_version").fetchone()
            writer.execute(f"PRAGMA user_version = {version}")

    def renew(self) -> bool:
        """Copy all of the WAL, and cut it to nothing, so that nothing of it looks known.

        Litestream goes on in a new WAL wherever the last frame that it has read lies in the file,
        of which it asks its store if nothing is noted beside the database. What is missing between
        is missing in the replica then (``verifyWithExecutor``, ``checkDatabaseBehindReplica``).

        Returns:
            Whether that could be done; not while somebody reads it.
        """
        with self._lock:
            self._check_file()
            self._stop_reading()
            self._wal = self._in_vain = None
            with suppress(sqlite3.Error):
                is_busy, frames, _copied = self._as_writer().checkpoint("truncate", timeout=0.1)
                return not is_busy and frames == 0
            return False

    def look(self, *, reads: bool) -> bool:
        """Be in the WAL, and have a turn made if it is due.

        Args:
            reads: Whether there is a Litestream to be asked.

        Returns:
            Whether the WAL may have been begun anew before Litestream had read it.
        """
        with self._lock:
            is_lost = self._look(reads=reads) or self._has_read_too_much or self._notes.are_lost()
            self._has_read_too_much = False
            return is_lost

    def _look(self, *, reads: bool) -> bool:
        self._check_file()
        before = self._wal
        is_lost = self._is_lost()
        wal = self._wal
        self.is_busy = wal != before
        if wal is None or self._file is None:
            return is_lost  # there is another one when somebody writes
        if not self.is_held and wal != self._in_vain:
            self._hold()
        if reads and self._is_due(wal):
            self._turn(wal)
            is_lost |= self._is_lost()
        elif self._is_hopeless(wal, reads=reads):
            is_lost |= self._cut()
        return is_lost

    def see_notes(self) -> None:
        """Litestream has noted something: from now on it is seen if that is deleted."""
        with self._lock:
            self._notes.see()

    def let_go(self) -> None:
        """Close all that is open."""
        with self._lock:
            self._let_go()
            self._notes.forget()

    def _let_go(self) -> None:
        for connection in (self._reader, self._in_line, self._writer):
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
        self._index.close()  # last: closing it would take the locks of the others away
        self._reader = self._in_line = self._writer = self._in_vain = None
        self.is_held = False

    def _is_lost(self) -> bool:
        before, self._wal = self._wal, wal_of(self._database)
        if before is None or self._wal is None or self._wal.salts == before.salts:
            return False
        self._in_vain = None
        return has_unread(self._database, before, self._wal)

    def _check_file(self) -> None:
        """If another file has its name by now, what is open is of none that anybody finds."""
        found = identity(self._database)
        if found != self._file:
            self._let_go()
            self._file, self._wal = found, None

    def _hold(self) -> None:
        """Begin to read what is newest."""
        with suppress(sqlite3.Error):
            self._reader = self._reader or self._connect()
            self._reader.execute("BEGIN")
            self._reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            self.is_held = _is_in_wal(self._database)
        if not self.is_held:  # all of it is in the database: it may be begun anew
            self._in_vain = self._wal
            self._stop_reading()

    def _stop_reading(self) -> None:
        self.is_held = False
        if self._reader is not None:
            with suppress(sqlite3.Error):
                self._reader.rollback()

    def _connect(
        self, *, busy: Literal["none", "gate"] = "gate", timeout: float = 1.0
    ) -> Connection:
        # A database that is gone is not made anew, or an empty one would be replicated.
        connection = oxlite.connect(
            f"{self._database.as_uri()}?mode=rw",
            uri=True,
            journal="keep",
            isolation_level=None,
            busy=busy,
            timeout=timeout,
            check_same_thread=False,
        )
        # The last one that is closed would take the WAL away, and Litestream could not go on in it.
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
        return connection

    def _as_writer(self) -> Connection:
        """The connection that stands in line as writers do."""
        if self._in_line is None:
            self._in_line = self._connect()
        return self._in_line

    def _is_due(self, wal: Wal) -> bool:
        if wal.frames < _DUE_PAGES:
            return False
        pause = self._pause
        if wal.bytes < _URGENT_BYTES:
            pause = max(pause, _TURN_EVERY_SECONDS)
        return time.monotonic() - self._turn_at >= pause

    def _turn(self, wal: Wal) -> None:
        """Have Litestream read what is left, and begin the WAL anew."""
        with suppress(sqlite3.Error):
            self._as_writer().give_way(lambda: self._give_way(wal))
        after = wal_of(self._database)
        if after is None or after.salts != wal.salts:
            self._pause = _URGENT_SECONDS
        else:
            self._pause = min(2 * self._pause, _PAUSE_AT_MOST_SECONDS)
        self._turn_at = time.monotonic()

    def _give_way(self, wal: Wal) -> None:
        """What is done at the head of the queue of writers."""
        if not self._is_settled(wal):
            return
        self._stop_reading()
        try:
            seconds = _ASK_SECONDS * max(1.0, wal.bytes / WAL_LIMIT_BYTES)
            seconds = min(seconds, _ASK_AT_MOST_SECONDS)
            if self._pause == _URGENT_SECONDS:
                self._ask(seconds)
            else:
                self._ask_in_lulls(wal, seconds)
            self._has_read_at = time.monotonic()
            if wal.size > WAL_LIMIT_BYTES:
                self._shorten(wal)
        except LitestreamFailed:  # who may be frozen: others are not to wait for that all the time
            self._pause = max(self._pause, _TURN_EVERY_SECONDS)
        finally:
            self._hold()

    def _is_settled(self, wal: Wal) -> bool:
        """See that Litestream reads, and has read, nothing that was never committed."""
        with suppress(sqlite3.Error, OSError, struct.error, Torn), self._write_lock():
            index = read_wal_index(self._index)
            if index is None or index.salts != wal.salts:  # another one was begun meanwhile
                return False
            end = wal.end_of(index.frames)
            if (end_of_read(self._database, wal) or 0) > end:
                self._has_read_too_much = True
                return False
            if has_commit(self._database, wal, end):
                os.truncate(f"{self._database}-wal", end)
            return True
        return False

    @contextmanager
    def _write_lock(self) -> Iterator[None]:
        """Hold it for a block. Raises ``oxlite.sqlite3.Error`` if it is not to be had soon."""
        self._writer = self._writer or self._connect(busy="none", timeout=0.0)
        ends = time.monotonic() + _LOCK_WITHIN_SECONDS
        while True:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError:
                if time.monotonic() > ends:
                    raise
                time.sleep(_LOCK_PAUSE_SECONDS)
        try:
            yield
        finally:
            self._writer.rollback()

    def _ask_in_lulls(self, wal: Wal, seconds: float) -> None:
        """One turn was in vain: readers may overlap without a gap."""
        assert self._reader is not None
        assert self._writer is not None
        for _ in range(_LULLS):
            time.sleep(LULL_SECONDS)  # who reads an older state keeps that from being copied
            with Lull(self._writer, self._reader):
                self._ask(seconds)
            now = wal_of(self._database)
            if now is None or now.salts != wal.salts:
                return

    def _shorten(self, wal: Wal) -> None:
        """Cut the file behind a WAL that was begun anew, as SQLite does at its limit."""
        with self._write_lock():
            now = wal_of(self._database)
            if now is not None and now.salts != wal.salts and now.bytes < WAL_LIMIT_BYTES:
                os.truncate(f"{self._database}-wal", WAL_LIMIT_BYTES)

    def _is_hopeless(self, wal: Wal, *, reads: bool) -> bool:
        return wal.bytes > WAL_LIMIT_BYTES and (
            not reads or time.monotonic() - self._has_read_at > _HOPELESS_SECONDS
        )

    def _cut(self) -> bool:
        """Nobody reads: that others can go on to write is worth more than the frames."""
        if time.monotonic() - self._cut_at < _TURN_EVERY_SECONDS:
            return False
        self._cut_at = time.monotonic()
        self._stop_reading()
        with suppress(sqlite3.Error):
            is_busy, _frames, _checkpointed = self._as_writer().checkpoint("truncate", timeout=0.1)
            return not is_busy
        return False


def _is_in_wal(database: Path) -> bool:
    """Whether this process reads the WAL of a database, and so keeps it from being begun anew."""
    holders = look_for_holders(database, with_libraries=False, process_ids=[os.getpid()])
    return any(
        lock.is_read_mark and lock.first >= _FIRST_IN_WAL
        for holder in holders or ()
        for lock in holder.locks
    )
