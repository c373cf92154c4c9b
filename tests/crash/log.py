"""The log of a recording, read: what was done to the files of a folder, in one order.

It is written by ``tests/faults/interposer``, where ``log.rs`` says how.
"""

import enum
import errno
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_BEGINNING = struct.Struct("<QQ")
_HEADER = struct.Struct("<IIIIiiQqq")
_MARKER = 0x0C7A5109
_ALIGNMENT = 8


class Kind(enum.IntEnum):
    """What an event is. ``first`` and ``second`` are as in ``log.rs``."""

    OPEN = 1
    WRITE = 2
    TRUNCATE = 3
    SYNC_BEGINS = 4
    SYNC_ENDS = 5
    UNLINK = 6
    MARK = 7
    WRITABLE_MAP = 8


class Event(NamedTuple):
    """One record."""

    kind: Kind
    place: int
    process: int
    thread: int
    file: int
    first: int
    second: int
    content: bytes


def create(path: Path, size_bytes: int) -> None:
    """Makes an empty log; it takes no more room than what is written to it."""
    with path.open("wb") as file:
        file.truncate(size_bytes)


def read(path: Path) -> list[Event]:
    """All events of a log.

    Whoever was killed in the middle of a record has left it incomplete; it is no event then: what
    it was to tell, nobody has known.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        return list(_events(content))


def with_failures_of_the_killed(events: list[Event]) -> list[Event]:
    """Each sync in which a process was killed has failed, and nobody has been told."""
    told = {event.first for event in events if event.kind is Kind.SYNC_ENDS}
    changed = []
    for event in events:
        changed.append(event)
        if event.kind is Kind.SYNC_BEGINS and event.place not in told:
            end = event._replace(kind=Kind.SYNC_ENDS, first=event.place, second=errno.EIO)
            changed.append(end)
    return changed


def _events(content: mmap.mmap) -> Iterator[Event]:
    end, size_bytes = _BEGINNING.unpack_from(content)
    if end > size_bytes > 0:
        raise OverflowError(f"the log has room for {size_bytes} bytes and would need {end}")
    place = _BEGINNING.size
    while place < end:
        marker, is_complete, length, kind, process, thread, file, first, second = (
            _HEADER.unpack_from(content, place)
        )
        if marker != _MARKER:
            # Somebody was killed between taking the place and writing to it.
            place += _ALIGNMENT
            continue
        if is_complete:
            what = content[place + _HEADER.size : place + length]
            yield Event(Kind(kind), place, process, thread, file, first, second, what)
        place += -(-length // _ALIGNMENT) * _ALIGNMENT
