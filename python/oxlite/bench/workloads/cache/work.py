"""The work of ``cache``: its parameters, the keys, the values, and the traces.

A value is its number, a version, its own length and a filling that follows from these, so that
whoever reads one knows whether it is whole, and whose it is. The filling does not compress.

Invariant: everything follows from the seed, and is the same for every system.
"""

import itertools
import math
import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from oxlite.bench.harness.outcomes import digest
from oxlite.bench.parameters import SHORTEST_SECONDS, Parameters, parameter, seed
from oxlite.bench.scenarios.scenario import Scenario

FIXED, MIXED, LIMIT, ZIPF, SCAN = LOADS = ("fixed", "mixed", "limit", "zipf", "scan")
TRACES = (ZIPF, SCAN)

GET, MISS, GET_MANY, INCR, SET = OPERATIONS = ("get", "miss", "get_many", "incr", "set")
"""In this order: until the last one, all values are those that were there from the start."""

TIMES_AS_LONG = {SET: 3}
"""So many times the seconds of an operation: of sets one wants to know the 99.9th percentile."""

EXPIRES_SECONDS = 3600
"""Values are set as most are in caches, for some time; nothing expires while it is measured."""

FIXED_BYTES = 1024
SHORTEST_BYTES, LONGEST_BYTES = 100, 65_536
"""Of values of the mix, whose logarithms are evenly distributed."""

EXPONENT = 1.0
"""Of Zipf's distribution."""

COUNTERS = 1000
BATCH = 10
"""Keys of a ``get_many``."""

TRACE = 20_000
"""Requests in the trace of an operation, which begins anew until the time is over."""

PER_ENTRY = 10
"""So many times as many keys as the cache has room for are in the traces whose hits are counted,
and are drawn where its limit is kept."""

SCANNED_PART = 10
"""A scan asks once for one key for so many of those."""

SMALLEST_SIZE_BYTES = 256 << 20
"""The least limit of a cache from which nothing is to be evicted: the default of Oxlite's."""

_SPREAD = 997
_BLOCK = random.Random(0).randbytes(LONGEST_BYTES + _SPREAD)


@dataclass(frozen=True)
class CacheParameters(Parameters):
    """What shapes the work."""

    keys: int = parameter(10_000, "Keys that have a value", quick=500, least=50, most=1_000_000)
    processes: Sequence[int] = parameter(
        (1, 8, 16), "Processes at once", quick=(1,), least=1, most=256
    )
    tasks: Sequence[int] = parameter(
        (1, 8, 64), "Tasks of an event loop at once", quick=(8,), least=1, most=10_000
    )
    duration_seconds: float = parameter(
        1.0,
        "Seconds of each operation, three times as many of set",
        quick=0.1,
        least=SHORTEST_SECONDS,
        most=3600,
    )
    size_mib: int = parameter(
        64, "MiB of the cache whose limit is kept and whose hits are counted", quick=1, least=1,
        most=1 << 20, option="--size",
    )  # fmt: skip
    sets: int = parameter(
        100_000, "Sets of values of random sizes, where a limit is kept", quick=4_000, least=100
    )
    requests: int = parameter(
        1_000_000, "Requests of a trace whose hits are counted", quick=10_000, least=100
    )
    seed: int = seed()


def seconds(parameters: CacheParameters, operation: str) -> float:
    """How long an operation is done."""
    return parameters.duration_seconds * TIMES_AS_LONG.get(operation, 1)


def key(number: int) -> str:
    """The name of a key."""
    return f"page:{number}"


def absent(number: int) -> str:
    """The name of a key that has no value."""
    return f"absent:{number}"


def counter(number: int) -> str:
    """The name of a whole number."""
    return f"counter:{number % COUNTERS}"


def value(number: int, version: int, length: int) -> bytes:
    """A value of so many bytes; see the module."""
    head = b"%d %d %d " % (number, version, length)
    begin = (number + version) % _SPREAD
    return head + _BLOCK[begin : begin + length - len(head)]


def is_sound(found: object, number: int) -> bool:
    """Whether it is a value of that number, of whichever version and length, and whole."""
    if not isinstance(found, bytes):
        return False
    try:
        told, version, length = map(int, found.split(b" ", 3)[:3])
    except ValueError:
        return False
    return told == number and found == value(number, version, length)


def length(draws: random.Random) -> int:
    """The length of a value of the mix."""
    return round(math.exp(draws.uniform(math.log(SHORTEST_BYTES), math.log(LONGEST_BYTES))))


def zipf(keys: int, requests: int, draws: random.Random) -> "array[int]":
    """So many numbers of keys, of which the n-th is asked for in proportion to 1 / n."""
    weights = list(itertools.accumulate(1 / n**EXPONENT for n in range(1, keys + 1)))
    return array("I", draws.choices(range(keys), cum_weights=weights, k=requests))


class Entries:
    """The keys that have a value, and in which order they are asked for.

    Attributes:
        keys: their names.
        is_object: whether a value is an object, which is pickled, and not its bytes.
        digest: of the work.
    """

    def __init__(self, parameters: CacheParameters, scenario: Scenario) -> None:
        load = scenario["load"]
        self._lengths, self._trace = _drawn(parameters.keys, load, parameters.seed)
        self.keys = [key(number) for number in range(parameters.keys)]
        self.is_object = scenario["interface"] == "django"
        self.digest = _digest(parameters.keys, load, parameters.seed)

    def value(self, number: int, version: int = 0) -> object:
        """The value of a key."""
        raw = value(number, version, self._lengths[number])
        return {"number": number, "body": raw} if self.is_object else raw

    def size(self) -> int:
        """The limit of a cache from which nothing of all this goes, in bytes."""
        return max(SMALLEST_SIZE_BYTES, 4 * sum(self._lengths))

    def numbers(self, place: int, places: int) -> Iterator[int]:
        """Keys as they are asked for, without end; each of several begins elsewhere."""
        begin = len(self._trace) * place // places
        return itertools.cycle([*self._trace[begin:], *self._trace[:begin]])

    def batches(self, place: int, places: int) -> Iterator[list[int]]:
        """The same, ten different ones at a time."""
        numbers = self.numbers(place, places)
        while True:
            batch: dict[int, None] = {}
            while len(batch) < BATCH:
                batch[next(numbers)] = None
            yield list(batch)


@lru_cache(maxsize=4)
def _drawn(keys: int, load: str, seed: int) -> "tuple[list[int], array[int]]":
    """The lengths of values, and the trace."""
    draws = random.Random(seed)
    lengths = [length(draws) if load == MIXED else FIXED_BYTES for _ in range(keys)]
    return lengths, zipf(keys, TRACE, draws)


@lru_cache(maxsize=4)
def _digest(keys: int, load: str, seed: int) -> str:
    return digest(_drawn(keys, load, seed))


def universe(parameters: CacheParameters) -> int:
    """How many keys there are where the limit is kept, or hits are counted."""
    return PER_ENTRY * (parameters.size_mib << 20) // FIXED_BYTES


@dataclass(frozen=True)
class Trace:
    """Requests whose hits are counted.

    Attributes:
        numbers: of the keys.
        counted_from: of the requests before it, which fill the cache, none is counted.
    """

    numbers: "array[int]"
    counted_from: int

    @property
    def digest(self) -> str:
        """Of the work."""
        return digest((self.numbers, self.counted_from))


@lru_cache(maxsize=1)
def trace(parameters: CacheParameters, load: str) -> Trace:
    """The requests of a load: Zipf's, and with a scan in the middle of those that are counted."""
    keys, requests = universe(parameters), parameters.requests
    numbers = zipf(keys, requests, random.Random(parameters.seed))
    counted_from = requests // 3
    if load == SCAN:
        middle = (counted_from + requests) // 2
        scanned = array("I", range(keys, keys + min(keys, requests) // SCANNED_PART))
        numbers = numbers[:middle] + scanned + numbers[middle:]
    return Trace(numbers, counted_from)


def share(parameters: CacheParameters, scenario: Scenario) -> int:
    """How many sets each process makes where the limit is kept."""
    return -(-parameters.sets // int(scenario["processes"]))
