"""A file that gets its name when it is whole.

Invariants:
- Until then it is in a directory of its own, ``.NAME.XXXXXXXX.partial``, with whatever belongs to
  it; nothing takes that for a file of its kind.
- It never takes the place of another file, but for ``replace``.
- Who gives names in a directory does so alone (``alone_in``).
- What whoever was killed has left is known by its lock, which has ended, and deleted by the next
  one who writes there.
"""

import fcntl
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from oxlite.operations.files import cut, name_bytes_in

__all__ = [
    "Partial",
    "alone_in",
    "before_time",
    "remove_abandoned",
    "sync_directory",
    "timed_path",
    "write_whole",
]

_SUFFIX: Final = ".partial"
_OURS: Final = re.compile(r"\..*\.[0-9a-f]{8}\.partial", re.DOTALL)
_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NAME_BYTES_AT_MOST: Final = 100
_TIME_BYTES_AT_MOST: Final = len("20260101T000000Z-9999")


class Partial:
    """See the module. A context manager: what has not got its name by the end is deleted.

    Args:
        like: A name in the directory where it will be, for who sees it before it has its own.

    Attributes:
        path: Of the file, which is not there yet.
    """

    def __init__(self, like: Path) -> None:
        self._like = like
        self._directory = self.path = like
        self._lock = -1

    def __enter__(self) -> Self:
        """Make its directory, with nobody's rights but the owner's.

        Raises:
            OSError: It cannot be made there.
        """
        name = cut(self._like.name, _NAME_BYTES_AT_MOST)
        while True:
            self._directory = self._like.with_name(f".{name}.{secrets.token_hex(4)}{_SUFFIX}")
            self._directory.mkdir(mode=0o700)
            # Somebody may take it for abandoned before it has its lock.
            with suppress(FileNotFoundError):
                self._lock = os.open(self._directory, _FLAGS)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                if self._directory.exists():
                    break
                os.close(self._lock)
        self.path = self._directory / "whole"
        return self

    def beside(self, name: str) -> Path:
        """Another file in its directory, which goes with that."""
        return self._directory / name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Delete what has no name yet."""
        shutil.rmtree(self._directory, ignore_errors=True)
        os.close(self._lock)

    def take_rights(self, like: Path) -> None:
        """Have the permissions of another file, and its owner where that is allowed."""
        found = like.stat()
        rights = found.st_mode & 0o777
        try:
            os.chown(self.path, found.st_uid, found.st_gid)
        except OSError:  # then nobody but the owner: it may be another group's
            rights &= 0o700
        with suppress(OSError):  # a file system without permissions
            self.path.chmod(rights)

    def sync(self) -> None:
        """Have what is in it outlast a power cut."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def finish(self, final: Path) -> None:
        """Sync it, and give it its name.

        Raises:
            FileExistsError: There is something of that name.
            OSError: It cannot be synced or named.
        """
        self.sync()
        try:
            os.link(self.path, final)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if os.path.lexists(final):
                raise FileExistsError(f"{final} exists") from None
            self.path.rename(final)
        sync_directory(final.parent)

    def replace(self, final: Path) -> None:
        """Sync it, and put it in the place of what has its name, if there is anything.

        Raises:
            OSError: It cannot be synced or named.
        """
        self.sync()
        self.path.replace(final)
        sync_directory(final.parent)


def write_whole(path: Path, text: str) -> None:
    """Have a small file there with this in it, durably: of the owner alone, never a part.

    Raises:
        OSError: It cannot be written.
    """
    with Partial(path) as partial:
        partial.path.write_text(text, encoding="utf-8")
        partial.path.chmod(0o600)
        partial.replace(path)


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Wait until nobody else gives names in a directory, and keep others from it.

    Raises:
        OSError: It is no directory, or cannot be read.
    """
    descriptor = os.open(directory, _FLAGS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(directory: Path) -> None:
    """Delete what was left by those who have ended before it was whole."""
    for path in directory.glob(f".*{_SUFFIX}"):
        if not _OURS.fullmatch(path.name):
            continue
        try:
            descriptor = os.open(path, _FLAGS | os.O_NOFOLLOW)
        except OSError:  # gone, another user's, or none of ours
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # somebody is at it
            continue
        else:
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)


def timed_path(directory: Path, name: str, between: str, suffix: str = "") -> Path:
    """A path that nothing has: it begins with a name, and has the time (UTC).

    Args:
        directory: Where.
        name: With which it begins; its end is left out where all would be too long.
        between: What stands between that and the time.
        suffix: What follows the time.
    """
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    begin = before_time(directory, name, between, suffix)
    for number in itertools.count(1):
        more = "" if number == 1 else f"-{number}"
        found = directory / f"{begin}{now}{more}{suffix}"
        if not os.path.lexists(found):
            return found
    raise AssertionError  # numbers do not end


def before_time(directory: Path, name: str, between: str, suffix: str = "") -> str:
    """How such a path's name begins, whatever the time is."""
    others = len(between) + _TIME_BYTES_AT_MOST + len(suffix)
    return f"{cut(name, name_bytes_in(directory) - others)}{between}"


def sync_directory(directory: Path) -> None:
    """Have the names in it outlast a power cut."""
    descriptor = os.open(directory, _FLAGS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
