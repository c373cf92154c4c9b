"""Named locks among threads and processes, which end with whoever holds them.

A lock is a byte of a file, locked by the kernel for an open file description (Linux): if the holder
ends, however it does, the lock is free.

Invariant: the bytes of keys, of names and of the file's own affairs are in ranges of their own.
"""

import errno
import fcntl
import os
import struct
import time
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from weakref import WeakSet

__all__ = ["FileLock", "NamedLock", "lock_of_file", "lock_of_key", "pauses"]

_SUFFIX: Final = "-locks"
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.0005, 0.005
_RANGE: Final = 2**61


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
        path: Of the database.
        place: Which byte.
    """

    def __init__(self, path: str, place: int) -> None:
        self._path = path + _SUFFIX
        self._place = place
        self._descriptor: int | None = None
        self._pid = 0

    @property
    def is_held(self) -> bool:
        """Whether this object has it."""
        return self._descriptor is not None

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


class NamedLock(FileLock):
    """A lock with a name. A context manager, which waits for it.

    Args:
        path: Of the database.
        number: Of the name.
        timeout: For how many seconds one waits; ``None`` for ever.

    Attributes:
        timeout: See there.
    """

    def __init__(self, path: str, number: int, timeout: float | None) -> None:
        super().__init__(path, _RANGE + number % _RANGE)
        self.timeout = timeout

    def acquire(self, timeout: float | None = None) -> bool:
        """Take it, and say whether that was possible in time.

        Args:
            timeout: For how many seconds one waits at the most; 0 not at all, ``None`` for ever.

        Raises:
            RuntimeError: This object has it already.
            OSError: The file of the locks cannot be opened.
        """
        for pause in pauses(timeout):
            if self.try_acquire():
                return True
            time.sleep(pause)
        return self.try_acquire()

    def __enter__(self) -> Self:
        """Wait for it.

        Raises:
            TimeoutError: It was not free in time.
        """
        if not self.acquire(self.timeout):
            raise self.not_free()
        return self

    def not_free(self) -> TimeoutError:
        """What is raised when it was not free in time."""
        return TimeoutError(f"the lock was not free within {self.timeout:g} s")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let go of it."""
        self.release()


def lock_of_key(path: str, number: int) -> FileLock:
    """The lock of whoever computes the value of a key."""
    return FileLock(path, number % _RANGE)


def lock_of_file(path: str) -> FileLock:
    """The lock of whoever makes or mends the file."""
    return FileLock(path, 2 * _RANGE)


def pauses(timeout: float | None) -> Generator[float, None, None]:
    """How long to wait after each try, until so many seconds have gone by."""
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = _SHORTEST_SECONDS
    while True:
        left = pause if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return
        yield min(pause, left)
        pause = min(2 * pause, _LONGEST_SECONDS)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        there = Path(path).stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _change(descriptor: int, kind: int, place: int) -> bool:
    request = struct.pack("hhqqi", kind, os.SEEK_SET, place, 1, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, request)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True
