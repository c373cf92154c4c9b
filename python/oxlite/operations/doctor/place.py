"""A database's file as it lies there: its header, what is beside it, directory and file system.

Nothing of it is opened here: files are asked for by name, and their first bytes are read by a
process of its own.
"""

import os
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from oxlite.environment import ReportError
from oxlite.environment.filesystem import file_system
from oxlite.operations.doctor.file_bytes import first_bytes
from oxlite.operations.errors import OperationsError
from oxlite.operations.files import MAGIC, SIDECARS, SQLITES

__all__ = ["Header", "Place", "WalIndex", "look", "may_write"]

_READ_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Header:
    """What the first 100 bytes say (https://sqlite.org/fileformat2.html#the_database_header)."""

    page_size: int
    write_version: int
    read_version: int
    fractions: tuple[int, int, int]
    page_count: int
    is_page_count_valid: bool

    @property
    def is_wal(self) -> bool:
        """Whether the file is in WAL mode."""
        return self.read_version == 2


@dataclass(frozen=True, slots=True)
class WalIndex:
    """What the first bytes of ``-shm`` say.

    Source: https://sqlite.org/walformat.html#the_wal_index_header.
    """

    last_frame: int
    backfilled: int
    read_marks: tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """What is known of a database without opening it.

    Attributes:
        path: The file, resolved.
        status: What ``stat`` says of it.
        directory: What ``stat`` says of its directory.
        sidecars: What ``lstat`` says of each file beside it that is there, by suffix.
        bytes: How each of them begins, by suffix; ``""`` is the database.
        file_system: See ``oxlite.environment``.
        free_bytes: What is free there for this user; None if unknown.
    """

    path: Path
    status: os.stat_result
    directory: os.stat_result
    sidecars: Mapping[str, os.stat_result]
    bytes: Mapping[str, bytes]
    file_system: Mapping[str, Any]
    free_bytes: int | None

    def beside(self, suffix: str) -> Path:
        """The path of a file beside it."""
        return self.path.with_name(self.path.name + suffix)

    def size(self, suffix: str) -> int:
        """How many bytes a file beside it has; 0 if it is not there."""
        found = self.sidecars.get(suffix)
        return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else 0

    @property
    def header(self) -> Header | None:
        """The header, where the file begins as a database."""
        start = self.bytes.get("", b"")
        if len(start) < 100 or not start.startswith(MAGIC):
            return None
        size, write, read = struct.unpack(">HBB", start[16:20])
        changes, pages = struct.unpack(">II", start[24:32])
        (valid_for,) = struct.unpack(">I", start[92:96])
        return Header(
            page_size=65536 if size == 1 else size,
            write_version=write,
            read_version=read,
            fractions=(start[21], start[22], start[23]),
            page_count=pages,
            is_page_count_valid=pages > 0 and changes == valid_for,
        )

    @property
    def wal_index(self) -> WalIndex | None:
        """The index of the WAL, where there is one."""
        start = self.bytes.get("-shm", b"")
        if len(start) < 136 or not start[12]:
            return None
        (last,) = struct.unpack("=I", start[16:20])
        backfilled, *marks = struct.unpack("=6I", start[96:120])
        return WalIndex(last, backfilled, tuple(marks))


def look(path: Path | str) -> Place:
    """Look at a file and at what is around it.

    Raises:
        OperationsError: There is no such file, it is no regular file, or it may not be read.
    """
    try:
        resolved = Path(path).resolve(strict=True)
        status = resolved.stat()
        directory = resolved.parent.stat()
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OperationsError(f"{path}: {reason}") from error
    if stat.S_ISDIR(status.st_mode):
        raise OperationsError(f"{path}: is a directory; name the database's file in it")
    if not stat.S_ISREG(status.st_mode):
        raise OperationsError(f"{path}: is not a regular file")
    sidecars = {suffix: found for suffix in SIDECARS if (found := _status(resolved, suffix))}
    return Place(
        path=resolved,
        status=status,
        directory=directory,
        sidecars=sidecars,
        bytes=_bytes(path, resolved, sidecars),
        file_system=_file_system(resolved.parent),
        free_bytes=_free_bytes(resolved.parent),
    )


def may_write(directory_or_file: os.stat_result, user: int, group: int) -> bool:
    """Whether a user may write there, as the mode has it; lists of access are not looked at."""
    mode = directory_or_file.st_mode
    if user == 0:
        return True
    if directory_or_file.st_uid == user:
        return bool(mode & stat.S_IWUSR)
    if directory_or_file.st_gid == group:
        return bool(mode & stat.S_IWGRP)
    return bool(mode & stat.S_IWOTH)


def _status(path: Path, suffix: str) -> os.stat_result | None:
    try:
        return path.with_name(path.name + suffix).lstat()
    except OSError:
        return None


def _bytes(
    named: Path | str, path: Path, sidecars: Mapping[str, os.stat_result]
) -> dict[str, bytes]:
    wanted = {"": path} | {
        suffix: path.with_name(path.name + suffix)
        for suffix in SQLITES
        if suffix in sidecars and stat.S_ISREG(sidecars[suffix].st_mode)
    }
    found = first_bytes(wanted, _READ_BYTES)
    own = found.get("")
    if isinstance(own, OSError):
        raise OperationsError(f"{named}: {own.strerror}") from own
    return {name: one for name, one in found.items() if isinstance(one, bytes)}


def _file_system(directory: Path) -> dict[str, Any]:
    try:
        return file_system(directory)
    except ReportError:  # no /proc, and no psutil
        return {
            "type": None, "mount_point": None, "options": [], "network": False, "volatile": False
        }  # fmt: skip


def _free_bytes(directory: Path) -> int | None:
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize
