"""The header of a WAL's index, read without a lock.

Source: https://sqlite.org/walformat.html#the_wal_index_header. It is in native byte order, twice;
who writes it writes the second copy first. Where the copies differ it is read again.
"""

import struct
import time
from dataclasses import dataclass
from typing import Final

from oxlite.operations.top.kept_file import KeptFile

__all__ = ["Torn", "WalIndex", "read_wal_index"]

_COPY: Final = struct.Struct("=IIIBBHIIII8sII")
_SALTS: Final = struct.Struct(">II")
"""As the WAL's own header has them."""

_CHECKPOINT: Final = struct.Struct("=6I")
_CHECKPOINT_AT: Final = 96
_LENGTH: Final = _CHECKPOINT_AT + _CHECKPOINT.size

_NOT_USED: Final = 0xFFFFFFFF

_TIMES: Final = 50
_PAUSE_SECONDS: Final = 0.0005


class Torn(Exception):  # noqa: N818 - what it is
    """Its two copies have stayed different: a writer was stopped or has died between them."""


@dataclass(frozen=True, slots=True)
class WalIndex:
    """What the index of a WAL says.

    Attributes:
        identity: Device and inode of the file: another one counts anew.
        changes: How many transactions were committed since it was made, modulo 2**32.
        page_bytes: The size of a page.
        frames: How many frames of the WAL are valid.
        checkpointed_frames: How many of them are in the database.
        salts: Two numbers that change each time the WAL is begun anew, as they stand in its header.
        read_marks: The frame that each of the five stands at; None where it is not used.
    """

    identity: tuple[int, int]
    changes: int
    page_bytes: int
    frames: int
    checkpointed_frames: int
    salts: tuple[int, int]
    read_marks: tuple[int | None, ...]

    def frames_behind(self, number: int) -> int | None:
        """How many frames are newer than a read mark; None where that is not used.

        Who reads under the first one reads the database alone, as it was when all of the WAL was in
        it; nothing was checkpointed since.
        """
        mark = self.checkpointed_frames if number == 0 else self.read_marks[number]
        return None if mark is None else max(0, self.frames - mark)

    def commits_since(self, before: "WalIndex") -> int:
        """How many transactions were committed since another look.

        The index is made anew when all have closed the database, and after a crash; then it is what
        was counted since.
        """
        difference = (self.changes - before.changes) % 2**32
        is_same = self.identity == before.identity
        return difference if is_same and difference < 2**31 else self.changes


def read_wal_index(file: KeptFile) -> WalIndex | None:
    """Read it; None where there is none yet.

    Raises:
        Torn: It is being written, and that does not end.
        OSError: It may not be read.
    """
    for _ in range(_TIMES):
        content = file.read(_LENGTH)
        identity = file.identity
        if content is None or identity is None or len(content) < _LENGTH:
            return None
        first, second = (content[at : at + _COPY.size] for at in (0, _COPY.size))
        if first == second:
            return _parsed(identity, content)
        time.sleep(_PAUSE_SECONDS)
    raise Torn


def _parsed(identity: tuple[int, int], content: bytes) -> WalIndex | None:
    _, _, changes, is_made, _, size, frames, _, _, _, salts, _, _ = _COPY.unpack_from(content)
    if not is_made:
        return None
    checkpointed, *marks = _CHECKPOINT.unpack_from(content, _CHECKPOINT_AT)
    return WalIndex(
        identity=identity,
        changes=changes,
        page_bytes=(size & 0xFE00) + ((size & 1) << 16),
        frames=frames,
        # Beside who begins the WAL anew, it may be of the WAL before.
        checkpointed_frames=min(checkpointed, frames),
        salts=_SALTS.unpack(salts),
        read_marks=tuple(None if mark == _NOT_USED else mark for mark in marks),
    )
