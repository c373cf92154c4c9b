"""What the killer and the writers it forks tell each other, in shared memory.

Words of 64 bits, so that a writer neither makes a system call nor takes a lock
to be heard, which would disturb what is measured, and a killed one leaves
no half of a message.

Invariants: each word has one writer, but for ``TAKEN`` and ``TAKER``, which only
the process that holds the write lock of the database writes; a word that announces
others is written after them.
"""

import mmap
from collections.abc import Iterator

STOPPED, ORDER, KIND, TAKEN, TAKER, KILLED_NS = range(6)
"""All should end; the number of the last order; what it asks for; the number of the last one
that was taken; the place of whoever took it; the instant of the last kill."""

HEAD_WORDS = 8
PLACE_WORDS = 4
ACKNOWLEDGED, LOCKED, ANSWERED_NS, FIRST_NS = range(PLACE_WORDS)
"""Of each place: its acknowledged writes; those that failed with a lock; the last kill after
which it has committed; the instant of its first commit after that."""


class Shared:
    """The words; a forked child sees the same."""

    def __init__(self, places: int) -> None:
        self.places = places
        size_bytes = 8 * (HEAD_WORDS + PLACE_WORDS * places)
        self.words = memoryview(mmap.mmap(-1, size_bytes)).cast("Q")

    def at(self, place: int, word: int) -> int:
        """The index of a word of ``place``."""
        return HEAD_WORDS + PLACE_WORDS * place + word

    def total(self, word: int) -> int:
        """The sum over all places."""
        return sum(self.words[self.at(place, word)] for place in range(self.places))

    def commits_after(self, killed_ns: int) -> Iterator[int]:
        """The instants of the first commit of each writer that has committed after the kill."""
        for place in range(self.places):
            if self.words[self.at(place, ANSWERED_NS)] == killed_ns:
                yield self.words[self.at(place, FIRST_NS)]
