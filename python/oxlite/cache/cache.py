"""A cache in a file of its own, for all threads and processes of a machine.

Invariants:
- What is done, and in which order, is in ``keeper``; here it is done by calling.
- ``get`` and ``set`` are written out, since they are what a cache is asked for. A lookup is done by
  a reader that all threads share, and holds the GIL meanwhile. Whatever is not as it mostly is goes
  the way of all others.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar
from weakref import WeakSet

from oxlite import sqlite3
from oxlite._native import cache_number
from oxlite.cache import store
from oxlite.cache.entry import ABSENT, Codec, Serializer, checked
from oxlite.cache.keeper import Keeper
from oxlite.cache.locks import NamedLock
from oxlite.cache.memoized import key_of, prefix_of
from oxlite.cache.place import Place, harden
from oxlite.cache.recency import Recency
from oxlite.cache.statistics import CacheStatistics
from oxlite.cache.steps import Blocking, Compute, Many, Pause, Read, Step, Steps, Write
from oxlite.cache.upkeep import FIRST
from oxlite.connection import ProfileName, connect, only_read
from oxlite.database import Database

__all__ = [
    "AGAIN_SECONDS",
    "DEFAULT_SIZE_BYTES",
    "LOOK_SECONDS",
    "LOOK_TO_WRITE_SECONDS",
    "SMALLEST_SIZE_BYTES",
    "Cache",
    "keeper_of",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

SMALLEST_SIZE_BYTES: Final = 1 << 20
DEFAULT_SIZE_BYTES: Final = 256 << 20

LOOK_SECONDS: Final = 1.0
LOOK_TO_WRITE_SECONDS: Final = 0.02
"""So often one looks whether the file was deleted or replaced: to read, and to write."""

AGAIN_SECONDS: Final = 1.0
"""Nobody tries to open a file sooner again that could not be opened."""

_QUERY, _EXECUTE, _EXECUTEMANY = "query", "execute", "executemany"
_METHODS: Final = {Read: _QUERY, Write: _EXECUTE, Many: _EXECUTEMANY}
"""Which method of a ``Database`` does a step."""

_caches: "WeakSet[Cache]" = WeakSet()


def _begin_anew() -> None:
    for cache in list(_caches):
        cache._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def keeper_of(
    path: str | PathLike[str],
    size: int | None,
    serializer: Serializer,
    secret_key: str | bytes | Sequence[str | bytes],
    compress_above: int | None,
    profile: ProfileName,
    lock_timeout: float,
    lazily: bool,
) -> Keeper:
    """What a cache with these arguments does; see ``Cache``."""
    if size is not None and size < SMALLEST_SIZE_BYTES:
        raise ValueError(f"size is at least {SMALLEST_SIZE_BYTES:,} bytes, not {size:,}")
    given = (secret_key,) if isinstance(secret_key, str | bytes) else secret_key
    keys = [key.encode() if isinstance(key, str) else key for key in given]
    codec = Codec(serializer, keys, compress_above)
    place = Place(str(Path(path).resolve()), size, profile, lock_timeout, not lazily)
    return Keeper(place, codec, size)


class Cache:
    """Keys and values in a file.

    >>> cache = Cache("cache.db", size=256 << 20)
    >>> cache.set("greeting", {"text": "hello"}, timeout=60)
    True
    >>> cache.get("greeting")
    {'text': 'hello'}

    A file that cannot be read or written later on is a miss, and never an error; ``incr`` and
    ``decr`` alone raise what is wrong.

    Args:
        path: The file; made, with mode 0600, if it is not there. Beside it are two more, ``-used``
            and ``-locks``.
        size: The limit of the pages in use, in bytes; at least 1 MiB. What was used least recently
            goes first. ``None`` for a cache that never evicts.
        serializer: How other values than text, bytes and whole numbers are written: as JSON, or
            pickled, which needs a secret key.
        secret_key: With which values are sealed; of several, the first seals and all are accepted.
            A value that is not sealed by one of them is not there. Numbers have no seal.
        compress_above: Text, JSON and pickles of more bytes are compressed, if that makes them
            shorter; ``None``: none.
        profile: That of its connections. With ``cache`` nothing is synced: a power cut may take
            what was set lately, and the whole file. What it leaves is a value or a miss.
        lock_timeout: For how many seconds a call waits for a lock of the file.
        lazily: Open the file when it is first needed; then it is a miss if that is not possible.

    Raises:
        ValueError: A size that is too small, ``pickle`` without a key, or an empty key.
        oxlite.sqlite3.Error, OSError: The file cannot be opened, or is no cache.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        size: int | None = DEFAULT_SIZE_BYTES,
        *,
        serializer: Serializer = "json",
        secret_key: str | bytes | Sequence[str | bytes] = (),
        compress_above: int | None = 16_384,
        profile: ProfileName = "cache",
        lock_timeout: float = 5.0,
        lazily: bool = False,
    ) -> None:
        self._profile = profile
        self._lock_timeout = lock_timeout
        self._size = size
        self._keeper = keeper_of(
            path, size, serializer, secret_key, compress_above, profile, lock_timeout, lazily
        )
        self._decoded = self._keeper.codec.decoded
        self._is_closed = False
        self._begin()
        _caches.add(self)
        if not lazily:
            self._open()

    def _begin(self) -> None:
        """Begin with no connection, in this process."""
        self._lock = threading.Lock()
        # Held by the thread that opens the file; the others wait for it.
        self._opening = threading.Lock()
        self._file: tuple[int, int] | None = None
        self._database: Database | None = None
        self._reader: sqlite3.Connection | None = None
        self._look_at = self._look_to_write_at = 0.0
        self._repairs = 0
        self._open_at = 0.0
        self._why: Exception | None = None

    # One key.

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """The value of a key, or the default where it has none.

        Raises:
            TypeError: The key is no ``str``.
            ValueError: It is longer than 65,536 bytes, or no valid Unicode.
        """
        reader, keeper = self._reader, self._keeper
        if reader is None or time.monotonic() >= self._look_at or keeper.hidden.rows:
            return self._slowly(key, default)
        number = cache_number(key if type(key) is str and len(key) < 16_384 else checked(key))
        try:
            row = reader.execute(store.GET, (number, key)).fetchone()
        except sqlite3.Error:
            return self._slowly(key, default)
        if row is None:
            keeper.misses += 1
            return default
        value, expires_at = row
        if expires_at and not (type(expires_at) is int and expires_at > time.time() * 1000):
            keeper.misses += 1
            return default
        found = self._decoded(key, value, expires_at)
        if found is ABSENT:
            keeper.misses += 1
            return default
        keeper.hits += 1
        keeper.note(number)
        return found

    def _slowly(self, key: str, default: Any) -> Any:  # noqa: ANN401
        found = self._run(self._keeper.get(checked(key)))
        return default if found is ABSENT else found

    def set(self, key: str, value: Any, timeout: float | None = None) -> bool:  # noqa: ANN401
        """Set the value of a key.

        Args:
            key: Up to 65,536 bytes in UTF-8.
            value: What the serializer can write. JSON makes lists of tuples, and text of keys.
            timeout: For how many seconds; ``None`` for ever, 0 or less not at all.

        Returns:
            Whether it is there now. It is not if the file cannot be written, or if the value has
            more than a quarter of the size; then the key has none, as far as this process is
            concerned.

        Raises:
            TypeError, ValueError, pickle.PicklingError: The value cannot be written.
        """
        keeper, database = self._keeper, self._database
        row = keeper.row_of(key, value, timeout)
        cost = 0 if row is None else keeper.cost_of_now(row)
        if row is None or not cost or database is None or self._is_to_look(self._look_to_write_at):
            return self._run(keeper.set_row(key, row))
        # Before it is written, or somebody could take it for one that was never used.
        keeper.note(row[0])
        try:
            database.execute(store.SET, row)
        except sqlite3.ProgrammingError:  # another thread has opened the file anew
            return self._run(keeper.set_row(key, row))
        except (sqlite3.Error, OSError) as error:
            return self._run(keeper.could_not_set(error, row))
        if keeper.is_due(cost):
            self._run(keeper.tidy())
        return True

    def add(self, key: str, value: Any, timeout: float | None = None) -> bool:  # noqa: ANN401
        """Set the value of a key that has none, and say whether that was so. Raises as ``set``."""
        return self._run(self._keeper.add(key, value, timeout))

    def replace(self, key: str, value: Any, timeout: float | None = None) -> bool:  # noqa: ANN401
        """Set the value of a key that has one, and say whether that was so. Raises as ``set``."""
        return self._run(self._keeper.replace(key, value, timeout))

    def delete(self, key: str) -> bool:
        """Delete a key, and say whether it was there."""
        return self._run(self._keeper.delete(key))

    def touch(self, key: str, timeout: float | None = None) -> bool:
        """Give a key another expiry, and say whether it is there."""
        return self._run(self._keeper.touch(key, timeout))

    def ttl(self, key: str) -> float | None:
        """For how many seconds a key is there: ``inf`` for ever, ``None`` if it is not there."""
        return self._run(self._keeper.ttl(key))

    def incr(self, key: str, delta: int = 1) -> int:
        """Add to a whole number, atomically, and return the sum. Its expiry stays.

        Raises:
            ValueError: The key is not there.
            TypeError: Its value is no whole number of 64 bits, or the sum would be none.
            oxlite.sqlite3.Error, OSError: The file cannot be written. Nothing was added.
        """
        return self._run(self._keeper.incr(key, delta))

    def decr(self, key: str, delta: int = 1) -> int:
        """Subtract from a whole number; as ``incr``."""
        return self._run(self._keeper.incr(key, -delta))

    def __contains__(self, key: str) -> bool:
        """Whether a key is there."""
        return self._run(self._keeper.has(key))

    # Several keys.

    def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of those keys that have one, in the order of the keys."""
        return self._run(self._keeper.get_many(keys))

    def set_many(self, values: Mapping[str, Any], timeout: float | None = None) -> list[str]:
        """Set several, 500 in a transaction, and return the keys that could not be set.

        Raises as ``set``.
        """
        return self._run(self._keeper.set_many(values, timeout))

    def delete_many(self, keys: Iterable[str]) -> int:
        """Delete several, and say how many were there."""
        return self._run(self._keeper.delete_many(keys))

    def delete_pattern(self, pattern: str) -> int:
        """Delete all keys of a pattern with ``*``, ``?`` and ``[…]``, and say how many were there.

        It looks at every key; the pattern is one of ``fnmatch``'s.
        """
        return self._run(self._keeper.delete_pattern(pattern))

    def keys(self, pattern: str = "*") -> Iterator[str]:
        """All keys of a pattern, in no order; those that come or go meanwhile may be among them."""
        begin: int | None = FIRST
        while begin is not None:
            keys, begin = self._run(self._keeper.keys_from(begin, pattern))
            yield from keys

    def __iter__(self) -> Iterator[str]:
        """All keys."""
        return self.keys()

    def __len__(self) -> int:
        """How many keys there are. It looks at all of the file."""
        return self._run(self._keeper.count())

    def clear(self) -> bool:
        """Delete all, and say whether that was possible."""
        return self._run(self._keeper.clear())

    # Computed once.

    def get_or_set(
        self,
        key: str,
        default: Any,  # noqa: ANN401
        timeout: float | None = None,
        *,
        stale_for: float = 0.0,
        wait_at_most: float = 30.0,
    ) -> Any:  # noqa: ANN401
        """The value of a key; where it has none, that of the function, which one caller computes.

        Args:
            key: The key.
            default: The value, or a function without arguments that computes it.
            timeout: As for ``set``.
            stale_for: Who comes while another computes is given the value that has expired, if that
                was not more seconds ago; up to 600.
            wait_at_most: After so many seconds one computes it oneself; after one, where one is
                computing another.

        Raises:
            Exception: What the function raises. The next one who waits computes then.
        """
        return self._run(self._keeper.get_or_set(key, default, timeout, stale_for, wait_at_most))

    def memoize(
        self, timeout: float | None = None, *, prefix: str | None = None, stale_for: float = 0.0
    ) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
        """Decorate a function, so that it is called once for the same arguments.

        Args:
            timeout: As for ``set``.
            prefix: What its keys begin with; by default its module and name.
            stale_for: As for ``get_or_set``.

        The key is the prefix and ``repr`` of the arguments, which must tell them apart.

        Raises:
            TypeError: It is a coroutine function: ``oxlite.cache.aio.Cache`` has those.
        """

        def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
            name = prefix_of(function, prefix, is_async=False)

            @wraps(function)
            def memoized(*args: _P.args, **kwargs: _P.kwargs) -> _R:
                key = key_of(name, args, kwargs)
                found: _R = self.get_or_set(
                    key, lambda: function(*args, **kwargs), timeout, stale_for=stale_for
                )
                return found

            return memoized

        return decorate

    def lock(self, name: str, timeout: float | None = None) -> NamedLock:
        """A lock among all who use this file, to be used in ``with``; it ends with its holder.

        Args:
            name: Its name. It is no key.
            timeout: For how many seconds one waits; then ``TimeoutError`` is raised.
        """
        return NamedLock(self._keeper.place.path, cache_number(checked(name)), timeout)

    # The whole.

    def prune(self) -> int:
        """Delete what has expired, and say how many that were. It happens in passing as well."""
        return self._run(self._keeper.prune())

    def stats(self) -> CacheStatistics:
        """What the cache holds, and what this object has done with it."""
        return self._run(self._keeper.statistics())

    def close(self) -> None:
        """Close its connections. Whoever uses it afterwards is refused."""
        with self._lock:
            self._is_closed = True
            database, self._database = self._database, None
            reader, self._reader = self._reader, None
        _let_go(database, reader)

    def __enter__(self) -> Self:
        """The cache itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    # How it is done.

    def _run(self, steps: Steps[_T]) -> _T:
        """Do what an operation asks for, step by step; what it comes to."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._done(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            found: _T = end.value
            return found
        finally:
            # After Ctrl-C, say, a lock is let go at once.
            steps.close()

    def _done(self, step: Step) -> Any:  # noqa: ANN401
        method = _METHODS.get(type(step))
        if method is not None:
            return self._asked(method, step)
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        assert isinstance(step, Blocking | Compute)
        return step.function()

    def _asked(self, method: str, step: Step) -> Any:  # noqa: ANN401
        while True:
            self._reach(method is not _QUERY)
            database = self._database
            if database is None:
                raise self._why or sqlite3.ProgrammingError("Cannot operate on a closed cache.")
            try:
                answer = getattr(database, method)(*step)
            except sqlite3.ProgrammingError:
                # Another thread has opened the file anew, and closed this one.
                if database is self._database:
                    raise
            else:
                return answer.rows if method is _EXECUTE else answer

    def _is_to_look(self, look_at: float) -> bool:
        """Whether it is time to look whether the file is there, or another one."""
        is_mended = self._keeper.place.repairs != self._repairs
        return self._file is None or is_mended or time.monotonic() >= look_at

    def _reach(self, is_to_write: bool) -> None:
        """Open the file, or open it anew where it was deleted or replaced.

        Raises:
            oxlite.sqlite3.Error, OSError: It cannot be opened.
        """
        if not self._is_to_look(self._look_to_write_at if is_to_write else self._look_at):
            return
        now, repairs = time.monotonic(), self._keeper.place.repairs
        with self._opening:
            place = self._keeper.place
            if self._file is not None:
                self._look_at = now + LOOK_SECONDS
                self._look_to_write_at = now + LOOK_TO_WRITE_SECONDS
                if place.identity() == self._file:
                    if repairs == self._repairs:
                        return
                else:
                    place.say("the file was deleted or replaced, and is empty again")
            elif now < self._open_at and self._why is not None:
                raise self._why
            self._open()

    def _open(self) -> None:
        place = self._keeper.place
        if self._is_closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed cache.")
        database, reader, file = None, None, None
        try:
            database, reader, file = self._opened()
        except (sqlite3.Error, OSError) as error:
            self._why, self._open_at = error, time.monotonic() + AGAIN_SECONDS
            raise
        else:
            self._why, self._repairs = None, place.repairs
            if self._keeper.recency is None:
                self._keeper.use(Recency(place.path, self._size or SMALLEST_SIZE_BYTES))
        finally:
            # What was there is read no longer, also where there is nothing now.
            with self._lock:
                if self._is_closed:
                    file = None
                else:
                    database, self._database = self._database, database
                    reader, self._reader = self._reader, reader
                self._file = file
            _let_go(database, reader)

    def _opened(self) -> tuple[Database, sqlite3.Connection, tuple[int, int]]:
        """Connections to the file as it is now."""
        place = self._keeper.place
        while True:
            file = place.prepare()
            pragmas = dict(place.pragmas)
            options = {"timeout": self._lock_timeout, "pragmas": pragmas}
            database = Database(
                place.path,
                self._profile,
                setup=harden,
                **options,  # type: ignore[arg-type]
            )
            try:
                reader = connect(
                    place.path,
                    profile=self._profile,
                    check_same_thread=False,
                    isolation_level=None,
                    **options,  # type: ignore[arg-type]
                )
                harden(reader)
                only_read(reader)
            except BaseException:
                database.close()
                raise
            if file is not None and place.identity() == file:
                return database, reader, file
            _let_go(database, reader)


def _let_go(database: Database | None, reader: sqlite3.Connection | None) -> None:
    if reader is not None:
        reader.close()
    if database is not None:
        database.close()
