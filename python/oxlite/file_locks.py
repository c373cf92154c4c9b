"""Locks among threads and processes that end with whoever holds them.

A lock is a byte of a file, locked by the kernel for an open file description (Linux): if the holder
ends, however it does, the lock is free.

Invariant: a child that is forked keeps no lock of its parent.
"""

import errno
import fcntl
import os
import struct
from pathlib import Path
from weakref import WeakSet

__all__ = ["FileLock", "is_locked", "wait_until_free"]

_held: "WeakSet[FileLock]" = WeakSet()


def _let_go_in_child() -> None:
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    # Or a child would keep the lock of a parent that is killed.
    os.register_at_fork(after_in_child=_let_go_in_child)


class FileLock:
    """A lock that one tries to take; free again when it is released, or whoever has it ends.

    Args:
        path: Of the file of locks, which is made if it is not there.
        place: Which byte.
    """

    def __init__(self, path: str, place: int) -> None:
        self._path = path
        self._place = place
        self._descriptor: int | None = None
        self._pid = 0

    @property
    def is_held(self) -> bool:
        """Whether this object has it."""
        return self._descriptor is not None

    @property
    def is_in_force(self) -> bool:
        """Whether this object has it, and the file has still its name: else others lock another."""
        return self._descriptor is not None and _is_at(self._descriptor, self._path)

    def lend(self) -> int:
        """A second descriptor of the locked file, for a process that is begun with it.

        It has the lock too, until it ends: released here, it is free there as well.

        Raises:
            RuntimeError: The lock is not held.
        """
        if self._descriptor is None:
            raise RuntimeError("this lock is not held: there is nothing to lend")
        return os.dup(self._descriptor)

    def try_acquire(self) -> bool:
        """Take it if it is free, and say whether it was.

        Raises:
            RuntimeError: This object has it already.
            OSError: The file of the locks cannot be opened.
        """
        if self._descriptor is not None:
            raise RuntimeError("this lock is held already: take another object of its name")
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        while True:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                if not _change(descriptor, fcntl.F_WRLCK, self._place):
                    os.close(descriptor)
                    return False
                is_there = _is_at(descriptor, self._path)
            except BaseException:
                os.close(descriptor)
                raise
            if is_there:
                self._descriptor, self._pid = descriptor, os.getpid()
                _held.add(self)
                return True
            # Somebody has deleted the file: others lock another one.
            os.close(descriptor)

    def release(self) -> None:
        """Let go of it; nothing happens if it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            if self._pid == os.getpid():
                # A child that was forked meanwhile has the same open file.
                _change(descriptor, fcntl.F_UNLCK, self._place)
        finally:
            os.close(descriptor)

    def __del__(self) -> None:
        """Whoever forgets it lets go of it."""
        self.release()


def is_locked(path: str, place: int) -> bool:
    """Whether anybody, in this process or another, holds the lock of a byte. It takes nothing.

    Raises:
        OSError: The file of the locks cannot be opened, although it is there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _request(fcntl.F_WRLCK, place))
    finally:
        os.close(descriptor)
    return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)


def wait_until_free(path: str, place: int) -> None:
    """Wait until nobody holds the lock of a byte, however long that takes, with the GIL let go.

    Nothing but the end of its holder, or of this process, ends the wait: call it in a thread of its
    own.

    Raises:
        OSError: The file of the locks cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLKW, _request(fcntl.F_WRLCK, place))
    finally:
        os.close(descriptor)


_FLOCK = "hhqqi"
"""``struct flock`` of Linux on 64 bits: https://man7.org/linux/man-pages/man2/fcntl.2.html."""


def _request(kind: int, place: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, place, 1, 0)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        there = Path(path).stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _change(descriptor: int, kind: int, place: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _request(kind, place))
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True
