"""What is done with a cache while it is recorded.

Values of all kinds and lengths are set, set again, touched, deleted and evicted, numbers are added
to, and the WAL is brought into the file now and then. What is done follows from the seed.
"""

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cache_images.history import COUNTERS, counted_from, made

import oxlite
from oxlite.cache import Cache

FILE: Final = "cache.db"
LIMIT_BYTES: Final = 1 << 20
_MODES: Final = ("PASSIVE", "PASSIVE", "FULL", "RESTART", "TRUNCATE")
_SHORT_SECONDS: Final = 0.001
_LONG_SECONDS: Final = 100_000.0

Say = Callable[..., None]


@dataclass(frozen=True)
class Workload:
    """How much of what is done.

    Attributes:
        keys: How many keys there are.
        is_prepared: Whether there is a cache with values before the recording begins.
        lengths: Of the values in bytes, the least and the most.
        is_limited: Whether the cache has a limit, of 1 MiB, and evicts.
        operations: How many there are.
        share: How many of the moments are looked at.
    """

    keys: int
    is_prepared: bool
    lengths: tuple[int, int]
    is_limited: bool
    operations: int
    share: float


WORKLOADS: Final = {
    "new": Workload(24, False, (1, 20_480), False, 150, 0.15),
    "few": Workload(30, True, (1, 20_480), False, 150, 0.15),
    "many": Workload(1_500, True, (1, 200), False, 60, 0.006),
    "evicting": Workload(250, True, (1_000, 20_480), True, 250, 0.003),
}


@dataclass(frozen=True)
class Play:
    """What is played."""

    workload: str
    seed: int

    @property
    def plan(self) -> Workload:
        """How much of what."""
        return WORKLOADS[self.workload]

    @property
    def has_secret(self) -> bool:
        """Whether values are pickled, and sealed with a secret."""
        return self.seed % 2 == 1

    @property
    def keys(self) -> list[str]:
        """All keys but the counters, some of them long."""
        return [f"key-{number}" + "-" * (number % 7 * 9) for number in range(self.plan.keys)]

    def opened(self, folder: Path) -> Cache:
        """The cache."""
        options: dict[str, Any] = {}
        if self.has_secret:
            options = {"serializer": "pickle", "secret_key": "secret"}
        return Cache(folder / FILE, LIMIT_BYTES if self.plan.is_limited else None, **options)


class Player:
    """Plays, and says before each step what it may come to.

    Args:
        folder: That of the cache.
        play: What is played.
        say: Where it is said.
    """

    def __init__(self, folder: Path, play: Play, say: Say) -> None:
        self._folder = folder
        self._play = play
        self._say = say
        self._random = random.Random(f"{play.seed} {play.workload}")
        self._keys = play.keys
        self._number = 0

    def prepare(self) -> None:
        """Have something there."""
        if self._play.plan.is_prepared:
            with self._play.opened(self._folder) as cache:
                cache.set_many({key: self._next(key, is_short=False) for key in self._keys})
                for counter in COUNTERS:
                    self._begin_counter(cache, counter)

    def play(self) -> None:
        """Do all of it, in a few sessions."""
        count = self._play.plan.operations
        for _ in range(3):
            with self._play.opened(self._folder) as cache:
                for _ in range(count // 3):
                    self._step(cache)
            if self._random.random() < 0.5:
                self._checkpoint()

    def _step(self, cache: Cache) -> None:
        draw = self._random.random()
        key = self._random.choice(self._keys)
        if draw < 0.4:
            is_short = self._random.random() < 0.1
            timeout = _SHORT_SECONDS if is_short else self._random.choice((None, _LONG_SECONDS))
            cache.set(key, self._next(key, is_short=is_short), timeout)
        elif draw < 0.5:
            keys = self._random.sample(self._keys, len(self._keys) // 10)
            cache.set_many({one: self._next(one, is_short=False) for one in keys})
        elif draw < 0.7:
            self._count(cache, self._random.choice(COUNTERS))
        elif draw < 0.78:
            self._say("touches", key=key)
            cache.touch(key, self._random.choice((None, _LONG_SECONDS, _LONG_SECONDS / 2)))
        elif draw < 0.85:
            cache.delete(key)
        elif draw < 0.88:
            cache.delete_many(self._random.sample(self._keys, len(self._keys) // 4))
        elif draw < 0.93:
            cache.add(key, self._next(key, is_short=False))
        else:
            self._checkpoint()

    def _next(self, key: str, *, is_short: bool) -> Any:  # noqa: ANN401 - of all kinds
        self._number += 1
        lengths = self._play.plan.lengths
        self._say("sets", key=key, number=self._number, is_short=is_short, lengths=lengths)
        return made(self._play.seed, key, self._number, lengths)

    def _count(self, cache: Cache, counter: str) -> None:
        value = cache.get(counter)
        if value is None:
            self._begin_counter(cache, counter)
            return
        delta = self._random.choice((1, 1, -1, 1_000, -(2**20)))
        self._say("counts", key=counter, value=value + delta)
        cache.incr(counter, delta)

    def _begin_counter(self, cache: Cache, counter: str) -> None:
        self._number += 1
        value = counted_from(self._play.seed, counter, self._number)
        self._say("counts", key=counter, value=value)
        cache.set(counter, value)

    def _checkpoint(self) -> None:
        path = self._folder / FILE
        with closing(oxlite.connect(path, profile="cache", isolation_level=None)) as connection:
            mode = self._random.choice(_MODES)
            connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
