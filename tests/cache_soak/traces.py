"""How often a cache has what it is asked for, beside an exact LRU with room for as many entries."""

import itertools
import random
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from oxlite.cache import Cache

ZIPF, SCAN = "Zipf", "Zipf, with a scan in its midst"
TRACES: Final = (ZIPF, SCAN)
EXPONENT: Final = 0.9
_VALUE_BYTES: Final = 900
_KEYS_FOR_EACH_PLACE: Final = 5
_REQUESTS_FOR_EACH_PLACE: Final = 16
_ROW_BYTES: Final = 1_000


@dataclass
class Rates:
    """What came of a trace.

    Attributes:
        name: Of the trace.
        requests: How many keys were asked for.
        entries: How many were there in the end.
        share: Of the requests, how many found what they asked for.
        exact_share: The same of an exact LRU.
    """

    name: str
    requests: int
    entries: int
    share: float
    exact_share: float


def compared(folder: Path, name: str, limit_bytes: int, seed: int) -> Rates:
    """Play a trace on a cache and on an exact LRU."""
    with Cache(folder / f"{TRACES.index(name)}.db", size=limit_bytes) as cache:
        value = random.Random(seed).randbytes(_VALUE_BYTES)
        hits = requests = 0
        for key in _trace(name, limit_bytes, seed):
            requests += 1
            if cache.get(key) is None:
                cache.set(key, value)
            else:
                hits += 1
        entries = len(cache)
    kept: OrderedDict[str, None] = OrderedDict()
    exact_hits = 0
    for key in _trace(name, limit_bytes, seed):
        if key in kept:
            kept.move_to_end(key)
            exact_hits += 1
        else:
            kept[key] = None
            if len(kept) > entries:
                kept.popitem(last=False)
    return Rates(name, requests, entries, hits / requests, exact_hits / requests)


def _trace(name: str, limit_bytes: int, seed: int) -> Iterator[str]:
    places = limit_bytes // _ROW_BYTES
    count, generator = places * _KEYS_FOR_EACH_PLACE, random.Random(seed)
    weights = list(itertools.accumulate(1 / (n + 1) ** EXPONENT for n in range(count)))
    requests = places * _REQUESTS_FOR_EACH_PLACE
    for number in range(requests):
        if name == SCAN and number == requests // 2:
            # Each key once, as many as there is room for.
            yield from (f"scan {n}" for n in range(places))
        [drawn] = generator.choices(range(count), cum_weights=weights)
        yield f"key {drawn}"
