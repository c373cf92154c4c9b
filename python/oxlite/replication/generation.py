"""Which WAL Litestream has read last, and which one there is.

Litestream notes in each of its files which part of which WAL is in it. If the WAL was begun anew
while it did not look, it goes on at the beginning of the new one wherever the last frame that it
has read still lies in the file (``verifyWithExecutor`` in its ``db.go``); what was written between
is missing in the replica then, and nothing says so. So that is seen here.
"""

import itertools
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from oxlite.operations.files import litestream_directory

__all__ = [
    "Wal",
    "continues",
    "end_of_read",
    "has_commit",
    "has_unread",
    "identity",
    "last_noted",
    "notes_directory",
    "wal_of",
]

_WAL_HEADER: Final = struct.Struct(">IIIIII")
_MAGIC: Final = 0x377F0682
_LTX_HEADER: Final = struct.Struct(">4sIIIQQQQqqII")
"""https://github.com/superfly/ltx#header-block: magic, flags, page size, pages, first and last
transaction, time, checksum, where its part of the WAL begins, how long that is, the two salts."""

_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
_SALTS_OF_FRAME: Final = 8
_SALTS: Final = struct.Struct(">II")
_FRAME_HEADER: Final = struct.Struct(">IIII")
"""Of a frame: page, size of the database in pages if it ends a transaction, the two salts."""

_READ_AT_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Wal:
    """A WAL as its header and its size say it (https://sqlite.org/walformat.html).

    Attributes:
        salts: Two numbers. The first is one more each time that it is begun anew.
        page_size: In bytes.
        size: Of its file, in bytes.
        frames: How many were written since it was begun; the file may have more, of one before.
    """

    salts: tuple[int, int]
    page_size: int
    size: int
    frames: int

    @property
    def frame_bytes(self) -> int:
        """How long a frame is."""
        return self.page_size + _FRAME_HEADER_BYTES

    @property
    def bytes(self) -> int:
        """How far its frames reach."""
        return self.end_of(self.frames)

    def end_of(self, frames: int) -> int:
        """How far so many frames reach."""
        return _HEADER_BYTES + frames * self.frame_bytes

    def follows(self, other: "Wal") -> bool:
        """Whether it is the one that was begun after another, and none between."""
        return self.salts[0] == (other.salts[0] + 1) & 0xFFFFFFFF


def wal_of(database: Path) -> Wal | None:
    """The WAL of a database; ``None`` if there is none, or it has no header yet."""
    with suppress(OSError, struct.error), Path(f"{database}-wal").open("rb") as file:
        magic, _version, page_size, _number, one, two = _WAL_HEADER.unpack(file.read(24))
        if magic & ~1 == _MAGIC and page_size:
            size = os.fstat(file.fileno()).st_size
            frame = page_size + _FRAME_HEADER_BYTES
            frames = _frames(file.fileno(), (one, two), frame, (size - _HEADER_BYTES) // frame)
            return Wal((one, two), page_size, size, frames)
    return None


def _frames(descriptor: int, salts: tuple[int, int], frame_bytes: int, most: int) -> int:
    """How many frames have its salts: those of one before lie behind them."""
    least = 0
    while least < most:
        middle = (least + most) // 2
        place = _HEADER_BYTES + middle * frame_bytes + _SALTS_OF_FRAME
        if _SALTS.unpack(os.pread(descriptor, _SALTS.size, place)) == salts:
            least = middle + 1
        else:
            most = middle
    return least


@dataclass(frozen=True, slots=True)
class _Read:
    """What is in one of Litestream's files: of which WAL, and up to which byte of it."""

    salts: tuple[int, int]
    end: int


def _notes(database: Path) -> Iterator[Path]:
    """Litestream's files of single transactions, beside a database."""
    return notes_directory(database).glob("*.ltx")


def notes_directory(database: Path) -> Path:
    """Where Litestream notes what it has read of a database."""
    return litestream_directory(database) / "ltx" / "0"


def _read_last(database: Path) -> Iterator[_Read]:
    """What Litestream has read, the last first.

    Raises:
        OSError, struct.error: It cannot be known.
    """
    for path in sorted(_notes(database), reverse=True):
        with path.open("rb") as file:
            *_rest, begin, length, one, two = _LTX_HEADER.unpack(file.read(_LTX_HEADER.size))
        yield _Read((one, two), begin + length)


def continues(database: Path, end: int | None, *, is_kept: bool) -> bool:
    """Whether Litestream finds all that it has not read in the WAL that there is.

    If it has noted nothing, it asks its store for the last that it has sent, of any WAL.

    Args:
        database: Its file, resolved.
        end: Of what is committed in the WAL, in bytes, by its index; ``None`` if that is not known.
        is_kept: Whether a reader keeps the WAL from being begun anew. Else the next writer may do
            that before Litestream looks, and it must have read all.
    """
    try:
        last = next(_read_last(database), None)
    except (OSError, struct.error):
        return False
    wal = wal_of(database)
    if last is None or wal is None or end is None or wal.salts != last.salts:
        return False
    return end >= last.end if is_kept else end == last.end


def last_noted(database: Path) -> int:
    """The number of the last transaction that Litestream has noted of a database; 0 if of none."""
    names = [path.stem.rpartition("-")[2] for path in _notes(database)]
    return int(max(names, default="0"), 16)


def end_of_read(database: Path, wal: Wal) -> int | None:
    """Up to which byte of a WAL Litestream has read it; ``None`` if it has read nothing of it.

    Raises:
        OSError, struct.error: It cannot be known.
    """
    reads = itertools.islice(_read_last(database), _READ_AT_MOST)
    return next((read.end for read in reads if read.salts == wal.salts), None)


def has_commit(database: Path, wal: Wal, place: int) -> bool:
    """Whether a transaction of a WAL ends behind a place of its file.

    Raises:
        OSError: The file cannot be read.
    """
    with Path(f"{database}-wal").open("rb") as file:
        while True:
            header = os.pread(file.fileno(), _FRAME_HEADER.size, place)
            if len(header) < _FRAME_HEADER.size:
                return False
            _page, pages_after_commit, *salts = _FRAME_HEADER.unpack(header)
            if tuple(salts) != wal.salts:
                return False
            if pages_after_commit:
                return True
            place += wal.frame_bytes


def has_unread(database: Path, before: Wal, now: Wal) -> bool:
    """Whether a WAL was begun anew before Litestream had read all of the one before.

    What the one before had, and the new one has not overwritten yet, still lies in the file.

    Args:
        database: Its file, resolved.
        before: How that WAL was.
        now: How the new one is.
    """
    if not now.follows(before):
        return True
    try:
        if not last_noted(database):
            return False  # it begins with all of the database
        return has_commit(database, before, end_of_read(database, before) or now.bytes)
    except (OSError, struct.error):
        return True


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has the name; ``None`` if none has."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
