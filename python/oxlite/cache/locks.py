"""The locks of a cache: of who computes the value of a key, of names, of the file itself.

Invariant: the bytes of keys, of names and of the file's own affairs are in ranges of their own.
"""

import time
from collections.abc import Generator
from types import TracebackType
from typing import Final, Self

from oxlite.file_locks import FileLock

__all__ = ["NamedLock", "lock_of_file", "lock_of_key", "pauses"]

_SUFFIX: Final = "-locks"
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.0005, 0.005
_RANGE: Final = 2**61


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
        super().__init__(path + _SUFFIX, _RANGE + number % _RANGE)
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
    return FileLock(path + _SUFFIX, number % _RANGE)


def lock_of_file(path: str) -> FileLock:
    """The lock of whoever makes or mends the file."""
    return FileLock(path + _SUFFIX, 2 * _RANGE)


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
