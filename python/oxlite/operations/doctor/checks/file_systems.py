"""The file system under a database."""

from collections.abc import Iterator
from typing import Final

from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.subject import Subject

__all__ = ["CHECKS", "ILLNESSES"]

_NETWORK: Final = Illness(
    "network-file-system",
    "error",
    "Locks across machines are not reliable there, and the WAL's index is memory that machines do"
    " not share. Databases are corrupted by it.",
)
_OVERLAY: Final = Illness(
    "overlay-file-system",
    "warning",
    "It is the layer of a container: the data is gone with the container, and a file of the image"
    " is another one after its first write.",
)
_MEMORY: Final = Illness(
    "memory-file-system",
    "warning",
    "It lives in memory: a restart of the machine or of the container loses all.",
)
_UNUSUAL: Final = Illness(
    "unusual-file-system",
    "hint",
    "Locks, syncs or shared memory may be other than SQLite takes them to be; measure it before"
    " you rely on it.",
)
_READ_ONLY: Final = Illness(
    "read-only-file-system",
    "warning",
    "Nothing can be written, and in WAL mode nothing can be read unless WAL and index are there"
    " already.",
)
_FULL: Final = Illness(
    "disk-nearly-full",
    "warning",
    "Writes fail when the disk is full, and a WAL or a VACUUM needs room of its own.",
)

_MOVE: Final = (
    "Move the database to a file system of a disk of this machine (ext4, xfs, zfs, btrfs)."
)

# Those of disks, with POSIX locks, syncs and shared memory.
_USUAL: Final = frozenset(
    {
        "apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs", "reiserfs",
        "ufs", "xfs", "zfs",
    }
)  # fmt: skip
_LAYERS: Final = frozenset({"aufs", "fuse.fuse-overlayfs", "overlay"})

# As much as a WAL may take before it is cut.
_ENOUGH_BYTES: Final = 64 << 20


def _check_type(subject: Subject) -> Iterator[Finding]:
    """Of which type it is: https://sqlite.org/useovernet.html, https://sqlite.org/wal.html."""
    found = subject.place.file_system
    kind = found["type"]
    if kind is None:
        return
    where = f"The database is on {kind}, mounted at {found['mount_point']}."
    if found["network"]:
        yield _NETWORK.found(where, _MOVE)
    elif kind in _LAYERS:
        yield _OVERLAY.found(where, "Mount a volume, and move the database there.")
    elif found["volatile"]:
        yield _MEMORY.found(where, _MOVE, severity="hint" if subject.profile == "cache" else None)
    elif kind not in _USUAL:
        yield _UNUSUAL.found(where, _MOVE)


def _check_writable(subject: Subject) -> Iterator[Finding]:
    """Whether it is mounted to be written: https://sqlite.org/wal.html#read_only_databases."""
    found = subject.place.file_system
    if "ro" in found["options"]:
        yield _READ_ONLY.found(
            f"The file system at {found['mount_point']} is mounted read-only.",
            f"mount -o remount,rw {found['mount_point']}",
        )


def _check_room(subject: Subject) -> Iterator[Finding]:
    """Whether there is room for a WAL of its limit; the measure is Oxlite's (docs/wal.md)."""
    free = subject.place.free_bytes
    if (
        free is not None
        and free < _ENOUGH_BYTES
        and "ro" not in subject.place.file_system["options"]
    ):
        yield _FULL.found(
            f"{free >> 20:,} MiB are free there.",
            "Make room, or move the database to a larger disk.",
        )


CHECKS: Final = (_check_type, _check_writable, _check_room)

ILLNESSES: Final = (_NETWORK, _OVERLAY, _MEMORY, _UNUSUAL, _READ_ONLY, _FULL)
