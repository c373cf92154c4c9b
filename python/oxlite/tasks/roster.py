"""Who works on the tasks of a file, and who has ended.

A worker is a row and the lock of a byte, which the kernel frees when its process ends. So nobody
writes that he lives. Its end wakes the others: by the descriptor of its process (pidfd), or, where
that is in another PID namespace, by a thread that waits for its lock.

Invariants:
- A worker locks its byte before its row can be seen, and lets it go after the row is gone.
- The lock says whether somebody lives; all else only says when to look. Where the file of the locks
  is another one than his, his process says it.
"""

import os
import random
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from oxlite.file_locks import FileLock, is_locked, wait_until_free

__all__ = ["Member", "Roster", "lock_path", "pid_namespace"]

_PLACES: Final = 1 << 62

_LOOK_AGAIN_SECONDS: Final = 0.05
"""Where the process of a worker has ended, and somebody has its lock for a moment longer."""


class Member(NamedTuple):
    """A worker, as its row has it.

    Attributes:
        name: Host, process and place.
        place: Which byte it has locked.
        lock_file: Of which file: its numbers, as the system knows it.
        pid: Its process.
        pid_namespace: Where that is its number.
        may_be_killed: Whether the process is there for tasks alone.
    """

    name: str
    place: int
    lock_file: str
    pid: int
    pid_namespace: str
    may_be_killed: int


class Roster:
    """See the module. One thread at a time uses it.

    Args:
        path: Of the database.
        poll: Where descriptors of processes are waited for.
        ring: Wakes whoever waits there; takes no lock.
    """

    def __init__(self, path: str, poll: "select.poll", ring: Callable[[], None]) -> None:
        self._locks = lock_path(path)
        self._poll = poll
        self._ring = ring
        self._others: dict[str, Member] = {}
        self._descriptors: dict[int, str] = {}
        # Those whose end was heard of, and whose lock is to be looked at.
        self._doubtful: set[str] = set()
        self._lock: FileLock | None = None
        self.look_at: float | None = None

    def joined(self, may_be_killed: bool) -> Member:
        """Take a place, whose row is to be written then.

        Raises:
            OSError: The file of the locks cannot be opened.
        """
        while True:
            place = random.randrange(_PLACES)
            lock = FileLock(self._locks, place)
            if lock.try_acquire():
                self._lock = lock
                name = f"{socket.gethostname()}.{os.getpid()}.{place:016x}"
                file = self._file() or ""
                return Member(name, place, file, os.getpid(), pid_namespace(), may_be_killed)

    def leave(self) -> None:
        """Let the place go, and watch nobody any more. The row is gone, or others will do that."""
        for descriptor in list(self._descriptors):
            self._forget(descriptor)
        self._others.clear()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    @property
    def names(self) -> set[str]:
        """Who is watched."""
        return set(self._others)

    def watch(self, members: list[Member]) -> None:
        """Watch those, and nobody else."""
        names = {member.name for member in members}
        for name in self._others.keys() - names:
            del self._others[name]
            self._doubtful.discard(name)
        for descriptor, name in list(self._descriptors.items()):
            if name not in names:
                self._forget(descriptor)
        for member in members:
            if member.name not in self._others:
                self._others[member.name] = member
                self._begin(member)

    def check(self) -> None:
        """Look whether all live: one that has let its lock go need not have ended its process."""
        for member in self._others.values():
            if not self._is_alive(member):
                self._doubt(member.name)

    def note(self, descriptors: list[int]) -> None:
        """Note which descriptors are readable: those processes have ended."""
        for descriptor in descriptors:
            if descriptor in self._descriptors:
                self._doubt(self._descriptors[descriptor])
                self._forget(descriptor)

    def ended(self) -> list[str]:
        """Those who have ended: what they had is to be given to others, and their rows deleted."""
        self.look_at = None
        found = []
        for name in sorted(self._doubtful):
            member = self._others.get(name)
            if member is None:
                self._doubtful.discard(name)
            elif self._is_alive(member):
                self.look_at = time.time() + _LOOK_AGAIN_SECONDS
            else:
                found.append(name)
        return found

    def kill(self, name: str) -> bool:
        """Kill the process of a worker, if that is there for tasks alone, and can be reached.

        Returns:
            Whether that was so.
        """
        member = self._others.get(name)
        if (
            member is None
            or not member.may_be_killed
            or member.pid == os.getpid()
            or member.pid_namespace != pid_namespace()
        ):
            return False
        with suppress(OSError):
            descriptor = os.pidfd_open(member.pid)
            try:
                # While it lives the number is its own, and so is the process of the descriptor.
                if self._is_alive(member):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    return True
            finally:
                os.close(descriptor)
        return False

    def _doubt(self, name: str) -> None:
        self._doubtful.add(name)
        self.look_at = 0.0

    def _begin(self, member: Member) -> None:
        if member.pid_namespace == pid_namespace():
            with suppress(OSError):
                descriptor = os.pidfd_open(member.pid)
                self._descriptors[descriptor] = member.name
                self._poll.register(descriptor, select.POLLIN)
        # It may have ended before, and its number may be another one's.
        if not self._is_alive(member):
            self._doubt(member.name)
        elif member.name not in self._descriptors.values():
            threading.Thread(
                target=self._wait_for,
                args=(member,),
                name=f"oxlite tasks: {member.name}",
                daemon=True,
            ).start()

    def _wait_for(self, member: Member) -> None:
        with suppress(OSError):
            wait_until_free(self._locks, member.place)
        self._doubt(member.name)
        self._ring()

    def _is_alive(self, member: Member) -> bool:
        if self._file() == member.lock_file:
            return is_locked(self._locks, member.place)
        # Somebody has deleted the file of its lock: whether the process is there is known at least.
        return member.pid_namespace == pid_namespace() and Path(f"/proc/{member.pid}").exists()

    def _file(self) -> str | None:
        """Which file the locks are in now."""
        try:
            status = os.stat(self._locks)  # noqa: PTH116 - at each look
        except OSError:
            return None
        return f"{status.st_dev}:{status.st_ino}"

    def _forget(self, descriptor: int) -> None:
        del self._descriptors[descriptor]
        self._poll.unregister(descriptor)
        os.close(descriptor)


def lock_path(path: str) -> str:
    """The file of the locks of a database's workers."""
    return f"{path}-workers"


def pid_namespace() -> str:
    """In which numbers of processes this one's is."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - it is no path
    except OSError:
        return socket.gethostname()
