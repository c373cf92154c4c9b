"""Which WAL Litestream has read last, and which one there is.

Litestream notes in each of its files which part of which WAL is in it. If the WAL was begun anew
while it did not look, it goes on at the beginning of the new one wherever the last frame that it
has read still lies in the file (``verifyWithExecutor`` in its ``db.go``); what was written between
is missing in the replica then, and nothing says so. So that is seen here.
"""

import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from oxlite.operations.files import litestream_directory

__all__ = ["Wal", "continues", "identity", "wal_of"]

_WAL_HEADER: Final = struct.Struct(">IIIIII")
_MAGIC: Final = 0x377F0682
_LTX_HEADER: Final = struct.Struct(">4sIIIQQQQqqII")
"""https://github.com/superfly/ltx#header-block: magic, flags, page size, pages, first and last
transaction, time, checksum, where its part of the WAL begins, how long that is, the two salts."""

_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
_SALTS_OF_FRAME: Final = 8
_SALTS: Final = struct.Struct(">II")


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

    def was_begun_once_after(self, other: "Wal") -> bool:
        """Whether it is the one that follows another."""
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


def continues(database: Path) -> bool:
    """Whether what Litestream has read last is of the WAL that there is.

    If it has noted nothing, there is nothing that could be missing.
    """
    directory = litestream_directory(database) / "ltx" / "0"
    try:
        files = sorted(directory.glob("*.ltx"))
        if not files:
            return True
        with files[-1].open("rb") as file:
            *_rest, begin, length, one, two = _LTX_HEADER.unpack(file.read(_LTX_HEADER.size))
    except (OSError, struct.error):
        return False
    wal = wal_of(database)
    return wal is not None and wal.salts == (one, two) and wal.size >= begin + length


def identity(database: Path) -> tuple[int, int] | None:
    """Which file has the name; ``None`` if none has."""
    try:
        found = database.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
