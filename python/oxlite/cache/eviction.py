"""How a cache keeps its limit: of a sample the least recently used goes, a little with each write.

Entries lie in the order of numbers that are evenly distributed, so those after a random one are a
random sample, and lie in the same pages.

Invariants:
- As long as the limit is exceeded, twice as much goes as is written, whatever is written.
- The work after one write is bounded by what it has written, so that no write is long.
"""

import json
import random
import time
from collections.abc import Sequence
from typing import Any, Final

from oxlite.cache.recency import NEVER, Recency

__all__ = ["LOOKED_AT", "SAMPLE_SIZE", "Budget", "anywhere", "cost_of", "victims"]

SAMPLE_SIZE: Final = 64
"""So many entries are looked at, of which a quarter goes at the most."""


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
_LOOK_EACH: Final = 64
"""After so many that were written, ``LOOKED_AT`` are looked at whether they have expired."""


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
        self._limit = 0 if size is None else size - 4 * self._step
        self._written = 0
        self._over = self._owed = 0
        self._entries = 0

    def note(self, cost: int, entries: int) -> bool:
        """So much was written; whether there is something to do for it."""
        self._written += cost
        self._entries += entries
        if self._over > 0:
            self._owed = min(self._owed, self._over) + 2 * cost
        return (
            self._entries >= _LOOK_EACH
            or self._owed >= _SLICE
            or (self._step > 0 and self._written >= self._step)
        )

    def must_measure(self, coming: int = 0) -> bool:
        """Whether it is time to see how large the cache is, before so much is written."""
        return self._step > 0 and self._written + coming >= self._step

    def measured(self, used: int, coming: int = 0) -> None:
        """So many bytes are in use."""
        self._written = 0
        self._over = used + coming - self._limit
        if self._over <= 0:
            self._owed = 0
        elif coming:
            self._owed = max(self._owed, self._over)

    def due(self, at_least: int = _SLICE) -> int:
        """How much has to go now."""
        return self._owed if self._owed >= at_least and self._over > 0 else 0

    def freed(self, cost: int) -> None:
        """So much has gone."""
        self._owed = max(0, self._owed - cost)
        self._over -= cost

    def must_prune(self) -> bool:
        """Whether it is time to look for what has expired."""
        if self._entries < _LOOK_EACH:
            return False
        self._entries = 0
        return True


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
