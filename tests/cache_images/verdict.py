"""Opens an image as after a reboot, and uses the cache that is in it.

Invariants:
- Nothing of one image is left when the next is opened.
- Nothing waits without a limit: what takes longer hangs.
"""

import os
import random
import shutil
import signal
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, NamedTuple, Self

from tests.cache_images.history import COUNTERS, History
from tests.cache_images.workloads import FILE, Play
from tests.crash.disk import Content
from tests.faults.judge import scratch

from oxlite import sqlite3
from oxlite.cache import Cache

HANGS_AFTER_SECONDS: Final = 30.0
_TRIES: Final = 3
"""A call that finds out that the file is damaged may fail; one of these must not."""

_STALE_INDEX: Final = b"\xa5" * 32_768
_COUNTERS_BYTES: Final = 4096 * 8
_MAGIC: Final = b"oxlite cache, when entries were used, version 2\n".ljust(64, b"\0")
_MOST_READ, _MOST_SET, _MOST_ADDED = 60, 10, 4
"""So many keys are read alone, set anew and added at the most."""


class HangsError(Exception):
    """Something takes for ever."""


class Found(NamedTuple):
    """What came of an image."""

    wrong: tuple[str, ...]
    values: int
    """How many keys had one."""
    resets: int
    """How often the cache was emptied."""
    failures: int
    """How many calls have failed, so that the cache was looked at, or emptied."""
    raised: int
    """How often ``incr`` has raised what was wrong."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises where something takes longer."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise HangsError(f"it takes more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Opener:
    """A folder in which one image after the other is opened."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="oxlite-cache-images-", dir=scratch()))

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Removes the files."""
        shutil.rmtree(self.folder)

    def find(self, play: Play, history: History, content: Content, digest: bytes) -> Found:
        """What a cache with these files answers, and whether it can be used."""
        self._lay_out(play, content, digest)
        look = _Look(play, history, random.Random(digest))
        step = ""
        try:
            with limited(HANGS_AFTER_SECONDS), play.opened(self.folder) as cache:
                for done in look.steps(cache):
                    step = done
                statistics = cache.stats()
                look.resets, look.failures = statistics.resets, statistics.failures
        except Exception as error:
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            look.wrong.append(f"raised: {name}: {error} after {step or 'nothing'}")
        finally:
            self._clear()
        return look.found()

    def rows(self, content: Content) -> list[tuple[Any, Any, Any]]:
        """Keys, expiries and values as a plain SELECT finds them, where nobody compares a seal."""
        for name, found in content.items():
            (self.folder / name).write_bytes(found)
        try:
            with closing(sqlite3.connect(self.folder / FILE, timeout=0)) as connection:
                sql = "SELECT key, expires_at, value FROM oxlite_cache_entry"
                return connection.execute(sql).fetchall()
        except sqlite3.Error:
            return []
        finally:
            self._clear()

    def _lay_out(self, play: Play, content: Content, digest: bytes) -> None:
        for name, found in content.items():
            (self.folder / name).write_bytes(found)
            if name.endswith("-wal") and digest[0] % 8 == 0:
                # What a file of shared memory held, nobody may believe after a reboot.
                (self.folder / f"{FILE}-shm").write_bytes(_STALE_INDEX)
        # It was synced before there was a database; the instants in it are anything, and the number
        # of the boot is that of another one.
        instants = random.Random(digest).randbytes(_COUNTERS_BYTES) if digest[1] % 3 else b""
        (self.folder / f"{FILE}-used").write_bytes(_MAGIC + instants)

    def _clear(self) -> None:
        for name in os.listdir(self.folder):  # noqa: PTH208 - a hundred thousand times
            os.unlink(self.folder / name)  # noqa: PTH108


class _Look:
    """Looks at a cache, and notes what is wrong."""

    def __init__(self, play: Play, history: History, generator: random.Random) -> None:
        self._history = history
        self._random = generator
        self._keys = [*play.keys, *COUNTERS]
        self._own: dict[str, set[int]] = defaultdict(set)
        """Numbers that were set here."""
        self.wrong: list[str] = []
        self.values = self.resets = self.failures = self.raised = 0

    def found(self) -> Found:
        """What came of it."""
        return Found(tuple(self.wrong), self.values, self.resets, self.failures, self.raised)

    def steps(self, cache: Cache) -> Iterator[str]:
        """Do one thing after the other, and say what."""
        # What is done first finds a damage first.
        looks = [self._get, self._get_many, self._list, self._incr]
        self._random.shuffle(looks)
        for look in looks:
            look(cache)
            yield look.__name__
        self._add(cache)
        yield "add"
        for key in self._random.sample(self._keys, 5):
            self._random.choice((cache.touch, cache.ttl))(key)
        self._delete(cache)
        cache.prune()
        yield "touch, ttl, delete, prune"
        self._get(cache)
        yield "get again"
        self._set(cache)
        self._list(cache)
        yield "set"

    def _see(self, key: str, value: Any) -> None:  # noqa: ANN401 - of all kinds
        if type(value) is int and value in self._own[key]:
            return
        if what := self._history.wrong(key, value):
            self.wrong.append(what)

    def _get(self, cache: Cache) -> None:
        for key in self._random.sample(self._keys, min(_MOST_READ, len(self._keys))):
            value = cache.get(key)
            if value is not None:
                self.values += 1
                self._see(key, value)

    def _get_many(self, cache: Cache) -> None:
        for key, value in cache.get_many(self._keys).items():
            self._see(key, value)

    def _list(self, cache: Cache) -> None:
        # Keys have no seal, and may be listed though they have no value, or twice.
        for key in cache:
            if not isinstance(key, str):
                self.wrong.append(f"no key: {key!r}")
        # Of a damaged file it may be another number; it must come to an end.
        len(cache)

    def _incr(self, cache: Cache) -> None:
        for counter in COUNTERS:
            try:
                total = cache.incr(counter)
            except (ValueError, TypeError):
                continue
            except sqlite3.DatabaseError:
                # It is documented: a sum cannot be a miss.
                self.raised += 1
                continue
            self._see(counter, total - 1)
            self._own[counter].add(total)

    def _add(self, cache: Cache) -> None:
        for key in self._random.sample(self._keys, _MOST_ADDED):
            number = self._new(key)
            for _ in range(_TRIES):
                is_added = cache.add(key, number)
                value = cache.get(key)
                if value is not None:
                    break
            if value is None:
                self.wrong.append(f"unusable: {key!r} cannot be added, and is not there")
            elif is_added and value != number:
                self.wrong.append(f"stale: {key!r} was added, and has {str(value)[:60]!r}")
            else:
                self._see(key, value)

    def _delete(self, cache: Cache) -> None:
        for key in self._random.sample(self._keys, _MOST_ADDED):
            cache.delete(key)
            if (value := cache.get(key)) is not None:
                self.wrong.append(f"stale: {key!r} was deleted, and has {str(value)[:60]!r}")

    def _set(self, cache: Cache) -> None:
        latest = {}
        for key in self._random.sample(self._keys, min(_MOST_SET, len(self._keys))):
            latest[key] = number = self._new(key)
            value = None
            for _ in range(_TRIES):
                if cache.set(key, number) and (value := cache.get(key)) is not None:
                    break
            if value is None:
                self.wrong.append(f"unusable: {key!r} cannot be set: {cache.stats()}")
        for key, number in latest.items():
            value = cache.get(key)
            if value not in (number, None):
                self.wrong.append(f"stale: {key!r} was set, and has {str(value)[:60]!r}")

    def _new(self, key: str) -> int:
        """A number that this key has from now on among those that it had."""
        number = self._random.getrandbits(62)
        self._own[key].add(number)
        return number
