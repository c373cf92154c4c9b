"""A process that sets values: ``python -m tests.cache_soak.setter PATH SIZE SETS SEED``.

One in four is set alone, of 100 B to 64 KiB (the logarithm of the length is evenly distributed);
the others are short and set together. In the end it says, as JSON, how long the calls took.

Invariant: a duration is that of one call, the eviction that it does in passing included.
"""

import json
import math
import random
import sys
import time
from collections import Counter
from typing import Final

from oxlite.cache import Cache

TOGETHER: Final = 75
ALONE: Final = 25
SHORTEST_BYTES, LONGEST_BYTES = 100, 65_536
SHORT_BYTES: Final = (60, 300)
BUCKETS_OF_A_FACTOR_OF_TEN: Final = 100
"""Durations are counted in buckets, each 2.3 % longer than the one before."""

_KEYS_FOR_EACH_KIB: Final = 2
"""Many more keys than there is room for."""


def bucket_of(seconds: float) -> int:
    """The number of a duration's bucket."""
    return math.ceil(BUCKETS_OF_A_FACTOR_OF_TEN * math.log10(max(seconds, 1e-9)))


def seconds_of(bucket: int) -> float:
    """The longest duration of a bucket."""
    return float(10 ** (bucket / BUCKETS_OF_A_FACTOR_OF_TEN))


def main() -> None:
    """Set."""
    path, size, sets, seed = sys.argv[1], *map(int, sys.argv[2:5])
    generator = random.Random(seed)
    draw = generator.random
    content = generator.randbytes(2 * LONGEST_BYTES)
    keys = size // 1024 * _KEYS_FOR_EACH_KIB
    factor = math.log(LONGEST_BYTES / SHORTEST_BYTES)
    durations: Counter[int] = Counter()
    longest = longest_together = 0.0
    done = refused = written = 0
    with Cache(path, size=size) as cache:
        begun = time.perf_counter()
        while done < sets:
            for _ in range(ALONE):
                length = int(SHORTEST_BYTES * math.exp(factor * draw()))
                offset = int(draw() * LONGEST_BYTES)
                key, value = f"alone {int(draw() * keys)}", content[offset : offset + length]
                before = time.perf_counter()
                refused += not cache.set(key, value)
                seconds = time.perf_counter() - before
                durations[bucket_of(seconds)] += 1
                longest = max(longest, seconds)
                written += length
            values = {}
            for _ in range(TOGETHER):
                length = generator.randint(*SHORT_BYTES)
                offset = int(draw() * LONGEST_BYTES)
                values[f"together {int(draw() * keys * 4)}"] = content[offset : offset + length]
                written += length
            before = time.perf_counter()
            refused += len(cache.set_many(values))
            longest_together = max(longest_together, time.perf_counter() - before)
            done += ALONE + TOGETHER
        seconds = time.perf_counter() - begun
        evictions = cache.stats().evictions
    said = {
        "sets": done,
        "refused": refused,
        "bytes": written,
        "seconds": seconds,
        "longest": longest,
        "longest_together": longest_together,
        "durations": sorted(durations.items()),
        "evictions": evictions,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
