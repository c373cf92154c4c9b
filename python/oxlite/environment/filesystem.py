"""The file system under a directory: its type, mount point and options.

SQLite stands on the file system's locks and syncs, and the write-ahead log on
memory shared between processes. A network file system keeps none of these
promises reliably, and one in memory makes every sync free, so both are named.

Invariants: symbolic links are resolved; a mount's source is not reported, and
of its options no path, address or user name.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from oxlite import NETWORK_FILE_SYSTEMS
from oxlite.environment.errors import ReportError

__all__ = [
    "VOLATILE_FILE_SYSTEMS",
    "Mount",
    "file_system",
    "parse_mounts",
    "printable",
]

VOLATILE_FILE_SYSTEMS: frozenset[str] = frozenset({"ramfs", "tmpfs"})
"""File system types that live in memory: syncs cost nothing and a power cut loses all."""

_MOUNT_TABLE = Path("/proc/self/mountinfo")

# Values that may tell an address, a person or a path of the machine.
_PRIVATE_OPTIONS = re.compile(
    r"(.*addr|.*user(name)?|domain|[ug]id|group_id|user_id|unc|.*dir\+?)="
)


class Mount(NamedTuple):
    """One line of the mount table."""

    point: str
    type: str
    options: tuple[str, ...]


def file_system(directory: Path) -> dict[str, Any]:
    """The file system that holds a directory.

    Args:
        directory: need not exist; then that of its nearest ancestor which does.

    Returns:
        ``type``, ``mount_point``, ``options`` (a list), ``network`` and
        ``volatile``; type and mount point are None where the mount table does
        not tell.

    Raises:
        ReportError: no ``/proc`` to read, and psutil is not installed.
    """
    resolved = directory.resolve()
    covering = [mount for mount in _mounts() if resolved.is_relative_to(mount.point)]
    if not covering:
        return _described(None)
    longest = max(len(mount.point) for mount in covering)
    # Of two mounts on one point the later hides the earlier.
    return _described([mount for mount in covering if len(mount.point) == longest][-1])


def parse_mounts(table: str) -> list[Mount]:
    """The mounts of a table in the form of Linux's ``/proc/self/mountinfo``.

    Source: proc_pid_mountinfo(5). The options are those of the mount followed
    by those of the file system itself, each once.
    """
    mounts = []
    for line in table.splitlines():
        before, separator, after = line.partition(" - ")
        fields, file_system_fields = before.split(" "), after.split(" ")
        if not separator or len(fields) < 6 or not file_system_fields[0]:
            continue
        options = fields[5].split(",")
        if len(file_system_fields) > 2:
            options += file_system_fields[2].split(",")
        unique = tuple(dict.fromkeys(map(_without_secrets, filter(None, options))))
        mounts.append(Mount(_unescaped(fields[4]), file_system_fields[0], unique))
    return mounts


def printable(name: str) -> str:
    """A file's name with the bytes replaced that are not text, so that JSON can hold it."""
    return os.fsencode(name).decode(errors="replace")


def _mounts() -> list[Mount]:
    if sys.platform == "linux" and _MOUNT_TABLE.exists():
        return parse_mounts(_MOUNT_TABLE.read_text(errors="surrogateescape"))
    try:
        import psutil
    except ModuleNotFoundError as error:
        raise ReportError.missing("psutil") from error
    return [
        Mount(part.mountpoint, part.fstype, tuple(map(_without_secrets, part.opts.split(","))))
        for part in psutil.disk_partitions(all=True)
    ]


def _described(mount: Mount | None) -> dict[str, Any]:
    kind = mount.type if mount else None
    return {
        "type": kind,
        "mount_point": printable(mount.point) if mount else None,
        "options": list(mount.options) if mount else [],
        "network": kind in NETWORK_FILE_SYSTEMS,
        "volatile": kind in VOLATILE_FILE_SYSTEMS,
    }


def _unescaped(field: str) -> str:
    r"""Undo the kernel's octal escapes (``\040`` is a space)."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def _without_secrets(option: str) -> str:
    name, equals, value = option.partition("=")
    if equals and ("/" in value or _PRIVATE_OPTIONS.fullmatch(f"{name}=")):
        return f"{name}=…"
    return option
