"""The cache for asyncio: the same file and the same operations, awaited.

Invariants:
- The event loop never waits for the file: native threads read and write.
- It may be used from several event loops. A forked child opens connections of its own.
"""

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import wraps
from os import PathLike
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from oxlite import sqlite3
from oxlite._native import cache_number
from oxlite.aio import Database
from oxlite.cache import cache as blocking
from oxlite.cache import locks, store
from oxlite.cache.entry import ABSENT, Serializer, checked, number_of
from oxlite.cache.memoized import key_of, prefix_of
from oxlite.cache.place import harden
from oxlite.cache.recency import Recency
from oxlite.cache.statistics import CacheStatistics
from oxlite.cache.steps import Blocking, Compute, Many, Pause, Read, Step, Steps, Write
from oxlite.cache.upkeep import FIRST
from oxlite.connection import ProfileName

__all__ = ["Cache", "NamedLock"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


class NamedLock(locks.NamedLock):
    """A lock with a name, to be used in ``async with``."""

    async def __aenter__(self) -> Self:
        """Wait for it.

        Raises:
            TimeoutError: It was not free in time.
        """
        for pause in locks.pauses(self.timeout):
            if self.try_acquire():
                return self
            await asyncio.sleep(pause)
        if not self.try_acquire():
            raise self.not_free()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let go of it."""
        self.release()


class Cache:
    """Keys and values in a file, for the tasks of event loops.

    >>> async with Cache("cache.db", size=256 << 20) as cache:
    ...     await cache.set("greeting", {"text": "hello"}, timeout=60)
    ...     await cache.get("greeting")

    Arguments, results and errors are those of ``oxlite.cache.Cache``; the file is opened when it is
    first needed, or by entering it.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        size: int | None = blocking.DEFAULT_SIZE_BYTES,
        *,
        serializer: Serializer = "json",
        secret_key: str | bytes | Sequence[str | bytes] = (),
        compress_above: int | None = 16_384,
        profile: ProfileName = "cache",
        lock_timeout: float = 5.0,
    ) -> None:
        self._profile: ProfileName = profile
        self._lock_timeout = lock_timeout
        self._size = size
        self._keeper = blocking.keeper_of(
            path, size, serializer, secret_key, compress_above, profile, lock_timeout, True
        )
        self._lock = threading.Lock()
        self._file: tuple[int, int] | None = None
        self._database: Database | None = None
        self._look_at = self._look_to_write_at = self._open_at = 0.0
        self._why: Exception | None = None
        self._repairs = 0
        self._is_closed = False
        self._closing: set[asyncio.Future[None]] = set()

    async def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """See ``oxlite.cache.Cache``, as for the rest."""
        database, keeper = self._database, self._keeper
        if database is None or time.monotonic() >= self._look_at or keeper.hidden.rows:
            return await self._slowly(key, default)
        number = number_of(key)
        try:
            rows = await database.query(store.GET, (number, key))
        except sqlite3.Error:
            return await self._slowly(key, default)
        found = keeper.found(key, rows[0] if rows else None)
        return default if found is ABSENT else found

    async def _slowly(self, key: str, default: Any) -> Any:  # noqa: ANN401
        found = await self._run(self._keeper.get(checked(key)))
        return default if found is ABSENT else found

    async def set(self, key: str, value: Any, timeout: float | None = None) -> bool:  # noqa: ANN401
        """See there."""
        return await self._run(self._keeper.set(key, value, timeout))

    async def add(self, key: str, value: Any, timeout: float | None = None) -> bool:  # noqa: ANN401
        """See there."""
        return await self._run(self._keeper.add(key, value, timeout))

    async def replace(self, key: str, value: Any, timeout: float | None = None) -> bool:  # noqa: ANN401
        """See there."""
        return await self._run(self._keeper.replace(key, value, timeout))

    async def delete(self, key: str) -> bool:
        """See there."""
        return await self._run(self._keeper.delete(key))

    async def touch(self, key: str, timeout: float | None = None) -> bool:
        """See there."""
        return await self._run(self._keeper.touch(key, timeout))

    async def ttl(self, key: str) -> float | None:
        """See there."""
        return await self._run(self._keeper.ttl(key))

    async def incr(self, key: str, delta: int = 1) -> int:
        """See there."""
        return await self._run(self._keeper.incr(key, delta))

    async def decr(self, key: str, delta: int = 1) -> int:
        """See there."""
        return await self._run(self._keeper.incr(key, -delta))

    async def contains(self, key: str) -> bool:
        """Whether a key is there."""
        return await self._run(self._keeper.has(key))

    async def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        """See there."""
        return await self._run(self._keeper.get_many(keys))

    async def set_many(self, values: Mapping[str, Any], timeout: float | None = None) -> list[str]:
        """See there."""
        return await self._run(self._keeper.set_many(values, timeout))

    async def delete_many(self, keys: Iterable[str]) -> int:
        """See there."""
        return await self._run(self._keeper.delete_many(keys))

    async def delete_pattern(self, pattern: str) -> int:
        """See there."""
        return await self._run(self._keeper.delete_pattern(pattern))

    async def keys(self, pattern: str = "*") -> AsyncIterator[str]:
        """See there."""
        begin: int | None = FIRST
        while begin is not None:
            keys, begin = await self._run(self._keeper.keys_from(begin, pattern))
            for key in keys:
                yield key

    def __aiter__(self) -> AsyncIterator[str]:
        """All keys."""
        return self.keys()

    async def count(self) -> int:
        """How many keys there are. It looks at all of the file."""
        return await self._run(self._keeper.count())

    async def clear(self) -> bool:
        """See there."""
        return await self._run(self._keeper.clear())

    async def get_or_set(
        self,
        key: str,
        default: Any,  # noqa: ANN401
        timeout: float | None = None,
        *,
        stale_for: float = 0.0,
        wait_at_most: float = 30.0,
    ) -> Any:  # noqa: ANN401
        """See there; what the function returns is awaited if it can be."""
        return await self._run(
            self._keeper.get_or_set(key, default, timeout, stale_for, wait_at_most)
        )

    def memoize(
        self, timeout: float | None = None, *, prefix: str | None = None, stale_for: float = 0.0
    ) -> Callable[[Callable[_P, Awaitable[_R]]], Callable[_P, Awaitable[_R]]]:
        """Decorate a coroutine function; see there."""

        def decorate(function: Callable[_P, Awaitable[_R]]) -> Callable[_P, Awaitable[_R]]:
            name = prefix_of(function, prefix, is_async=True)

            @wraps(function)
            async def memoized(*args: _P.args, **kwargs: _P.kwargs) -> _R:
                key = key_of(name, args, kwargs)
                found: _R = await self.get_or_set(
                    key, lambda: function(*args, **kwargs), timeout, stale_for=stale_for
                )
                return found

            return memoized

        return decorate

    def lock(self, name: str, timeout: float | None = None) -> NamedLock:
        """See there; to be used in ``async with``."""
        return NamedLock(self._keeper.place.path, cache_number(checked(name)), timeout)

    async def prune(self) -> int:
        """See there."""
        return await self._run(self._keeper.prune())

    async def stats(self) -> CacheStatistics:
        """See there."""
        return await self._run(self._keeper.statistics())

    async def close(self) -> None:
        """Close its connections. Whoever uses it afterwards is refused."""
        with self._lock:
            self._is_closed = True
            database, self._database = self._database, None
        if database is not None:
            await database.close()

    async def __aenter__(self) -> Self:
        """Open the file.

        Raises:
            oxlite.sqlite3.Error, OSError: It cannot be opened, or is no cache.
        """
        await self._reach(is_to_write=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    async def _run(self, steps: Steps[_T]) -> _T:
        """Do what an operation asks for, step by step; what it comes to."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._done(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            found: _T = end.value
            return found
        finally:
            # Where the task was cancelled, a lock is let go at once.
            steps.close()

    async def _done(self, step: Step) -> Any:  # noqa: ANN401
        match step:
            case Read(sql, parameters):
                await self._reach(is_to_write=False)
                return await self._current().query(sql, parameters)
            case Write(sql, parameters):
                await self._reach(is_to_write=True)
                return (await self._current().execute(sql, parameters)).rows
            case Many(sql, sets):
                await self._reach(is_to_write=True)
                return await self._current().executemany(sql, sets)
            case Blocking(function):
                return await asyncio.to_thread(function)
            case Compute(function):
                computed = function()
                return await computed if inspect.isawaitable(computed) else computed
            case Pause(seconds):
                return await asyncio.sleep(seconds)

    def _current(self) -> Database:
        database = self._database
        if database is None:
            raise self._why or sqlite3.ProgrammingError("Cannot operate on a closed cache.")
        return database

    async def _reach(self, is_to_write: bool) -> None:
        """Open the file, or open it anew where it was deleted or replaced."""
        now, repairs = time.monotonic(), self._keeper.place.repairs
        look_at = self._look_to_write_at if is_to_write else self._look_at
        if self._file is not None and now < look_at and repairs == self._repairs:
            return
        self._look_at = now + blocking.LOOK_SECONDS
        self._look_to_write_at = now + blocking.LOOK_TO_WRITE_SECONDS
        place = self._keeper.place
        is_there = self._file is not None and place.identity() == self._file
        if is_there and repairs == self._repairs:
            return
        if self._is_closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed cache.")
        if self._file is not None and not is_there:
            place.say("the file was deleted or replaced, and is empty again")
        elif now < self._open_at and self._why is not None:
            raise self._why
        try:
            file = await asyncio.to_thread(place.prepare)
        except (sqlite3.Error, OSError) as error:
            self._why, self._open_at = error, now + blocking.AGAIN_SECONDS
            # What was there is read no longer.
            self._use(None)
            raise
        self._use(file)

    def _use(self, file: tuple[int, int] | None) -> None:
        """From now on that file is used, or none; unless another task has seen to it."""
        place = self._keeper.place
        with self._lock:
            is_known = self._file == file and self._repairs == place.repairs
            if is_known or self._is_closed:
                return
            self._repairs = place.repairs
            before, self._database, self._file = self._database, None, file
            if file is not None:
                self._why = None
                if self._keeper.recency is None:
                    size = self._size or blocking.SMALLEST_SIZE_BYTES
                    self._keeper.use(Recency(place.path, size))
                self._database = Database(
                    place.path,
                    self._profile,
                    timeout=self._lock_timeout,
                    pragmas=dict(place.pragmas),
                    setup=harden,
                )
        if before is not None:
            # Others may be using it; it waits for them.
            closing = asyncio.ensure_future(before.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
