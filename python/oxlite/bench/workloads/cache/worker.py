"""The processes that time single operations: one fills the cache, then others ask it.

What is timed is the call alone; that its result is right is looked at afterwards, and whoever is
given a wrong one fails. Each turn is one operation, as often as there is time for.

The payload handed over has how long each call took, in nanoseconds (unsigned 64-bit).
"""

import asyncio
import itertools
import os
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib import util
from typing import Any
from unittest import mock

import psutil

from oxlite.bench.drivers.base import distribution_version
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import NS_PER_SECOND, line, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.cache import site, systems, work
from oxlite.bench.workloads.cache.systems import Whereabouts
from oxlite.bench.workloads.cache.work import CacheParameters, Entries

WARM_CALLS = 20
FOR_EVER_NS = 2**63
CHECK = "check"
"""The turn in which one process reads everything."""

LONGEST_SHOWN = 80
NOT_KEPT = "set says that the value is not there"

Items = Iterator[tuple[Any, Any]]
"""What an operation is given, and what its result is judged by."""


class CacheTask(ScenarioTask[CacheParameters]):
    """A process of ``cache``: what all of them share."""

    parameters_type = CacheParameters

    def ready(self) -> Message:
        """Who does the work, with the versions of what is beside the driver."""
        facts = super().ready()
        versions = dict(facts["versions"])
        if self.scenario.get("interface") == systems.DJANGO:
            versions["django"] = distribution_version("django")
        if self.scenario.driver == "redis" and util.find_spec("hiredis") is not None:
            versions["driver"] += f" with hiredis {distribution_version('hiredis')}"
        return {**facts, "versions": versions}

    def connection(self) -> tuple[object, str]:
        """One with the settings of those that are measured."""
        path = self.place.path
        if self.scenario.get("way") == "table":
            return site.connection(), str(path.parent)
        if self.scenario.driver == "oxlite":
            from oxlite import connect

            connection = connect(path, profile="cache")
            self.exits.callback(connection.close)
            return connection, str(path.parent)
        return super().connection()

    def run(self, turn: Message, start_ns: int) -> None:
        """Nothing, unless a process of another kind."""

    def collect(self) -> tuple[Message, bytes]:
        """Nothing, unless a process of another kind."""
        return {}, b""


class EntriesTask(CacheTask):
    """A process that knows what is in the cache."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self.entries = Entries(self.parameters, self.scenario)
        self.digests = [self.entries.digest]
        self.where = Whereabouts(self.place.path, arguments["port"], self.entries.size())

    def fill(self, client: systems.Client) -> None:
        """Set all values, and all counters to 0."""
        for number, key in enumerate(self.entries.keys):
            client.set(key, self.entries.value(number), work.EXPIRES_SECONDS)
        for number in range(work.COUNTERS):
            client.set(work.counter(number), 0, work.EXPIRES_SECONDS)


class PrepareTask(EntriesTask):
    """Makes a cache, and fills it."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        # A file serves both interfaces of Oxlite's, and a server those of Redis'.
        scenario = self.scenario
        if scenario["interface"] == systems.ASYNCIO:
            scenario = scenario.but(interface=systems.RAW)
        client = systems.opened(scenario, self.where)
        if scenario["interface"] == systems.DJANGO:
            site.make_ready(scenario["way"])
        if scenario["way"] == "table":
            from django.db.transaction import atomic

            with atomic():
                self.fill(client)
        elif scenario.driver == "filebased":
            with _without_culling():
                self.fill(client)
        else:
            self.fill(client)
        client.close()


class AskingTask(EntriesTask):
    """Asks a cache that is filled."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        place, places = arguments["place"], int(self.scenario.get("processes", 1))
        self._numbers = self.entries.numbers(place, places)
        self._batches = self.entries.batches(place, places)
        self._mine: Counter[int] = Counter()
        self._written: dict[int, int] = {}
        self._has_failed = False
        self._facts: Message = {}
        # Which of several tasks is told of its sum first does not follow from the sums.
        self._is_exact = "tasks" not in self.scenario and (
            places == 1 or systems.is_atomic(self.scenario)
        )
        self._begin()
        memory_before = _resident_bytes()
        self.client = self.open()
        if self.scenario["way"] == "memory":
            self.fill(self.client)
        self._memory_before = memory_before

    def open(self) -> systems.Client:
        """The client of this process."""
        client = systems.opened(self.scenario, self.where)
        self.exits.callback(client.close)
        return client

    def run(self, turn: Message, start_ns: int) -> None:
        """Do one operation again and again, or read everything."""
        self._begin()
        if turn["operation"] == CHECK:
            self._check(is_alone=turn["is_alone"])
            return
        call, items, judge = self._operation(turn["operation"])
        warm_calls = WARM_CALLS * int(self.scenario.get("tasks", 1))
        self.work(call, itertools.islice(items, warm_calls), judge, FOR_EVER_NS)
        self._times_ns = array("Q")
        begun_ns = time.perf_counter_ns()
        seconds = work.seconds(self.parameters, turn["operation"])
        until_ns = begun_ns + round(seconds * NS_PER_SECOND)
        spent_ns = self.work(call, items, judge, until_ns)
        self._has_failed |= bool(self._errors)
        self._facts = {"rate": len(self._times_ns) * NS_PER_SECOND / max(1, spent_ns)}

    def collect(self) -> tuple[Message, bytes]:
        """What was measured in the last turn; see the module."""
        times_ns, self._times_ns = self._times_ns, array("Q")
        facts: Message = {
            **self._facts,
            "count": len(times_ns),
            "added": sum(self._mine.values()),
            "errors": dict(self._errors),
            "unable": self.unable(),
            "memory_bytes": _resident_bytes() - self._memory_before,
        }
        return facts, packed([times_ns])

    def unable(self) -> int:
        """How often the cache could not do what it was asked, and went on."""
        count: int = self.client.unable()
        return count

    def work(
        self,
        call: Callable[[Any], Any],
        items: Items,
        judge: Callable[[Any, Any], None],
        until_ns: int,
    ) -> int:
        """Do it until that instant, or there are no more items; for how long it was in calls."""
        clock, note = time.perf_counter_ns, self._times_ns.append
        for given, expected in items:
            begun_ns = clock()
            try:
                found = call(given)
            except Exception as error:
                ended_ns = clock()
                self._errors[line(error)] += 1
            else:
                ended_ns = clock()
                note(ended_ns - begun_ns)
                judge(expected, found)
            if ended_ns >= until_ns:
                break
        return sum(self._times_ns)

    def _begin(self) -> None:
        self._times_ns = array("Q")
        self._errors: Counter[str] = Counter()
        self._facts = {}

    def _operation(
        self, operation: str
    ) -> tuple[Callable[[Any], Any], Items, Callable[[Any, Any], None]]:
        """What is called, with what, and how its result is judged."""
        client, keys = self.client, self.entries.keys
        match operation:
            case work.GET:
                return client.get, ((keys[n], n) for n in self._numbers), self._got
            case work.MISS:
                return client.get, ((work.absent(n), n) for n in self._numbers), _missed
            case work.GET_MANY:
                batches = (([keys[n] for n in batch], batch) for batch in self._batches)
                return client.get_many, batches, self._got_many
            case work.INCR:
                return client.incr, ((work.counter(n), n) for n in self._numbers), self._added
            case work.SET:
                return self._setter(), self._settings(), self._set
        raise ValueError(f"no operation {operation!r}")

    def _setter(self) -> Callable[[Any], Any]:
        seconds, set_value = work.EXPIRES_SECONDS, self.client.set
        return lambda given: set_value(given[0], given[1], seconds)

    def _settings(self) -> Items:
        entries, keys = self.entries, self.entries.keys
        for count, number in enumerate(self._numbers):
            version = count % 2
            yield (keys[number], entries.value(number, version)), (number, version)

    def _got(self, number: int, found: Any) -> None:  # noqa: ANN401
        if found != self.entries.value(number):
            raise VerificationError(f"{work.key(number)} has {_shown(found)}, not its value")

    def _got_many(self, batch: list[int], found: Any) -> None:  # noqa: ANN401
        names = [self.entries.keys[number] for number in batch]
        for number, value in zip(batch, systems.ordered(found, names), strict=True):
            self._got(number, value)

    def _added(self, number: int, found: Any) -> None:  # noqa: ANN401
        which = number % work.COUNTERS
        self._mine[which] += 1
        if self._is_exact and int(found) < self._mine[which]:
            raise VerificationError(
                f"{work.counter(number)} is {found} after {self._mine[which]} increments"
            )

    def _set(self, what: tuple[int, int], found: Any) -> None:  # noqa: ANN401
        if found is False:
            self._errors[NOT_KEPT] += 1
            return
        number, version = what
        self._written[number] = version

    def _check(self, *, is_alone: bool) -> None:
        """Read every value, and every counter.

        Args:
            is_alone: whether nobody else has set anything.
        """
        get, entries = self.read, self.entries
        for number, key in enumerate(entries.keys):
            last = self._written.get(number, 0)
            may_be = [last] if is_alone and not self._has_failed else [0, 1]
            found = get(key)
            if found not in [entries.value(number, version) for version in may_be]:
                raise VerificationError(f"{key} has {_shown(found)}, not what was set")
        names = {work.counter(number) for number in range(work.COUNTERS)}
        self._facts = {"counted": sum(int(get(name)) for name in names)}

    def read(self, key: str) -> Any:  # noqa: ANN401
        """The value of a key."""
        return self.client.get(key)


class TasksTask(AskingTask):
    """Tasks of one event loop that ask a cache that is filled."""

    def open(self) -> systems.Client:
        """The client of this event loop."""
        self._loop = asyncio.new_event_loop()
        self.exits.callback(self._loop.close)
        client = systems.opened(self.scenario, self.where)
        if client.enter is not None:
            self._loop.run_until_complete(client.enter())
        self.exits.callback(lambda: self._loop.run_until_complete(client.close()))
        return client

    def unable(self) -> int:
        """See the base class."""
        found = self.client.unable()
        if asyncio.iscoroutine(found):
            found = self._loop.run_until_complete(found)
        count: int = found
        return count

    def work(
        self,
        call: Callable[[Any], Any],
        items: Items,
        judge: Callable[[Any, Any], None],
        until_ns: int,
    ) -> int:
        """See the base class; where many wait at once, for how long it was at work at all."""
        clock = time.perf_counter_ns
        begun_ns = clock()
        self._loop.run_until_complete(self._together(call, items, judge, until_ns))
        return clock() - begun_ns

    def read(self, key: str) -> Any:  # noqa: ANN401
        """See the base class."""
        return self._loop.run_until_complete(self.client.get(key))

    async def _together(
        self,
        call: Callable[[Any], Any],
        items: Items,
        judge: Callable[[Any, Any], None],
        until_ns: int,
    ) -> None:
        clock, note = time.perf_counter_ns, self._times_ns.append

        async def ask() -> None:
            for given, expected in items:
                begun_ns = clock()
                try:
                    found = await call(given)
                except Exception as error:
                    ended_ns = clock()
                    self._errors[line(error)] += 1
                else:
                    ended_ns = clock()
                    note(ended_ns - begun_ns)
                    judge(expected, found)
                if ended_ns >= until_ns:
                    break

        await asyncio.gather(*(ask() for _ in range(int(self.scenario["tasks"]))))


def _missed(number: int, found: Any) -> None:  # noqa: ANN401
    if found is not None:
        raise VerificationError(f"{work.absent(number)} has {_shown(found)}, and was never set")


def _shown(found: object) -> str:
    """What was found, in a few words."""
    return "no value" if found is None else f"{found!r}"[:LONGEST_SHOWN]


def _resident_bytes() -> int:
    found: int = psutil.Process(os.getpid()).memory_info().rss
    return found


def _without_culling() -> AbstractContextManager[object]:
    """Django's cache of files looks at all of them before each set, to fill it takes minutes."""
    from django.core.cache.backends.filebased import FileBasedCache

    return mock.patch.object(FileBasedCache, "_cull")
