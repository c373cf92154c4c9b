"""The index of a WAL, read again and again through one descriptor.

To close any descriptor of a file takes away all POSIX locks that this process has on it
(https://sqlite.org/howtocorrupt.html, 2.2), and SQLite locks this one. So it stays open for the
life of a watch, and longer where another SQLite of this process may use the file.

Invariants: nothing is written or locked, no link is followed, and no FIFO waited for; a descriptor
is closed only where this process has no other one of the same file.
"""

import os
import stat
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["KeptFile"]

_Identity = tuple[int, int]

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)

_lock = threading.Lock()
_open: dict[_Identity, "_Shared"] = {}


@dataclass(slots=True)
class _Shared:
    """A descriptor for all watches of a file in this process.

    With no users it is one that could not be closed.
    """

    descriptor: int
    users: int = 1


class KeptFile:
    """A file by its name: opened once, and anew where the name has come to lead to another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._identity: _Identity | None = None

    @property
    def identity(self) -> _Identity | None:
        """Device and inode of what is read; None where there is nothing."""
        return self._identity

    def read(self, count: int) -> bytes | None:
        """Its first bytes; fewer where it is shorter, None where there is no such file.

        Raises:
            OSError: It is there and cannot be read, or is no regular file.
        """
        self._follow()
        return None if self._descriptor is None else os.pread(self._descriptor, count, 0)

    def _follow(self) -> None:
        try:
            status = self._path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            self.close()
            return
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OSError(f"{self._path}: is not a regular file")
        identity = status.st_dev, status.st_ino
        if identity == self._identity:
            return
        self.close()
        with _lock:
            shared = _open.get(identity)
            if shared is None:
                try:
                    descriptor = os.open(self._path, _FLAGS)
                except FileNotFoundError:
                    return
                found = os.fstat(descriptor)
                identity = found.st_dev, found.st_ino
                # If it was replaced meanwhile by one that is known, this descriptor stays open.
                shared = _open.setdefault(identity, _Shared(descriptor, 0))
            shared.users += 1
            self._descriptor, self._identity = shared.descriptor, identity

    def close(self) -> None:
        """Close it, or leave it open where that would take away locks."""
        identity = self._identity
        self._descriptor = self._identity = None
        if identity is None:
            return
        with _lock:
            _open[identity].users -= 1
            for one, shared in list(_open.items()):
                if not shared.users and not _is_open_elsewhere(shared.descriptor, one):
                    os.close(shared.descriptor)
                    del _open[one]


def _is_open_elsewhere(descriptor: int, identity: _Identity) -> bool:
    """Whether another descriptor of this process is of that file; also where nothing tells."""
    own = Path("/proc/self/fd")
    try:
        numbers = os.listdir(own)  # noqa: PTH208 - names
    except OSError:
        return True
    for number in numbers:
        if int(number) == descriptor:
            continue
        try:
            status = os.fstat(int(number))
        except OSError:  # it was closed meanwhile
            continue
        if (status.st_dev, status.st_ino) == identity:
            return True
    return False
