"""When the tasks of a process are to have ended: written by the process, read by its supervisor.

It is memory that both share, so that nothing gets lost, and a bell in a pipe: rung for a deadline
before which the supervisor would not look by itself.

Invariant: a deadline is there before its task begins, and gone after its end.
"""

import mmap
import os
import struct
import threading
import time
from contextlib import suppress
from typing import Final

__all__ = ["TimeBoard"]

_PLACES: Final = 4096
_ENTRY: Final = struct.Struct("=dq")
"""When it is to have ended, as ``time.monotonic`` counts, 0 for none; and the task's number.

The first one says when the supervisor is to look, and how many have been used.
"""


class TimeBoard:
    """See the module. Made before the process is forked.

    Attributes:
        changed: Readable when something was written, and when the process has ended.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _PLACES * _ENTRY.size)
        self.changed, self._bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._lock = threading.Lock()
        self._places: dict[int, int] = {}
        self._free = list(range(_PLACES - 1, 0, -1))
        self._used = 0
        # When the supervisor looks, as far as this process knows.
        self._looks_at = float("inf")
        _ENTRY.pack_into(self._memory, 0, self._looks_at, 0)

    # In the process.

    def write(self, number: int, deadline: float | None) -> None:
        """Say when a task is to have ended; ``None`` when it has."""
        with self._lock:
            if deadline is None:
                place = self._places.pop(number, None)
                if place is None:
                    return
                self._free.append(place)
            elif self._free:
                place = self._places[number] = self._free.pop()
            else:
                return  # of so many at the same time one more is not watched
            _ENTRY.pack_into(self._memory, place * _ENTRY.size, deadline or 0.0, number)
            if self._looks_at <= time.monotonic():
                self._looks_at = float("inf")
            is_sooner = deadline is not None and deadline < self._looks_at
            if is_sooner and deadline is not None:
                self._looks_at = deadline
            self._used = max(self._used, place)
            _ENTRY.pack_into(self._memory, 0, self._looks_at, self._used)
            if not is_sooner:
                return
        with suppress(OSError):  # it is full, and he looks; or he is no more
            os.write(self._bell, b"\0")

    # In the supervisor.

    def forked(self) -> None:
        """Close what is the process' own."""
        os.close(self._bell)

    def read(self) -> tuple[float, list[tuple[float, int]]]:
        """When to look again, and when which tasks are to have ended, the first first."""
        with suppress(BlockingIOError):
            os.read(self.changed, 65536)
        look_at, used = _ENTRY.unpack_from(self._memory)
        entries = self._memory[_ENTRY.size : (used + 1) * _ENTRY.size]
        return look_at, sorted(each for each in _ENTRY.iter_unpack(entries) if each[0])

    def close(self) -> None:
        """The process has ended."""
        os.close(self.changed)
        self._memory.close()
