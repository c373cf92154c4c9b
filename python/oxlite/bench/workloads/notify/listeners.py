"""A process of listeners, each in a thread that waits or in a task of one event loop.

All of them listen when the process is ready. Its main thread waits until each has heard the last
message and a little longer, for what may come twice; where messages were lost, until nothing has
come for a while. Listeners that are to hear nothing are left alone, so that they can be watched.

The payload handed over has, for each listener, the numbers of what it has heard (signed 64-bit)
and the instants at which it did (``time.monotonic_ns``, which all processes share).
"""

import asyncio
import threading
import time
from array import array

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import digest, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.notify import work
from oxlite.bench.workloads.notify.ways import WAYS, Payloads, opened
from oxlite.bench.workloads.notify.work import NotifyParameters

READY_SECONDS = 60.0
LOOK_SECONDS = 0.5
LINGER_SECONDS = 0.2
"""For how long one hears what may come twice."""

SILENCE_SECONDS = 5.0
"""When nothing has come for so long, nothing will."""


class Ear:
    """What one listener has heard.

    Attributes:
        payloads: in the order in which they came.
        instants_ns: when each did.
        done: whether it has heard the last one.
    """

    def __init__(self, last: str) -> None:
        self.payloads: list[str | bytes] = []
        self.instants_ns = array("q")
        self.done = threading.Event()
        self._last = (last, last.encode())

    def hear(self, payload: str | bytes) -> None:
        """Note one, and when it came."""
        self.instants_ns.append(time.monotonic_ns())
        self.payloads.append(payload)
        if payload in self._last:
            self.done.set()

    def heard(self) -> "tuple[array[int], array[int]]":
        """The numbers and instants of what was not for warming up."""
        pairs = [
            (number, instant_ns)
            for payload, instant_ns in zip(self.payloads, self.instants_ns, strict=False)
            if (number := work.number(payload)) != work.WARM
        ]
        return array("q", (one for one, _ in pairs)), array("q", (one for _, one in pairs))


class NotifyTask(ScenarioTask[NotifyParameters]):
    """A process of ``notify``: what all of them share."""

    parameters_type = NotifyParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self.digests = [digest(work.text(0))]
        self.way = WAYS[self.scenario.driver, self.scenario["way"]]
        self.load = self.scenario["load"]

    def connection(self) -> tuple[object, str]:
        """One with the settings of those that were measured."""
        place = self.place
        if self.scenario.driver == "oxlite":
            from oxlite import connect

            return connect(place.path), str(place.path.parent)
        if self.scenario.driver == "stdlib":
            return opened(place.path), str(place.path.parent)
        return super().connection()


class ListenersTask(NotifyTask):
    """A process of listeners."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        count = work.messages(self.parameters, self.scenario)
        self._ears = [Ear(work.text(count - 1)) for _ in range(arguments["listeners"])]
        self._failure: Exception | None = None
        path = self.place.path
        channel = work.CHANNEL if self.load == "messages" else work.ELSEWHERE
        if self.scenario["way"] == "task":
            ready = threading.Event()
            self._start(self._loop, channel, ready)
            if not ready.wait(READY_SECONDS) and self._failure is None:
                raise WorkerError("the listeners do not begin")
            self._require()
        else:
            sources = self.way.listening(path, channel, len(self._ears))
            for ear, payloads in zip(self._ears, sources, strict=True):
                self._start(self._listen, ear, payloads)

    def run(self, turn: Message, start_ns: int) -> None:
        """Wait until all has been heard."""
        if self.load != "messages":
            # Longer than whoever watches them does.
            time.sleep(turn["seconds"])
            return
        heard, since = -1, time.monotonic()
        while not all(ear.done.is_set() for ear in self._ears):
            self._require()
            now, before = time.monotonic(), heard
            heard = sum(len(ear.payloads) for ear in self._ears)
            if heard != before:
                since = now
            elif now - since > SILENCE_SECONDS:
                return
            next(ear for ear in self._ears if not ear.done.is_set()).done.wait(LOOK_SECONDS)
        time.sleep(LINGER_SECONDS)

    def collect(self) -> tuple[Message, bytes]:
        """What was heard; see the module."""
        self._require()
        heard = [ear.heard() for ear in self._ears]
        return (
            {"counts": [len(numbers) for numbers, _ in heard]},
            packed(each for pair in heard for each in pair),
        )

    def _start(self, target: object, *arguments: object) -> None:
        # They wait for what comes until the process ends.
        threading.Thread(target=self._guarded, args=(target, *arguments), daemon=True).start()

    def _guarded(self, target: "object", *arguments: object) -> None:
        try:
            target(*arguments)  # type: ignore[operator]
        except Exception as error:
            self._failure = error

    def _listen(self, ear: Ear, payloads: Payloads) -> None:
        hear = ear.hear
        for payload in payloads:
            hear(payload)

    def _loop(self, channel: str, ready: threading.Event) -> None:
        async def hear(ear: Ear, payloads: object) -> None:
            async for payload in payloads:  # type: ignore[attr-defined]
                ear.hear(payload)

        async def listen() -> None:
            sources = await self.way.tasks(self.place.path, channel, len(self._ears))
            ready.set()
            pairs = zip(self._ears, sources, strict=True)
            await asyncio.gather(*(hear(ear, payloads) for ear, payloads in pairs))

        try:
            asyncio.run(listen())
        finally:
            ready.set()

    def _require(self) -> None:
        """See that they still listen."""
        if self._failure is not None:
            raise WorkerError(f"a listener has failed: {self._failure!r}") from self._failure
