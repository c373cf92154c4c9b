"""How a cache keeps its limit: of a sample the least recently used goes, a little with each write.

Entries lie in the order of numbers that are evenly distributed, so those after a random one are a
random sample, and lie in the same pages.

Invariants:
- As long as the limit is exceeded, twice as much goes as is written, whatever is written; and what
  would exceed it by far is not written.
- The work for one write is bounded in time, so that no write is long.
"""

import json
import random
import time
from collections.abc import Sequence
from typing import Any, Final

from oxlite.cache.recency import NEVER, Recency

__all__ = [
    "LARGE_SAMPLE_SIZE",
    "LOOKED_AT",
    "SAMPLE_SIZE",
    "Budget",
    "anywhere",
    "cost_of",
    "victims",
]

SAMPLE_SIZE: Final = 64
LARGE_SAMPLE_SIZE: Final = 1024
"""So many are looked at, of which a quarter goes at the most; the more where they are small."""


_PARTS: Final = 512
_LEAST_STEP: Final = 16_384
_MOST_STEP: Final = 1 << 20
_SLICE: Final = 8_192
"""Nothing is evicted for less."""

_PAGE: Final = 4096
_LONGEST_LOCAL: Final = 4061
"""A longer row has pages of its own."""

_ROW_BYTES: Final = 24

LOOKED_AT: Final = 128
_LOOK_EACH, _LOOK_EACH_AT_MOST = 64, 512
"""After so many writes ``LOOKED_AT`` entries are looked at whether they have expired; after more,
up to the second number, where none had."""


def cost_of(length: int) -> int:
    """About how many bytes an entry takes whose key and value have so many."""
    row = length + _ROW_BYTES
    return row if row <= _LONGEST_LOCAL else (row // _PAGE + 1) * _PAGE


class Budget:
    """What was written, and what has to go for it.

    Args:
        size: The limit, in bytes; ``None``: nothing has to go.
    """

    def __init__(self, size: int | None) -> None:
        self._step = 0
        if size is not None:
            self._step = max(min(_LEAST_STEP, size // 64), min(size // _PARTS, _MOST_STEP))
        # Other processes write as well until this one looks again.
        self._begin = 0 if size is None else size - 4 * self._step
        self._end = 0 if size is None else size + size // 64
        self._used = 0
        self._written = self._owed = self._entries = 0
        self._look_each = _LOOK_EACH

    @property
    def slice_cost(self) -> int:
        """So much may be written before one looks again."""
        return max(self._step, _SLICE) if self._step else _MOST_STEP

    def note(self, cost: int, entries: int) -> bool:
        """So much was written; whether there is something to do for it."""
        self._written += cost
        self._used += cost
        self._entries += entries
        if self._step and self._used > self._begin:
            self._owed += 2 * cost
        return (
            self._entries >= self._look_each
            or self._owed >= _SLICE
            or (self._step > 0 and self._written >= self._step)
        )

    def must_measure(self) -> bool:
        """Whether it is time to see how large the cache is."""
        return self._step > 0 and self._written >= self._step

    def measured(self, used: int) -> None:
        """So many bytes are in use."""
        self._written = 0
        self._used = used
        over = used - self._begin
        # What others have written is to go as well, a part with each look.
        self._owed = 0 if over <= 0 else min(max(self._owed, over // 4), over)

    def due(self) -> int:
        """How much has to go now."""
        return self._owed if self._owed >= _SLICE else 0

    def has_room(self, cost: int) -> bool:
        """Whether so much may be written and the limit is kept, nearly."""
        return self._step == 0 or self._used + cost <= self._end

    def missing(self, cost: int) -> int:
        """How much has to go before so much can be written."""
        return max(0, self._used + cost - self._begin)

    def freed(self, cost: int) -> None:
        """So much has gone."""
        self._owed = max(0, self._owed - cost)
        self._used -= cost

    def must_prune(self) -> bool:
        """Whether it is time to look for what has expired."""
        if self._entries < self._look_each:
            return False
        self._entries = 0
        return True

    def pruned(self, count: int) -> None:
        """So many of those had expired."""
        self._look_each = _LOOK_EACH if count else min(2 * self._look_each, _LOOK_EACH_AT_MOST)


def anywhere() -> int:
    """The number at which a sample begins."""
    return random.getrandbits(64) - 2**63


def victims(
    sample: Sequence[Sequence[Any]], recency: Recency, due: int, now_ms: int
) -> tuple[str, int]:
    """Which entries of a sample go: what has expired, and what was used least recently.

    Args:
        sample: Numbers, instants of expiry, and lengths.
        recency: When they were used.
        due: How much is to go, in bytes.
        now_ms: The instant, in milliseconds.

    Returns:
        Their numbers, as JSON, and what they cost.
    """
    now = time.time_ns()
    age = recency.age
    by_age = sorted(
        (
            (2 * NEVER if 0 < expires_at <= now_ms else age(number, now), number, length)
            for number, expires_at, length in sample
        ),
        reverse=True,
    )
    chosen, cost = [], 0
    for _, number, length in by_age[: max(1, len(by_age) // 4)]:
        chosen.append(number)
        cost += cost_of(length)
        if cost >= due:
            break
    return json.dumps(chosen), cost
