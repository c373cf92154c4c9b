"""When entries were used last, in memory that all processes share.

Reading must not write to the database. So whoever reads notes the instant in a file that all map:
an array of counters, of which a key's is found by its number. Several keys may share one; then all
of them count as used when one was.

Invariants:
- The file is as long as it is mapped, with all of its blocks, so that noting never fails.
- It is never truncated or shortened; another length is another file. What is in it may be wrong:
  then something is evicted that another would have been.
- Whoever finds it knows that the database beside it is a cache: see ``place``.
- It has the number of the boot in which the database was last known to be sound. Of another boot
  it tells nothing, since the power may have failed.
"""

import contextlib
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["NEVER", "Recency", "is_beside", "is_of_this_boot", "note_boot", "put_beside"]

_SUFFIX: Final = "-used"
_MAGIC: Final = b"oxlite cache, when entries were used, version 2\n"
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_BOOT_BYTES: Final = 16
_HEADER_BYTES: Final = 64
_COUNTER_BYTES: Final = 8
_BYTES_FOR_EACH: Final = 1024
"""Bytes of the cache for each counter."""

_FEWEST, _MOST = 1 << 12, 1 << 22
NEVER: Final = 2**63
"""The age of what was never used."""


class Recency:
    """When entries were used last.

    Args:
        path: Of the database.
        size: The limit of the cache, in bytes.

    Attributes:
        note: Notes that the entry with a number is used now.
    """

    def __init__(self, path: str, size: int) -> None:
        count = _FEWEST
        while count < min(_MOST, size // _BYTES_FOR_EACH):
            count *= 2
        self._memory = _mapped(path + _SUFFIX, count)
        whole = memoryview(self._memory)
        self._counters = whole[_HEADER_BYTES:].cast("Q")
        # All who map it have the same number of counters, whatever size they were given.
        self._mask = len(self._counters) - 1
        self.note = self._noting()

    def _noting(self) -> Callable[[int], None]:
        # Each lookup calls it: bound to what it needs it takes half the time.
        counters, mask, now = self._counters, self._mask, time.time_ns

        def note(number: int) -> None:
            counters[number & mask] = now() or 1

        return note

    def age(self, number: int, now: int) -> int:
        """For how many nanoseconds it has not been used, at that instant; 0 if that seems later."""
        used = self._counters[number & self._mask]
        return max(now - used, 0) if used else NEVER


def is_beside(path: str) -> bool:
    """Whether somebody has kept a cache in that file."""
    try:
        with Path(path + _SUFFIX).open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def put_beside(path: str) -> None:
    """Before a cache is made there: from now on it is known to be one, also after a power cut.

    This alone is synced. Else a power cut could leave a part of the new database and not this file,
    and nobody would know whether the damaged one may be emptied.
    """
    if is_beside(path):
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(path + _SUFFIX, _FLAGS, 0o600)
        try:
            os.pwrite(descriptor, _MAGIC + _boot(), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        folder = os.open(Path(path).parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def is_of_this_boot(path: str) -> bool:
    """Whether the power has not failed since the database was known to be sound."""
    try:
        with Path(path + _SUFFIX).open("rb") as file:
            return file.read(len(_MAGIC) + _BOOT_BYTES) == _MAGIC + _boot()
    except OSError:
        return False


def note_boot(path: str) -> None:
    """The database is sound, and stays so until the power fails."""
    if is_of_this_boot(path) or not is_beside(path):
        return
    with contextlib.suppress(OSError), Path(path + _SUFFIX).open("r+b", buffering=0) as file:
        file.seek(len(_MAGIC))
        file.write(_boot())


def _boot() -> bytes:
    """The number of this boot; zeros where there is none."""
    try:
        return bytes.fromhex(_BOOT.read_text().replace("-", ""))[:_BOOT_BYTES]
    except (OSError, ValueError):
        return bytes(_BOOT_BYTES)


def _mapped(path: str, count: int) -> "mmap.mmap | bytearray":
    """The file, or memory of this process alone where it cannot be had."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(path, _FLAGS, 0o600)
        try:
            there = os.fstat(descriptor).st_size - _HEADER_BYTES
            if _FEWEST * _COUNTER_BYTES <= there <= _MOST * _COUNTER_BYTES and not there & (
                there - 1
            ):
                count = there // _COUNTER_BYTES
            length = _HEADER_BYTES + count * _COUNTER_BYTES
            # Where a block is missing, noting would be a SIGBUS on a full disk.
            os.posix_fallocate(descriptor, 0, length)
            os.pwrite(descriptor, _MAGIC, 0)
            return mmap.mmap(descriptor, length)
        finally:
            os.close(descriptor)
    return bytearray(_HEADER_BYTES + count * _COUNTER_BYTES)
