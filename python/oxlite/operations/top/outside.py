"""What can be seen of a database from outside, whatever SQLite uses it.

The index of the WAL and the WAL's header are read, and in ``/proc`` who has what locked. Nobody is
asked, nothing is locked, and nobody is held up.

Invariants: the database itself is read by a process of its own alone, since closing it would take
locks away here (``doctor/file_bytes.py``); who may not read it is told nothing.
"""

import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from oxlite.operations.doctor.file_bytes import first_bytes
from oxlite.operations.errors import OperationsError
from oxlite.operations.files import MAGIC
from oxlite.operations.holders import Holder, look_for_holders
from oxlite.operations.top.kept_file import KeptFile
from oxlite.operations.top.sample import JournalMode
from oxlite.operations.top.wal_index import Torn, WalIndex, read_wal_index

__all__ = ["Gate", "Outside", "OutsideView", "ReadMark"]

# Oxlite keeps a read mark for less than this that nobody uses (docs/kept-read-marks.md).
_KEPT_AT_MOST_SECONDS: Final = 0.005

_HEADER_BYTES: Final = 100
_WAL_HEADER_BYTES: Final = 32

# https://sqlite.org/walformat.html#wal_locks: where they lie in the index.
_READ_MARK_BYTES: Final = range(123, 128)

# The bytes of the gate's file (crates/oxlite-core/src/write/queue/gate.rs).
_QUEUE_BYTE: Final = 0
_WAITING_BYTE: Final = 1


@dataclass(frozen=True, slots=True)
class ReadMark:
    """A read mark that a process has locked, and still has a moment later.

    Attributes:
        process_id: Of the process.
        number: Which one, 0 to 4.
        frames_behind: How many frames of the WAL are newer.
        is_writers: Whether it may be that of a transaction that writes now, which has the newest
            snapshot there is.
        key: The same for as long as it stands at the same place.
    """

    process_id: int
    number: int
    frames_behind: int
    is_writers: bool
    key: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """The queue between processes, as its locks tell.

    Attributes:
        waiting: The processes that wait.
        head: The process whose turn it is.
    """

    waiting: tuple[int, ...]
    head: int | None


@dataclass(frozen=True, slots=True)
class Outside:
    """What one look from outside has seen.

    Attributes:
        counted_at: When it was read how much has been committed, by the monotonic clock: all the
            rest is looked at after it, and that takes its time.
        journal_mode: ``wal`` or ``rollback``.
        size_bytes: Of the database's file.
        changes: How many transactions have changed the database; None in WAL mode, or if unknown.
        index: The index of the WAL, where there is one that can be read.
        has_index_file: Whether its file is there.
        wal_bytes: The size of the WAL's file.
        sequence: How often the WAL was begun anew; None while it has no header.
        holders: Who has it open; None where there is no ``/proc``.
        read_marks: What is read.
        writers: The processes with the write lock: one, or none.
        is_checkpointing: Whether somebody makes a checkpoint; None if unknown.
        gate: The queue between processes; None if unknown.
        notes: What is strange, in sentences.
    """

    counted_at: float
    journal_mode: JournalMode
    size_bytes: int
    changes: int | None
    index: WalIndex | None
    has_index_file: bool
    wal_bytes: int
    sequence: int | None
    holders: tuple[Holder, ...] | None
    read_marks: tuple[ReadMark, ...]
    writers: tuple[Holder, ...]
    is_checkpointing: bool | None
    gate: Gate | None
    notes: tuple[str, ...] = field(default=())


class OutsideView:
    """Looks at one database from outside, again and again.

    Raises:
        OperationsError: There is no such file, it may not be read, or it is no database.
    """

    def __init__(self, path: Path | str) -> None:
        self._named = path
        self.path = self._resolved()
        self._identity: tuple[int, int] | None = None
        self._header = b""
        self._replaced = False
        self._follow()
        self._index = KeptFile(self._beside("-shm"))

    def look(self) -> Outside:
        """Look once.

        Raises:
            OperationsError: The file is gone, may not be read any more, or is no database now.
        """
        size = self._follow()
        notes: list[str] = []
        counted_at = time.monotonic()
        index = self._read_index(notes)
        if index is None or not self._is_wal(index):
            # Its mode may be another one by now; in rollback mode its header counts the commits.
            self._read_header()
        is_wal = self._is_wal(index)
        index = index if is_wal else None
        wal_bytes, sequence = self._wal() if is_wal else (0, None)
        holders = self._holders()
        notes += self._notes(is_wal, index, wal_bytes, holders)
        return Outside(
            counted_at=counted_at,
            journal_mode="wal" if is_wal else "rollback",
            size_bytes=size,
            changes=None if is_wal else self._changes(),
            index=index,
            has_index_file=self._index.identity is not None,
            wal_bytes=wal_bytes,
            sequence=sequence,
            holders=holders,
            read_marks=self._read_marks(holders or (), index),
            writers=tuple(one for one in holders or () if _writes(one)),
            is_checkpointing=None if holders is None else _is_checkpointing(holders),
            gate=None if holders is None else _gate(holders),
            notes=tuple(notes),
        )

    def close(self) -> None:
        """Let the index go."""
        self._index.close()

    def _resolved(self) -> Path:
        try:
            return Path(self._named).resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OperationsError(f"{self._named}: {reason}") from error

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    def _follow(self) -> int:
        """See that it is there and may be read; its size."""
        try:
            status = self.path.stat()
        except OSError as error:
            if self._identity is not None and isinstance(error, FileNotFoundError):
                raise OperationsError(
                    f"{self._named}: was deleted or moved while it was watched{self._left_behind()}"
                ) from error
            raise OperationsError(f"{self._named}: {error.strerror}") from error
        if stat.S_ISDIR(status.st_mode):
            raise OperationsError(f"{self._named}: is a directory; name the database's file in it")
        if not stat.S_ISREG(status.st_mode):
            raise OperationsError(f"{self._named}: is not a regular file")
        if not _may_read(self.path):
            raise OperationsError(f"{self._named}: Permission denied")
        identity = status.st_dev, status.st_ino
        if identity != self._identity:
            self._replaced = self._identity is not None
            self._identity = identity
            self._header = b""
            self._read_header()
        return status.st_size

    def _left_behind(self) -> str:
        holders = [one for one in self._holders() or () if one.is_of_deleted]
        if not holders:
            return ""
        return f"; {holders[0].label} still has it open" + (
            f", and {len(holders) - 1} more" if len(holders) > 1 else ""
        )

    def _read_header(self) -> None:
        found = first_bytes({"": self.path}, _HEADER_BYTES).get("")
        if isinstance(found, OSError):
            raise OperationsError(f"{self._named}: {found.strerror}") from found
        if found and not found.startswith(MAGIC):
            raise OperationsError(
                f"{self._named}: is not a database, or an encrypted one: it does not begin as"
                " SQLite's files do"
            )
        # What could not be read without harm stays as it was.
        self._header = self._header if found is None else found

    def _is_wal(self, index: WalIndex | None) -> bool:
        # An index may have been left behind by another file of that name.
        return self._header[19:20] == b"\x02" if self._header else index is not None

    def _changes(self) -> int | None:
        # https://sqlite.org/fileformat2.html#file_change_counter
        return int.from_bytes(self._header[24:28], "big") if self._header else None

    def _read_index(self, notes: list[str]) -> WalIndex | None:
        name = f"{self.path.name}-shm"
        try:
            index = read_wal_index(self._index)
        except Torn:
            notes.append(
                f"The index of the WAL ({name}) is half written: who wrote it was stopped or has"
                " died. The next transaction mends it."
            )
            return None
        except OSError as error:
            reason = error.strerror or str(error)
            notes.append(f"The index of the WAL ({name}) cannot be read: {reason}.")
            return None
        if index is None and self._index.identity is not None:
            notes.append(
                f"The index of the WAL ({name}) is empty: who opens the database next makes it."
            )
        return index

    def _wal(self) -> tuple[int, int | None]:
        """Its size, and how often it was begun anew.

        SQLite locks nothing of this file, so it may be opened and closed.
        """
        try:
            descriptor = os.open(
                self._beside("-wal"),
                os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0),
            )
        except OSError:
            return 0, None
        try:
            size = os.fstat(descriptor).st_size
            header = os.pread(descriptor, _WAL_HEADER_BYTES, 0)
        except OSError:
            return 0, None
        finally:
            os.close(descriptor)
        is_there = len(header) == _WAL_HEADER_BYTES
        # https://sqlite.org/walformat.html#the_wal_header
        return size, int.from_bytes(header[12:16], "big") if is_there else None

    def _holders(self) -> tuple[Holder, ...] | None:
        return look_for_holders(self.path, with_libraries=False, with_gate=True)

    def _read_marks(
        self, holders: tuple[Holder, ...], index: WalIndex | None
    ) -> tuple[ReadMark, ...]:
        seen = {one.process_id: _marks(one) for one in holders if _marks(one)}
        if index is None or not seen:
            return ()
        # Who writes has a read mark too: the newest of its process.
        writers = {one.process_id for one in holders if _writes(one)}
        time.sleep(_KEPT_AT_MOST_SECONDS)
        again = look_for_holders(
            self.path, with_libraries=False, with_gate=True, process_ids=seen.keys()
        )
        moved = self._moved(index)
        stay = {one.process_id: _marks(one) & seen[one.process_id] for one in again or ()}
        found = []
        for process_id, numbers in stay.items():
            behind = {
                number: frames
                for number in sorted(numbers - moved)
                if (frames := index.frames_behind(number)) is not None
            }
            newest = min(behind.values(), default=0)
            for number, frames in behind.items():
                is_writers = process_id in writers and frames == newest
                place = index.identity, number, index.read_marks[number]
                found.append(ReadMark(process_id, number, frames, is_writers, place))
        return tuple(found)

    def _moved(self, before: WalIndex) -> set[int]:
        """The read marks that stand at another frame than a moment before: of short reads."""
        try:
            now = read_wal_index(self._index)
        except (Torn, OSError):
            return set()
        if now is None or now.identity != before.identity:
            return set(range(len(before.read_marks)))
        pairs = zip(before.read_marks, now.read_marks, strict=True)
        return {number for number, (one, other) in enumerate(pairs) if one != other}

    def _notes(
        self,
        is_wal: bool,
        index: WalIndex | None,
        wal_bytes: int,
        holders: tuple[Holder, ...] | None,
    ) -> list[str]:
        notes = []
        if self._replaced:
            notes.append(
                "Another file has its name since this watch has begun, and is watched now."
            )
        if holders is None:
            notes.append("Who has the database open cannot be seen: there is no /proc.")
        elif not holders:
            notes.append("Nobody has it open" + ("." if os.geteuid() == 0 else ", so far as seen."))
        if not is_wal:
            notes.append(
                "It is in rollback mode: who writes and who reads wait for one another, and there"
                " are no snapshots to see."
            )
        elif index is None and holders and self._index.identity is None:
            notes.append(
                "It is in WAL mode, and the index of the WAL is not there: a process has the"
                " database for itself (locking_mode = exclusive), or has not read yet."
            )
        elif index is None and wal_bytes and not holders:
            notes.append(f"A WAL of {wal_bytes:,} bytes was left behind: see oxlite doctor.")
        if holders is not None and os.geteuid() != 0:
            notes.append("Processes of other users are not seen; root sees all.")
        return notes


def _writes(holder: Holder) -> bool:
    return any(lock.is_write_lock for lock in holder.locks)


def _is_checkpointing(holders: tuple[Holder, ...]) -> bool:
    return any(lock.is_checkpoint_lock for one in holders for lock in one.locks)


def _may_read(path: Path) -> bool:
    can_be_effective = os.access in os.supports_effective_ids
    return os.access(path, os.R_OK, effective_ids=can_be_effective)


def _marks(holder: Holder) -> set[int]:
    """The read marks that a process has locked."""
    return {
        number
        for lock in holder.locks
        if lock.is_read_mark
        for number, byte in enumerate(_READ_MARK_BYTES)
        if lock.covers(byte)
    }


def _gate(holders: tuple[Holder, ...]) -> Gate:
    def that_lock(byte: int, *, alone: bool) -> tuple[int, ...]:
        return tuple(
            one.process_id
            for one in holders
            if any(
                lock.suffix == "-gate" and lock.is_write is alone and lock.covers(byte)
                for lock in one.locks
            )
        )

    head = that_lock(_QUEUE_BYTE, alone=True)
    return Gate(that_lock(_WAITING_BYTE, alone=False), head[0] if head else None)
