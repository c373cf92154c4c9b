"""The processes that fill a cache beyond its limit, and that count what it has.

Both keep the cache of Oxlite that they are given; who has used how much of it is asked of SQLite,
and not of the cache.
"""

import random
import time
from contextlib import closing

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import digest
from oxlite.bench.workloads.cache import lru, work
from oxlite.bench.workloads.cache.worker import NOT_KEPT, CacheTask

LOOK_EACH = 8
"""After so many sets one looks how many pages are in use; no value has more than 17."""

USED_BYTES = """SELECT (SELECT page_size FROM pragma_page_size)
  * ((SELECT page_count FROM pragma_page_count)
    - (SELECT freelist_count FROM pragma_freelist_count))"""

READ_BACK = 1000
"""Of the keys that were set last so many are read."""

COUNTS = 20
"""So often the entries are counted while hits are."""


class LimitTask(CacheTask):
    """Sets values of random sizes under random keys, and looks how much is in use."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        from oxlite.cache import Cache

        parameters = self.parameters
        self.digests = [limit_digest(parameters)]
        self._draws = random.Random(f"{parameters.seed} {arguments['place']}")
        self._cache = Cache(self.place.path, parameters.size_mib << 20)
        self.exits.callback(self._cache.close)
        self._facts: Message = {}

    def run(self, turn: Message, start_ns: int) -> None:
        """Set them all, and read some."""
        from oxlite import sqlite3

        set_value, draws, clock = self._cache.set, self._draws, time.perf_counter_ns
        keys = work.universe(self.parameters)
        spent_ns = longest_ns = most_used = refused = 0
        recent: list[int] = []
        with closing(sqlite3.connect(self.place.path)) as looking:
            for count in range(work.share(self.parameters, self.scenario)):
                number = draws.randrange(keys)
                key, value = work.key(number), work.value(number, count, work.length(draws))
                begun_ns = clock()
                is_kept = set_value(key, value, work.EXPIRES_SECONDS)
                took_ns = clock() - begun_ns
                spent_ns += took_ns
                longest_ns = max(longest_ns, took_ns)
                refused += not is_kept
                if count % LOOK_EACH == 0:
                    [(used,)] = looking.execute(USED_BYTES).fetchall()
                    most_used = max(most_used, used)
                    recent.append(number)
                    del recent[:-READ_BACK]
        found = self._read_back(recent)
        self._facts = {
            "sets": count + 1,
            "spent_ns": spent_ns,
            "longest_ns": longest_ns,
            "most_used_bytes": most_used,
            "last_used_bytes": self._cache.stats().used_bytes,
            "read": len(recent),
            "found": found,
            "errors": {NOT_KEPT: refused} if refused else {},
        }

    def collect(self) -> tuple[Message, bytes]:
        """What was measured."""
        return self._facts, b""

    def _read_back(self, numbers: list[int]) -> int:
        """How many of the keys have a value, which must be one of theirs."""
        found = 0
        for number in numbers:
            value = self._cache.get(work.key(number))
            if value is not None:
                found += 1
                if not work.is_sound(value, number):
                    raise VerificationError(f"{work.key(number)} has a wrong value: {value[:60]!r}")
        return found


class HitsTask(CacheTask):
    """Asks for the keys of a trace, sets what is not there, and counts hits."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        from oxlite.cache import Cache

        self._trace = work.trace(self.parameters, self.scenario["load"])
        self.digests = [self._trace.digest]
        self._cache = Cache(self.place.path, self.parameters.size_mib << 20)
        self.exits.callback(self._cache.close)
        self._facts: Message = {}

    def run(self, turn: Message, start_ns: int) -> None:
        """Ask for all of them."""
        get, set_value, trace = self._cache.get, self._cache.set, self._trace
        counted_from = trace.counted_from
        step = max(1, (len(trace.numbers) - counted_from) // COUNTS)
        hits, counts, evictions, refused = 0, [], 0, 0
        for place, number in enumerate(trace.numbers):
            key = work.key(number)
            found = get(key)
            if found is None:
                value = work.value(number, 0, work.FIXED_BYTES)
                refused += not set_value(key, value, work.EXPIRES_SECONDS)
            elif found != work.value(number, 0, work.FIXED_BYTES):
                raise VerificationError(f"{key} has a wrong value: {found[:60]!r}")
            else:
                hits += place >= counted_from
            if place >= counted_from and (place - counted_from) % step == 0:
                counts.append(len(self._cache))
        evictions = self._cache.stats().evictions
        entries = sum(counts) // len(counts)
        self._facts = {
            "asked": len(trace.numbers) - counted_from,
            "hits": hits,
            "entries": entries,
            "evictions": evictions,
            "errors": {NOT_KEPT: refused} if refused else {},
        }

    def collect(self) -> tuple[Message, bytes]:
        """What was counted, and what an exact LRU with as many entries would have had."""
        trace = self._trace
        exact = lru.hits(trace.numbers, self._facts["entries"], trace.counted_from)
        return {**self._facts, "exact_hits": exact}, b""


def limit_digest(parameters: work.CacheParameters) -> str:
    """Of the work of a limit: how much is set, of which keys."""
    return digest((parameters.sets, work.universe(parameters), parameters.seed))
