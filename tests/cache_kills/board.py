"""What processes say of themselves, in memory that outlives them.

Each process works in a slot; another takes it over after a kill. Each word is written by one
process: that of its slot, or the campaign while there is none.

Invariants:
- What is begun is said before, and what is acknowledged when the call has returned, and no sooner.
- A word is stored at once: a process that is killed has written all of it or nothing.
"""

import mmap
from enum import IntEnum, auto
from typing import Final

from tests.cache_kills.values import COUNTERS

SLOTS: Final = 4
KEYS: Final = 6
"""So many keys each slot has to itself, in each of the two caches."""

TARGETS: Final = 96
"""So many keys there are in a round that all try to add, and as many that are computed."""

_WORD_BYTES: Final = 8


class Adding(IntEnum):
    """How far a process has come with adding a key."""

    NOT_TRIED = 0
    BEGUN = auto()
    WON = auto()
    LOST = auto()


class Doing(IntEnum):
    """What a process does."""

    NOTHING = 0
    OPEN = auto()
    INCR = auto()
    ADD = auto()
    GET_OR_SET = auto()
    SET = auto()
    DELETE = auto()
    TOUCH = auto()
    READ = auto()
    LIMITED_SET = auto()
    LIMITED_READ = auto()
    CLOSE = auto()


class _Word:
    """A word of a slot as an attribute."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __get__(self, slot: "Slot", owner: type["Slot"]) -> int:
        word: int = slot.words[self._number]
        return word

    def __set__(self, slot: "Slot", value: int) -> None:
        slot.words[self._number] = value


class Pairs:
    """For each of several things, how often it was begun and how often acknowledged."""

    def __init__(self, words: memoryview, count: int) -> None:
        self.begun = words[:count]
        self.acknowledged = words[count : 2 * count]


class Slot:
    """The words of a slot.

    Attributes:
        words: All of them.
        life: The number of the process; never given twice.
        beats: How many operations have ended.
        doing: What it does now: ``Doing``.
        computing: The target that it computes, and one; 0 if none.
        overlap: The life that has computed the same at the same time; 0 if none.
        longest: The longest ``get_or_set`` of it and those before it, in microseconds.
        counters: Steps of the counters.
        own: Operations on its keys.
        limited: The same in the cache that has a limit.
        adding: How far it is with each key of the round.
        computed: For each key of the round, who had computed the value that was returned.
    """

    WORDS: Final = 6 + 2 * len(COUNTERS) + 4 * KEYS + 2 * TARGETS

    life = _Word(0)
    beats = _Word(1)
    doing = _Word(2)
    computing = _Word(3)
    overlap = _Word(4)
    longest = _Word(5)

    def __init__(self, words: memoryview) -> None:
        self.words = words
        rest = words[6:]
        self.counters = Pairs(rest, len(COUNTERS))
        rest = rest[2 * len(COUNTERS) :]
        self.own = Pairs(rest, KEYS)
        rest = rest[2 * KEYS :]
        self.limited = Pairs(rest, KEYS)
        rest = rest[2 * KEYS :]
        self.adding = rest[:TARGETS]
        self.computed = rest[TARGETS : 2 * TARGETS]


class Board:
    """The words of all.

    Attributes:
        slots: Those of each slot.
        common: ``ROUND``, ``STOP``, ``ADDED`` and ``COMPUTED`` of the campaign.
        found: What the judge has found in the counters.
    """

    ROUND: Final = 0
    STOP: Final = 1
    ADDED: Final = 2
    """The key of the round that is added now. Whoever has tried it moves on to the next."""

    COMPUTED: Final = 3

    def __init__(self) -> None:
        count = 4 + len(COUNTERS) + SLOTS * Slot.WORDS
        # Without a name: forks share it, and it ends with them.
        self._words = memoryview(mmap.mmap(-1, _WORD_BYTES * count)).cast("Q")
        self.common = self._words[:4]
        rest = self._words[4:]
        self.found = rest[: len(COUNTERS)]
        rest = rest[len(COUNTERS) :]
        self.slots = [
            Slot(rest[number * Slot.WORDS : (number + 1) * Slot.WORDS]) for number in range(SLOTS)
        ]

    def clear(self) -> None:
        """Begin with an empty cache: nothing was done, but lives go on."""
        for slot in self.slots:
            for pairs in (slot.counters, slot.own, slot.limited):
                for words in (pairs.begun, pairs.acknowledged):
                    words[:] = _zeros(len(words))
        self.begin_round(self.common[self.ROUND] + 1)

    def begin_round(self, number: int) -> None:
        """All keys of a round are other ones than before."""
        for slot in self.slots:
            slot.adding[:] = slot.computed[:] = _zeros(TARGETS)
        self.common[self.ROUND] = number
        self.common[self.STOP] = self.common[self.ADDED] = self.common[self.COMPUTED] = 0

    def is_at_its_end(self) -> bool:
        """Whether all keys of the round have been tried."""
        return min(self.common[self.ADDED], self.common[self.COMPUTED]) >= TARGETS

    def target(self, number: int) -> int:
        """The number by which a key of this round is known in all."""
        return int(self.common[self.ROUND]) * TARGETS + number


def _zeros(count: int) -> memoryview:
    return memoryview(bytes(_WORD_BYTES * count)).cast("Q")
