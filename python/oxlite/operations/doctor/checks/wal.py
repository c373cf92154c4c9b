"""The write-ahead log: how long it is, and who keeps it so."""

from collections.abc import Iterator
from typing import Final, Literal

from oxlite.operations.doctor.place import Place
from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.subject import Subject
from oxlite.operations.holders import Holder

__all__ = ["CHECKS", "ILLNESSES"]

_LARGE: Final = Illness(
    "wal-large",
    "warning",
    "Each read looks into the WAL first, opening after a crash reads all of it, and the disk"
    " fills.",
    is_safe=True,
)
_LEFT: Final = Illness(
    "wal-left-behind",
    "hint",
    "It has commits that are not in the database yet. Whoever copies or moves the database without"
    " it loses them.",
    is_safe=True,
)
_HELD_BACK: Final = Illness(
    "wal-held-back",
    "warning",
    "What a transaction reads cannot be overwritten, so the WAL grows with each write until it"
    " ends.",
)
_CORRUPT: Final = Illness(
    "wal-corrupt",
    "error",
    "SQLite takes a WAL whose header is damaged for an empty one: the commits in it are lost.",
)

# journal_size_limit of the profiles, and the frames at which a checkpoint is made.
_LIMIT_BYTES: Final = 64 << 20
_MANY_FRAMES: Final = 1000

_WAL_HEADER_BYTES: Final = 32
_MAGIC: Final = (0x377F0682, 0x377F0683)


def _check_size(subject: Subject) -> Iterator[Finding]:
    """Whether it is larger than the profiles let it become: docs/wal.md; measured."""
    size = subject.place.size("-wal")
    header = subject.place.header
    if header is None or not header.is_wal:
        return
    checkpoint = "PRAGMA wal_checkpoint(TRUNCATE);"
    is_free = not subject.is_open_elsewhere
    if size > _LIMIT_BYTES:
        yield _LARGE.found(
            f"The WAL has {size >> 20:,} MiB; the profiles keep it to {_LIMIT_BYTES >> 20}.",
            checkpoint,
            is_safe=is_free,
        )
    elif size > _WAL_HEADER_BYTES and is_free and _header_is_sound(subject.place):
        yield _LEFT.found(
            f"A WAL of {size:,} bytes was left by a program that did not close the database.",
            checkpoint,
        )


def _check_readers(subject: Subject) -> Iterator[Finding]:
    """Who reads an old snapshot.

    Source: https://sqlite.org/wal.html#avoiding_excessively_large_wal_files.
    """
    later = {one.process_id: one for one in subject.holders_later or ()}
    if subject.place_later is None:
        return
    for holder in subject.holders or ():
        then = later.get(holder.process_id)
        before = _old_marks(subject.place, holder)
        if then is None or not before & _old_marks(subject.place_later, then):
            continue
        index = subject.place.wal_index
        assert index is not None
        yield _HELD_BACK.found(
            f"{holder.label[0].upper()}{holder.label[1:]} reads a snapshot that is older than"
            f" {index.last_frame - min(before):,} frames of the WAL.",
            "End its transaction: a cursor that was not read to its end, a BEGIN without COMMIT, a"
            " report,"
            f" a forgotten shell. Or end the process:\nkill {holder.process_id}",
        )


def _check_header(subject: Subject) -> Iterator[Finding]:
    """Whether its header is sound: https://sqlite.org/walformat.html#the_wal_header."""
    place = subject.place
    if place.header is None or not place.header.is_wal or subject.is_open_elsewhere:
        return
    if place.size("-wal") > _WAL_HEADER_BYTES and not _header_is_sound(place):
        yield _CORRUPT.found(
            f"The header of {place.path.name}-wal is damaged ({place.size('-wal'):,} bytes).",
            "Restore the last verified backup, or go on without what is in the WAL:\n"
            f"mv {subject.beside('-wal')} {subject.beside('-wal.damaged')}"
            f" && rm -f {subject.beside('-shm')}",
        )


def _old_marks(place: Place, holder: Holder) -> set[int]:
    """The marks of a process that are older than many frames."""
    index = place.wal_index
    if index is None:
        return set()
    marks = set()
    for lock in holder.locks:
        for number, mark in enumerate(index.read_marks):
            if lock.suffix == "-shm" and lock.first <= 123 + number <= lock.last:
                # The first one is of those who read the database alone.
                marks.add(mark if number else index.backfilled)
    return {mark for mark in marks if index.last_frame - mark >= _MANY_FRAMES}


def _header_is_sound(place: Place) -> bool:
    """Whether its checksum is right: https://sqlite.org/walformat.html#checksum_algorithm."""
    start = place.bytes.get("-wal", b"")[:_WAL_HEADER_BYTES]
    if "-wal" not in place.bytes:
        return True  # it could not be read
    if len(start) < _WAL_HEADER_BYTES:
        return False
    magic = int.from_bytes(start[:4], "big")
    if magic not in _MAGIC:
        return False
    order: Literal["big", "little"] = "big" if magic & 1 else "little"
    first = second = 0
    for at in range(0, 24, 8):
        first = first + int.from_bytes(start[at : at + 4], order) + second & 0xFFFFFFFF
        second = second + int.from_bytes(start[at + 4 : at + 8], order) + first & 0xFFFFFFFF
    return start[24:] == first.to_bytes(4, "big") + second.to_bytes(4, "big")


CHECKS: Final = (_check_size, _check_readers, _check_header)

ILLNESSES: Final = (_LARGE, _LEFT, _HELD_BACK, _CORRUPT)
