"""Who has a database open, and what they have locked of it (Linux).

Seen in ``/proc``: the descriptors of each process, and the locks taken through each. The files are
not opened for it, since closing one would take locks away from another SQLite of this process; only
files of these names are asked for, so that a file system that does not answer is left alone.

Processes of other users are seen by root alone; those of other machines by nobody.
"""

import os
import re
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from oxlite import harmless
from oxlite.operations.libraries import Library, libraries_of

__all__ = ["Holder", "Lock", "look_for_holders"]

_LOOK_FOR_SECONDS: Final = 2.0
_COMMAND_AT_MOST: Final = 200
_LABEL_AT_MOST: Final = 60
_DELETED: Final = " (deleted)"
_LOCK: Final = re.compile(
    r"^lock:\s+\d+: (POSIX|OFDLCK)\s+\w+\s+(READ|WRITE)\s+-?\d+ \S+ (\d+) (\d+|EOF)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Lock:
    """Bytes of a file that a process has locked.

    Attributes:
        suffix: Of which file: ``""`` the database, ``"-shm"`` the index of the WAL, ``"-gate"``
            where writers of several processes queue.
        is_posix: Whether it is a lock of the process (as SQLite's are), or of an open file (as
            Oxlite's are).
        is_write: Whether nobody else can have it.
        first: The first byte.
        last: The last byte; -1 for all that follow.
    """

    suffix: str
    is_posix: bool
    is_write: bool
    first: int
    last: int

    @property
    def is_read_mark(self) -> bool:
        """Whether it is one of the five read marks (https://sqlite.org/walformat.html#wal_locks)."""
        return self.suffix == "-shm" and not self.is_write and 123 <= self.first <= 127

    @property
    def is_write_lock(self) -> bool:
        """Whether it is SQLite's write lock: of the WAL, or RESERVED of the database.

        Sources: https://sqlite.org/walformat.html#wal_locks, https://sqlite.org/lockingv3.html.
        """
        write, reserved = 120, 0x40000001
        byte = {"-shm": write, "": reserved}.get(self.suffix)
        return byte is not None and self.is_write and self.covers(byte)

    @property
    def is_checkpoint_lock(self) -> bool:
        """Whether it is that of who makes a checkpoint (the same source)."""
        return self.suffix == "-shm" and self.is_write and self.covers(121)

    def covers(self, byte: int) -> bool:
        """Whether a byte of the file is locked by it."""
        return self.first <= byte and (self.last == -1 or byte <= self.last)


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has the database open.

    Attributes:
        process_id: Its number, as ``/proc`` knows it.
        command: Its command line, harmless.
        is_stopped: Whether it has been stopped (SIGSTOP, a debugger).
        is_of_deleted: Whether the file it has open was deleted, or another one has its name now.
        locks: What it has locked.
        libraries: The SQLites in it.
    """

    process_id: int
    command: str
    is_stopped: bool
    is_of_deleted: bool
    locks: tuple[Lock, ...]
    libraries: tuple[Library, ...] = ()

    @property
    def users(self) -> tuple[Library, ...]:
        """The SQLites that have the file open: those whose kind of lock is on it.

        Oxlite locks an open file, any other SQLite its process. Of several nothing is said where
        none has locked anything: nearly every process in Python has one that it does not use.
        """
        kinds = {lock.is_posix for lock in self.locks}
        if not kinds:
            return self.libraries if len(self.libraries) == 1 else ()
        return tuple(one for one in self.libraries if (not one.is_oxlite) in kinds)

    @property
    def label(self) -> str:
        """Number and command, for a sentence."""
        return f"process {self.process_id} ({_cut(self.command, _LABEL_AT_MOST)})"

    def as_dict(self) -> dict[str, Any]:
        """What a report says of it."""
        return {
            "process_id": self.process_id,
            "command": self.command,
            "is_stopped": self.is_stopped,
            "sqlite": [
                {
                    "library": harmless(one.path),
                    "version": ".".join(map(str, one.version)) if one.version else None,
                    "is_oxlite": one.is_oxlite,
                }
                for one in self.users
            ],
            "reads": any(lock.is_read_mark for lock in self.locks),
            "writes": any(lock.is_write_lock for lock in self.locks),
        }


def look_for_holders(
    path: Path,
    *,
    with_libraries: bool = True,
    with_gate: bool = False,
    process_ids: Collection[int] | None = None,
    look_for_seconds: float = _LOOK_FOR_SECONDS,
) -> tuple[Holder, ...] | None:
    """The processes that have a database open, this one among them.

    Args:
        path: Of the database, resolved.
        with_libraries: Whether to look for the SQLites in them.
        with_gate: Whether to look for locks of ``-gate`` too. Who
            has that open alone is no holder.
        process_ids: These alone are looked at; None is all.
        look_for_seconds: So long at the most; what was not seen by then is left out.

    Returns:
        None where there is no ``/proc`` to look at.
    """
    root = Path("/proc")
    if not (root / "self" / "fdinfo").is_dir():
        return None
    ends = time.monotonic() + look_for_seconds
    found = []
    if process_ids is None:
        process_ids = [int(name) for name in os.listdir(root) if name.isdigit()]  # noqa: PTH208 - thousands
    suffixes = ("", "-wal", "-shm", "-gate") if with_gate else ("", "-wal", "-shm")
    for process_id in sorted(process_ids):
        if time.monotonic() > ends:
            break
        holder = _holder(root / str(process_id), path, suffixes)
        if holder is not None:
            libraries = libraries_of(holder.process_id) if with_libraries else ()
            found.append(replace(holder, libraries=libraries))
    return tuple(found)


def _holder(process: Path, path: Path, wanted: tuple[str, ...]) -> Holder | None:
    suffixes = {f"{path.name}{suffix}": suffix for suffix in wanted}
    locks: set[Lock] = set()
    is_open = is_deleted = False
    try:
        descriptors = os.listdir(process / "fd")  # noqa: PTH208 - thousands of them
    except OSError:
        return None
    for number in descriptors:
        try:
            link = str((process / "fd" / number).readlink())
            name = link.rpartition("/")[2].removesuffix(_DELETED)
            if name not in suffixes or not _is_same(process / "fd" / number, path, name, link):
                continue
            is_open |= suffixes[name] in {"", "-wal"}
            is_deleted |= link.endswith(_DELETED) and not suffixes[name]
            info = (process / "fdinfo" / number).read_text()
        except OSError:
            continue
        locks |= {
            Lock(
                suffixes[name],
                kind == "POSIX",
                access == "WRITE",
                int(first),
                -1 if last == "EOF" else int(last),
            )
            for kind, access, first, last in _LOCK.findall(info)
        }
    # Who uses the WAL has locked its index; others only look at that, as ``oxlite top`` does.
    if not is_open and not any(lock.suffix == "-shm" for lock in locks):
        return None
    ordered = sorted(locks, key=lambda lock: (lock.suffix, lock.first, lock.is_posix))
    return Holder(
        int(process.name), _command(process), _is_stopped(process), is_deleted, tuple(ordered)
    )


def _is_same(descriptor: Path, path: Path, name: str, link: str) -> bool:
    """Whether it is that file, or was it by name before it was deleted."""
    if link == f"{path.parent / name}{_DELETED}":
        return True
    try:
        here, there = descriptor.stat(), path.with_name(name).stat()
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "unknown"
    text = " ".join(harmless(word.decode(errors="replace")) for word in words if word)
    return _cut(text, _COMMAND_AT_MOST)


def _cut(text: str, at_most: int) -> str:
    return text if len(text) <= at_most else text[: at_most - 1] + "…"


def _is_stopped(process: Path) -> bool:
    try:
        state = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in {"T", "t"}
