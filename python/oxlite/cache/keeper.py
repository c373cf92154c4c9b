"""What a cache does, operation by operation, for threads and event loops alike.

Each operation is a generator of ``steps``.

Invariants:
- A value is what was set for that key, or there is none.
- ``add``, ``replace`` and ``incr`` are exact among all threads and processes.
- Whoever computes a value for all is known by a lock that ends with him.
"""

import asyncio
import contextlib
import fnmatch
import json
import math
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

from oxlite import sqlite3
from oxlite.cache import store
from oxlite.cache.access import SLICE, milliseconds
from oxlite.cache.entry import ABSENT, number_of
from oxlite.cache.eviction import anywhere, cost_of
from oxlite.cache.hidden import Row
from oxlite.cache.locks import lock_of_key, pauses
from oxlite.cache.recency import NEVER
from oxlite.cache.statistics import CacheStatistics
from oxlite.cache.steps import Compute, Many, Pause, Steps, Write
from oxlite.cache.upkeep import FIRST, Upkeep, after

__all__ = ["Keeper"]

_Entry = tuple[int, str, int, bytes | int]
"""Number, key, expiry and value, as they are written."""

_FOR_EVER: Final = 0
_LATEST: Final = 2**47
"""An expiry after it is never: the year 6429."""

_SLICE_COST: Final = 1 << 20
_NESTED_SECONDS: Final = 1.0
_TRIES_AT_MOST: Final = 100
_OLDEST_OF: Final = 1_000
_NUMBER_COST: Final = 8
_MANY_SECONDS: Final = 2.0
"""For so long ``set_many`` waits for what has to go before a slice of it."""

_computing: ContextVar[frozenset[tuple[str, int, int]]] = ContextVar(
    "computing", default=frozenset()
)
"""Which keys, of which files, are being computed here, and by which task or thread."""


def _expiry(timeout: float | None) -> int | None:
    """The instant after so many seconds; ``None`` if it has passed already.

    Raises:
        TypeError: It is no number.
        ValueError: It is no number of seconds (NaN).
    """
    if timeout is None:
        return _FOR_EVER
    if timeout <= 0:
        return None
    if math.isnan(timeout):
        raise ValueError("a timeout is a number of seconds, or None, not NaN")
    at = milliseconds() + max(1, round(min(timeout, 1e12) * 1000))
    return at if at < _LATEST else _FOR_EVER


class Keeper(Upkeep):
    """Keeps keys and values in a file; see the module."""

    # One key.

    def get(self, key: str) -> Steps[Any]:
        """Its value, or ``ABSENT``."""
        return self.found(key, (yield from self._row(key)))

    def found(self, key: str, row: Row | None) -> Any:  # noqa: ANN401
        """The value of a row, which counts as asked for; ``ABSENT`` if it has none."""
        value = ABSENT if row is None else self._live(key, row)
        if value is ABSENT:
            self.misses += 1
        else:
            self.hits += 1
            self.note(number_of(key))
        return value

    def has(self, key: str) -> Steps[bool]:
        """Whether it is there."""
        return self.found(key, (yield from self._row(key))) is not ABSENT

    def ttl(self, key: str) -> Steps[float | None]:
        """For how many seconds it is there."""
        row = yield from self._row(key)
        if row is None or self._live(key, row) is ABSENT:
            return None
        return (row[1] - milliseconds()) / 1000 if row[1] else float("inf")

    def set(self, key: str, value: Any, timeout: float | None) -> Steps[bool]:  # noqa: ANN401
        """Set it; whether it could be."""
        return (yield from self.set_row(key, self.row_of(key, value, timeout)))

    def set_row(self, key: str, row: _Entry | None) -> Steps[bool]:
        """Set it to what ``row_of`` has made; whether it could be."""
        if row is None:
            return (yield from self._deleted(key)) is not None
        return (yield from self._put(store.SET, row)) is not None

    def row_of(self, key: str, value: Any, timeout: float | None) -> _Entry | None:  # noqa: ANN401
        """What is written to set it; ``None`` if it has expired by then."""
        expires_at = _expiry(timeout)
        if expires_at is None:
            return None
        return number_of(key), key, expires_at, self.codec.encoded(key, value, expires_at)

    def cost_of_now(self, row: _Entry) -> int:
        """What it costs to write it; 0 if something else is to be done before."""
        cost = cost_of(_length(row))
        is_free = (
            not self.hidden.rows and self._budget.has_room(cost) and not self._is_too_large(row[3])
        )
        return cost if is_free else 0

    def is_due(self, cost: int) -> bool:
        """Note that so much was written for one entry; whether to tidy."""
        return self._budget.note(cost, 1)

    def could_not_set(self, error: Exception, row: _Entry) -> Steps[bool]:
        """After that error it could not be set."""
        yield from self._survive(error, store.SET, row)
        yield from self._hide([row[0]])
        return False

    def add(self, key: str, value: Any, timeout: float | None) -> Steps[bool]:  # noqa: ANN401
        """Set it if it is not there; whether that was so."""
        expires_at = _expiry(timeout)
        if expires_at is None:
            return not (yield from self.has(key))
        number = number_of(key)
        encoded = self.codec.encoded(key, value, expires_at)
        given = (number, key, expires_at, encoded)
        for _ in range(_TRIES_AT_MOST):
            rows = yield from self._put(store.ADD, (*given, milliseconds()))
            if rows is None or rows:
                return bool(rows)
            rows = yield from self._read(store.ROW, (number,))
            if not rows:
                continue
            row = rows[0]
            if not self.hidden.hides(number, row) and self._live(key, row) is not ABSENT:
                return False
            # It has a value that nobody can read, or that is not to be seen.
            if (yield from self._put(store.SWAP, (*given, *row))):
                return True
        return False

    def replace(self, key: str, value: Any, timeout: float | None) -> Steps[bool]:  # noqa: ANN401
        """Set it if it is there; whether that was so."""
        expires_at = _expiry(timeout)
        if not (yield from self.has(key)):
            return False
        if expires_at is None:
            return bool((yield from self._deleted(key)))
        encoded = self.codec.encoded(key, value, expires_at)
        given = (number_of(key), key, expires_at, encoded, milliseconds())
        return bool((yield from self._put(store.REPLACE, given)))

    def touch(self, key: str, timeout: float | None) -> Steps[bool]:
        """Give it another expiry; whether it is there."""
        expires_at = _expiry(timeout)
        if expires_at is None:
            return (yield from self.delete(key))
        number = number_of(key)
        for _ in range(_TRIES_AT_MOST):
            row = yield from self._row(key)
            if row is None or self._live(key, row) is ABSENT:
                return False
            again = self.codec.resealed(key, row[0], row[1], expires_at)
            rows = yield from self._write(store.SWAP, (number, key, expires_at, again, *row))
            if rows is None or rows:
                return bool(rows)
        return False

    def incr(self, key: str, delta: int) -> Steps[int]:
        """Add to it."""
        if type(delta) is not int:
            raise TypeError(f"delta is an int, not {type(delta).__name__}")
        number = number_of(key)
        statement = (store.INCR, (number, key, delta, milliseconds()))
        is_possible = -(2**63) <= delta < 2**63
        for _ in range(_TRIES_AT_MOST):
            try:
                if self.hidden:
                    yield from self._delete_if_hidden(number)
                rows = (yield Write(*statement)) if is_possible else []
            except (sqlite3.Error, OSError) as error:
                yield from self._survive(error, *statement)
                raise
            if rows:
                self.note(number)
                if self.is_due(_NUMBER_COST):
                    yield from self.tidy()
                total: int = rows[0][0]
                return total
            row = yield from self._row(key)
            value = ABSENT if row is None else self._live(key, row)
            if value is ABSENT:
                raise ValueError(f"{key!r} is not there")
            if type(value) is not int or not -(2**63) <= value + delta < 2**63:
                break
            # Somebody has set it just now.
        raise TypeError(f"the value of {key!r}, or the sum, is no whole number of 64 bits")

    def delete(self, key: str) -> Steps[bool]:
        """Delete it; whether it was there."""
        return bool((yield from self._deleted(key)))

    # Several keys.

    def get_many(self, keys: Iterable[str]) -> Steps[dict[str, Any]]:
        """The values of those that have one."""
        numbers = {key: number_of(key) for key in keys}
        found: dict[str, Any] = {}
        every = list(numbers)
        for begin in range(0, len(every), SLICE):
            part = every[begin : begin + SLICE]
            asked = [numbers[key] for key in part]
            rows = yield from self._read(store.GET_MANY, (json.dumps(asked),))
            by_number = {row[0]: row for row in rows}
            for key in part:
                row = by_number.get(numbers[key])
                if (
                    row is not None
                    and row[1] == key.encode(errors="replace")
                    and not (self.hidden and self.hidden.hides(numbers[key], row[2:]))
                ):
                    value = self._live(key, row[2:])
                    if value is not ABSENT:
                        found[key] = value
                        self.note(numbers[key])
        self.hits += len(found)
        self.misses += len(every) - len(found)
        return found

    def set_many(self, values: Mapping[str, Any], timeout: float | None) -> Steps[list[str]]:
        """Set them; those that could not be."""
        expires_at = _expiry(timeout)
        if expires_at is None:
            yield from self.delete_many(values)
            return []
        refused: list[str] = []
        sets: list[Row] = []
        cost, most = 0, min(_SLICE_COST, self._budget.slice_cost)
        has_failed = False
        for key, value in values.items():
            number = number_of(key)
            encoded = self.codec.encoded(key, value, expires_at)
            if has_failed or self._is_too_large(encoded):
                refused.append(key)
                continue
            sets.append((number, key, expires_at, encoded))
            cost += cost_of(_length(sets[-1]))
            if len(sets) >= SLICE or cost >= most:
                failed = yield from self._put_many(sets, cost)
                # The others would wait as long, one after the other.
                has_failed = bool(failed)
                refused += failed
                sets, cost = [], 0
        if sets:
            failed = yield from self._put_many(sets, cost)
            has_failed = has_failed or bool(failed)
            refused += failed
        if has_failed:
            yield from self._hide([number_of(key) for key in refused])
        elif refused:
            yield from self.delete_many(refused)
        return refused

    def delete_many(self, keys: Iterable[str]) -> Steps[int]:
        """Delete them; how many were there."""
        numbers = [number_of(key) for key in keys]
        deleted = 0
        for begin in range(0, len(numbers), SLICE):
            part = numbers[begin : begin + SLICE]
            live = yield from self._deleted_numbers(part)
            if live is None:
                # The others would wait as long, one after the other.
                yield from self._hide(numbers[begin:])
                break
            deleted += sum(live)
        return deleted

    def keys_from(self, begin: int, pattern: str) -> Steps[tuple[list[str], int | None]]:
        """Some keys of a pattern, and where the next ones begin; ``None`` after the last."""
        matches = re.compile(fnmatch.translate(pattern)).match
        rows = yield from self._read(store.KEYS, (begin, milliseconds(), SLICE))
        keys = [
            key
            for number, raw, is_live in rows
            if is_live and (key := _text(raw)) is not None and matches(key)
        ]
        return keys, after(rows, begin, SLICE)

    def delete_pattern(self, pattern: str) -> Steps[int]:
        """Delete those of a pattern; how many were there."""
        deleted = 0
        begin: int | None = FIRST
        while begin is not None:
            keys, begin = yield from self.keys_from(begin, pattern)
            deleted += yield from self.delete_many(keys)
        return deleted

    def count(self) -> Steps[int]:
        """How many there are."""
        rows = yield from self._read(store.COUNT, (milliseconds(),))
        return rows[0][0] if rows else 0

    def clear(self) -> Steps[bool]:
        """Delete all; whether that was possible."""
        rows = yield from self._write(store.CLEAR, ())
        if rows is not None:
            self.hidden.clear()
        return rows is not None

    # Computed once.

    def get_or_set(
        self,
        key: str,
        default: Any,  # noqa: ANN401
        timeout: float | None,
        stale_for: float,
        wait_at_most: float,
    ) -> Steps[Any]:
        """Its value; that of the function where it has none, which one caller computes."""
        row = yield from self._row(key)
        found = self.found(key, row)
        if found is not ABSENT:
            return found
        here = (self.place.path, number_of(key), _me())
        # What a task or thread computes that was begun in the midst is another one's.
        outer = frozenset(one for one in _computing.get() if one[2] == here[2])
        if here in outer:
            # It is computing this very key, and asks for it.
            return (yield from self._computed(key, default, timeout))
        lock = lock_of_key(*here[:2])
        # Two that compute for each other would wait for ever.
        left = pauses(min(wait_at_most, _NESTED_SECONDS) if outer else wait_at_most)
        try:
            while not lock.try_acquire():
                if row is not None and stale_for > 0:
                    found = self._stale(key, row, stale_for)
                    if found is not ABSENT:
                        return found
                pause = next(left, None)
                if pause is None:
                    break
                yield Pause(pause)
                # Whoever computes has written it, and has the lock for a moment longer.
                row = yield from self._row(key)
                found = ABSENT if row is None else self._live(key, row)
                if found is not ABSENT:
                    return found
        except OSError as error:
            self._fail(error)
        token = _computing.set(outer | {here})
        try:
            found = self.found(key, (yield from self._row(key)))
            if found is not ABSENT:
                return found
            return (yield from self._computed(key, default, timeout))
        finally:
            lock.release()
            # Where a loop was closed in the midst, it ends in another context.
            with contextlib.suppress(ValueError):
                _computing.reset(token)

    # The whole.

    def prune(self) -> Steps[int]:
        """Delete what has expired; how many that were."""
        begin: int | None = FIRST
        deleted, until = 0, milliseconds()
        while begin is not None:
            count, begin = yield from self._pruned(begin, until, SLICE)
            deleted += count
        return deleted

    def statistics(self) -> Steps[CacheStatistics]:
        """What it holds, and what was done with it."""
        entries = yield from self.count()
        rows = yield from self._read(store.SIZE, ())
        sample = yield from self._read(store.SAMPLE, (anywhere(), _OLDEST_OF))
        oldest = 0.0
        if (recency := self.recency) is not None and sample:
            now = time.time_ns()
            ages = [age for row in sample if (age := recency.age(row[0], now)) < NEVER]
            oldest = max(ages, default=0) / 1e9
        return CacheStatistics(
            entries=entries,
            used_bytes=rows[0][0] if rows else 0,
            size_bytes=self._size,
            oldest_seconds=oldest,
            hits=self.hits,
            misses=self.misses,
            evictions=self._evictions,
            failures=self.failures,
            resets=self.place.resets,
        )

    # How it is asked.

    def _live(self, key: str, row: Row) -> Any:  # noqa: ANN401
        value, expires_at = row
        if type(expires_at) is not int or 0 < expires_at <= milliseconds():
            return ABSENT
        return self.codec.decoded(key, value, expires_at)

    def _stale(self, key: str, row: Row, seconds: float) -> Any:  # noqa: ANN401
        value, expires_at = row
        if type(expires_at) is not int or milliseconds() - expires_at > 1000 * seconds:
            return ABSENT
        return self.codec.decoded(key, value, expires_at)

    def _computed(self, key: str, default: Any, timeout: float | None) -> Steps[Any]:  # noqa: ANN401
        value = (yield Compute(default)) if callable(default) else default
        yield from self.set(key, value, timeout)
        return value

    def _is_too_large(self, encoded: bytes | int) -> bool:
        limit = self._size
        return limit is not None and isinstance(encoded, bytes) and len(encoded) > limit // 4

    def _row(self, key: str) -> Steps[Row | None]:
        number = number_of(key)
        rows = yield from self._read(store.GET, (number, key))
        if not rows or (self.hidden and self.hidden.hides(number, rows[0])):
            return None
        row: Row = rows[0]
        return row

    def _deleted(self, key: str) -> Steps[bool | None]:
        """Delete it; whether it was there, ``None`` if it could not be deleted."""
        number = number_of(key)
        was_hidden = bool(self.hidden) and (yield from self._row(key)) is None
        rows = yield from self._write(store.DELETE, (number, key, milliseconds()))
        if rows is None:
            yield from self._hide([number])
            return None
        self.hidden.show(number)
        return bool(rows) and bool(rows[0][0]) and not was_hidden

    def _put(self, sql: str, parameters: Sequence[Any]) -> Steps[list[Any] | None]:
        """Write a value; the rows that came back, ``None`` if it could not be written."""
        number, key, _, encoded = parameters[:4]
        cost = cost_of(_length(parameters))
        what = None
        if self._is_too_large(encoded):
            what = f"a value of {len(encoded):,} bytes is more than a quarter of its size"
        elif not (self._budget.has_room(cost) or (yield from self._has_room(cost))):
            what = f"there is no room for {cost:,} bytes so soon"
        if what is not None:
            self.failures += 1
            self.place.say(what)
            if sql is not store.ADD:
                yield from self._deleted(key)
            return None
        if self.hidden.is_everything and (yield from self._write(store.CLEAR, ())) is not None:
            self.hidden.clear()
        # Before it is written, or somebody could take it for one that was never used.
        self.note(number)
        rows = yield from self._write(sql, parameters)
        if rows is None:
            if sql is not store.ADD:
                yield from self._hide([number])
        elif rows or sql is store.SET:
            if self.hidden:
                self.hidden.show(number)
            if self.is_due(cost) or self.hidden:
                yield from self.tidy()
        return rows

    def _put_many(self, sets: Sequence[Row], cost: int) -> Steps[list[str]]:
        """Write several; the keys that could not be written: none, or all."""
        is_done = yield from self._has_room(cost, _MANY_SECONDS)
        if is_done:
            try:
                yield Many(store.SET, sets)
            except (sqlite3.Error, OSError) as error:
                yield from self._survive(error, store.SET, sets[0])
                is_done = False
        else:
            self.failures += 1
            self.place.say(f"there is no room for {cost:,} bytes so soon")
        if not is_done:
            return [key for _, key, *_ in sets]
        for number, *_ in sets:
            self.note(number)
            self.hidden.show(number)
        if self._budget.note(cost, len(sets)) or self.hidden:
            yield from self.tidy()
        return []


def _text(raw: Any) -> str | None:  # noqa: ANN401
    try:
        return str(raw, "utf-8")
    except (TypeError, UnicodeDecodeError):
        return None


def _length(parameters: Sequence[Any]) -> int:
    key, value = parameters[1], parameters[3]
    length = len(key) if key.isascii() else len(key.encode(errors="replace"))
    return length + (len(value) if isinstance(value, bytes) else 8)


def _me() -> int:
    """This task, or else this thread."""
    with contextlib.suppress(RuntimeError):
        return id(asyncio.current_task())
    return threading.get_ident()
