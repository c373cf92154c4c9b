"""What a process does until it is killed: calls of two caches, one after the other.

One cache has no limit, so that nothing may be missing; the other has the smallest, so that almost
anything may be. One process in three uses the cache for asyncio.

Invariant: what it reads it compares at once with what the board said before and says afterwards.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from tests.cache.faces import AwaitedCache
from tests.cache_kills.board import KEYS, SLOTS, TARGETS, Adding, Board, Doing, Pairs
from tests.cache_kills.values import (
    COUNTERS,
    added_key,
    computed_key,
    is_deletion,
    own_key,
    value_of,
    wrong_of,
)
from tests.kill_campaigns import WrongError

from oxlite.cache import Cache

LIMIT_BYTES: Final = 1 << 20
WITHOUT_LIMIT, LIMITED = "cache.db", "limited.db"

_COMPUTING_SECONDS: Final = (0, 0, 0.001, 0.01)
_OVERLAP_SECONDS: Final = 0.5
_AWAITED_EACH: Final = 3
_TIMEOUTS: Final = (None, 1_000.0, 100_000.0)


AnyCache: TypeAlias = Cache | AwaitedCache


def opened(folder: Path, name: str, life: int = 0) -> AnyCache:
    """A cache of that folder."""
    face = AwaitedCache if life % _AWAITED_EACH == _AWAITED_EACH - 1 else Cache
    return face(folder / name, None if name == WITHOUT_LIMIT else LIMIT_BYTES)


class Worker:
    """A process in a slot.

    Args:
        folder: That of the caches.
        board: That of all.
        number: Of the slot.
    """

    def __init__(self, folder: Path, board: Board, number: int) -> None:
        self._board = board
        self._number = number
        self._slot = slot = board.slots[number]
        self._random = random.Random(f"worker {slot.life}")
        slot.doing = Doing.OPEN
        self._cache = opened(folder, WITHOUT_LIMIT, slot.life)
        self._limited = opened(folder, LIMITED, slot.life)
        self._seen = dict.fromkeys(COUNTERS, 0)
        for counter in COUNTERS:
            self._cache.add(counter, 0)

    def work(self) -> None:
        """Call until one is told to stop, and close.

        Raises:
            WrongError: Something is missing, or never was a value of its key.
        """
        calls: list[Callable[[], None]] = [
            *[self._incr] * 6,
            *[self._set_own] * 5,
            *[self._add] * 3,
            *[self._get_or_set] * 2,
            *[self._set_limited] * 3,
            *[self._read, self._read_limited, self._touch] * 2,
        ]
        slot, common = self._slot, self._board.common
        while not common[Board.STOP]:
            self._random.choice(calls)()
            slot.doing = Doing.NOTHING
            slot.beats += 1
        slot.doing = Doing.CLOSE
        if self._random.random() < 0.5:
            self._cache.close()
            self._limited.close()

    def _incr(self) -> None:
        slot, index = self._slot, self._random.randrange(len(COUNTERS))
        counter = COUNTERS[index]
        slot.doing = Doing.INCR
        slot.counters.begun[index] += 1
        total = self._cache.incr(counter)
        slot.counters.acknowledged[index] += 1
        if total <= self._seen[counter]:
            raise WrongError(f"{counter} was {self._seen[counter]} and became {total}")
        self._seen[counter] = total

    def _add(self) -> None:
        common, slot = self._board.common, self._slot
        number = common[Board.ADDED]
        if number >= TARGETS or slot.adding[number]:
            return
        key = added_key(self._board.target(number))
        slot.doing = Doing.ADD
        slot.adding[number] = Adding.BEGUN
        has_won = self._cache.add(key, value_of(key, slot.life))
        slot.adding[number] = Adding.WON if has_won else Adding.LOST
        common[Board.ADDED] = max(common[Board.ADDED], number + 1)

    def _get_or_set(self) -> None:
        common, slot = self._board.common, self._slot
        number = common[Board.COMPUTED]
        if number >= TARGETS:
            return
        key = computed_key(self._board.target(number))

        def compute() -> str:
            slot.computing = number + 1
            self._see_who_else_computes(number)
            time.sleep(self._random.choice(_COMPUTING_SECONDS))
            return value_of(key, slot.life)

        slot.doing = Doing.GET_OR_SET
        began = time.monotonic()
        try:
            value = self._cache.get_or_set(key, compute)
        finally:
            slot.computing = 0
        slot.longest = max(slot.longest, int((time.monotonic() - began) * 1e6))
        author = int(value.split("|")[1])
        if value != value_of(key, author):
            raise WrongError(f"another's: {key!r} has {value[:60]!r}")
        if slot.computed[number] not in (0, author):
            raise WrongError(f"{key!r} is by {author}, and was by {slot.computed[number]}")
        slot.computed[number] = author
        common[Board.COMPUTED] = max(common[Board.COMPUTED], number + 1)

    def _see_who_else_computes(self, number: int) -> None:
        """Somebody who was killed says so until his slot is cleared; anybody else must not."""
        ends = time.monotonic() + _OVERLAP_SECONDS
        for other in self._board.slots:
            life = other.life
            while other is not self._slot and other.computing == number + 1 and other.life == life:
                if time.monotonic() > ends:
                    self._slot.overlap = life
                    return
                time.sleep(0.0005)

    def _set_own(self) -> None:
        index = self._random.randrange(KEYS)
        self._write(self._cache, self._slot.own, index, Doing.SET)

    def _set_limited(self) -> None:
        self._write(self._limited, self._slot.limited, self._random.randrange(KEYS), None)

    def _write(self, cache: AnyCache, pairs: Pairs, index: int, doing: Doing | None) -> None:
        # What a killed process has begun has a number that nobody takes again.
        number = pairs.begun[index] + 1
        key = own_key(self._number, index)
        self._slot.doing = doing or Doing.LIMITED_SET
        if is_deletion(number):
            self._slot.doing = Doing.DELETE
            pairs.begun[index] = number
            cache.delete(key)
        else:
            value, timeout = value_of(key, number), self._random.choice(_TIMEOUTS)
            pairs.begun[index] = number
            if not self._is_set(cache, key, value, timeout):
                raise WrongError(f"{key!r} could not be set: {cache.stats()}")
        pairs.acknowledged[index] = number

    def _is_set(self, cache: AnyCache, key: str, value: str, timeout: float | None) -> bool:
        if self._random.random() < 0.3:
            return cache.set_many({key: value}, timeout) == []
        is_set: bool = cache.set(key, value, timeout)
        return is_set

    def _read(self) -> None:
        self._slot.doing = Doing.READ
        self._look(self._cache, [slot.own for slot in self._board.slots], may_miss=False)

    def _read_limited(self) -> None:
        self._slot.doing = Doing.LIMITED_READ
        self._look(self._limited, [slot.limited for slot in self._board.slots], may_miss=True)

    def _look(self, cache: AnyCache, every: list[Pairs], *, may_miss: bool) -> None:
        slot = self._random.randrange(SLOTS)
        pairs = every[slot]
        keys = [own_key(slot, index) for index in range(KEYS)]
        before = list(pairs.acknowledged)
        if self._random.random() < 0.3:
            found = cache.get_many(keys)
        else:
            found = {key: cache.get(key) for key in keys}
        after = list(pairs.begun)
        for index, key in enumerate(keys):
            if what := wrong_of(
                key, found.get(key), before[index], after[index], may_miss=may_miss
            ):
                raise WrongError(what)

    def _touch(self) -> None:
        """Another expiry must not bring an older value back, whoever sets it meanwhile."""
        slot, index = self._random.randrange(SLOTS), self._random.randrange(KEYS)
        pairs = self._board.slots[slot].own
        self._slot.doing = Doing.TOUCH
        before = pairs.acknowledged[index]
        is_there = self._cache.touch(own_key(slot, index), self._random.choice(_TIMEOUTS))
        numbers = range(before, pairs.begun[index] + 1)
        if is_there and all(map(is_deletion, numbers)):
            raise WrongError(f"touched, and not there: {own_key(slot, index)!r} at {before}")
        if not is_there and not any(map(is_deletion, numbers)):
            raise WrongError(f"there, and not touched: {own_key(slot, index)!r} at {before}")
