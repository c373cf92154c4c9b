"""What a cache does in passing: it keeps its limit, and deletes what has expired.

Invariants:
- The pages in use stay within the limit, and little more: what has no room is not written.
- Nothing is deleted for having expired that somebody has set meanwhile.
"""

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from oxlite import sqlite3
from oxlite.cache import store
from oxlite.cache.access import Access, milliseconds
from oxlite.cache.entry import Codec
from oxlite.cache.eviction import (
    LARGE_SAMPLE_SIZE,
    LOOKED_AT,
    SAMPLE_SIZE,
    Budget,
    anywhere,
    victims,
)
from oxlite.cache.place import Place
from oxlite.cache.steps import Read, Steps, Write

__all__ = ["FIRST", "Upkeep", "after"]

FIRST: Final = -(2**63)
"""The number of the first key that there may be."""

_LAST: Final = 2**63 - 1

_KEPT_STALE_MS: Final = 600_000
_SECONDS_AT_MOST: Final = 0.005
"""For so long one write evicts at the most."""

_SMALL: Final = 512
"""Bytes of entries of which many are looked at at once."""

_HIDDEN_AT_ONCE: Final = 16


class Upkeep(Access):
    """See the module.

    Args:
        place: The file.
        codec: Makes bytes of values.
        size: The limit of the pages in use, in bytes; ``None``: there is none.
    """

    def __init__(self, place: Place, codec: Codec, size: int | None) -> None:
        super().__init__(place, codec)
        self._size = size
        self._evictions = 0
        self._budget = Budget(size)
        self._pruned_to = FIRST

    def tidy(self) -> Steps[None]:
        """After a write, do a part of what keeps the limit, and of what prunes."""
        budget = self._budget
        try:
            if budget.must_measure():
                rows = yield Read(store.SIZE)
                budget.measured(rows[0][0])
            if due := budget.due():
                yield from self._evict(due)
            if budget.must_prune():
                until = milliseconds() - _KEPT_STALE_MS
                count, begin = yield from self._pruned(self._pruned_to, until, LOOKED_AT)
                budget.pruned(count)
                self._pruned_to = FIRST if begin is None else begin
            if self.hidden:
                yield from self._delete_hidden()
        except (sqlite3.Error, OSError) as error:
            yield from self._survive(error, store.SIZE, ())

    def _has_room(self, cost: int, seconds: float = _SECONDS_AT_MOST) -> Steps[bool]:
        """Before a write, have go what must for it; whether there is room then."""
        budget = self._budget
        if budget.has_room(cost):
            return True
        try:
            ends = time.monotonic() + seconds
            while True:
                rows = yield Read(store.SIZE)
                budget.measured(rows[0][0])
                if budget.has_room(cost):
                    return True
                if time.monotonic() >= ends:
                    return False
                yield from self._evict(budget.missing(cost))
        except (sqlite3.Error, OSError) as error:
            yield from self._survive(error, store.SIZE, ())
            return True

    def _evict(self, due: int) -> Steps[None]:
        """Have so much go, or what can in a short time."""
        budget, recency = self._budget, self.recency
        if recency is None:
            return
        ends, size = time.monotonic() + _SECONDS_AT_MOST, SAMPLE_SIZE
        while due > 0 and time.monotonic() < ends:
            sample = yield Read(store.SAMPLE, (anywhere(), size))
            if not sample:
                continue
            chosen, cost = victims(sample, recency, due, milliseconds())
            gone = yield Write(store.DELETE_IDS, (chosen, 0))
            self._evictions += len(gone)
            budget.freed(cost)
            due -= cost
            if due > 4 * cost and cost < _SMALL * len(gone):
                size = LARGE_SAMPLE_SIZE

    def _delete_hidden(self) -> Steps[None]:
        """Delete some of what is hidden, unless it is another row by now."""
        for number in self.hidden.some(_HIDDEN_AT_ONCE):
            yield from self._delete_if_hidden(number)

    def _delete_if_hidden(self, number: int) -> Steps[None]:
        rows = yield Read(store.ROW, (number,))
        if rows and self.hidden.hides(number, rows[0]):
            # Unless somebody has written another one just now.
            yield Write(store.DELETE_ROW, (number, *rows[0]))
        self.hidden.show(number)

    def _pruned(self, begin: int, until: int, count: int) -> Steps[tuple[int, int | None]]:
        """Delete what has expired of the next ones; how many, and where those after them begin."""
        rows = yield from self._read(store.EXPIRED, (begin, until, count))
        expired = [number for number, has_expired in rows if has_expired]
        gone: list[Any] | None = []
        if expired:
            gone = yield from self._write(store.DELETE_EXPIRED, (json.dumps(expired), until))
        return len(gone or ()), None if gone is None else after(rows, begin, count)


def after(rows: Sequence[Sequence[Any]], begin: int, count: int) -> int | None:
    """Where the entries after these begin; ``None`` where they were the last.

    Each begins behind the one before it, or a file whose pages are in another order, which SQLite
    does not notice, would be looked at for ever.

    Args:
        rows: Entries, with their number first.
        begin: The number where these were to begin.
        count: How many were asked for.
    """
    if len(rows) < count:
        return None
    last: int = rows[-1][0]
    return last + 1 if begin <= last < _LAST else None
