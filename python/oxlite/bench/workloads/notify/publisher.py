"""The process that publishes; or watches idle listeners; or writes while others listen elsewhere.

Messages are published at fixed instants, however long each takes; one whose instant has passed is
published at once. The payload handed over has, for each, the instants before and after the call
that publishes it (``time.monotonic_ns``, unsigned 64-bit).
"""

import time
from array import array

from oxlite.bench.harness import wakeups
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import NS_PER_SECOND, packed
from oxlite.bench.workloads.notify import work
from oxlite.bench.workloads.notify.listeners import NotifyTask
from oxlite.bench.workloads.notify.ways import Publish

SETTLE_SECONDS = 6.0
"""After it, what began with the process has come to rest: limits of five seconds among it."""

WARM_PAUSE_SECONDS = 0.01


class PublisherTask(NotifyTask):
    """The process that publishes, watches or writes."""

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._called_ns, self._returned_ns = array("Q"), array("Q")
        self._facts: Message = {}
        self._publish: Publish | None = None
        if self.load == "messages":
            self._publish = self.way.publisher(self.place.path, work.CHANNEL)

    def run(self, turn: Message, start_ns: int) -> None:
        """Do what the scenario's load says."""
        if self._publish is not None:
            self._publish_all(self._publish)
        elif self.load == "idle":
            self._watch(turn["listeners"])
        else:
            self._write()

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        return self._facts, packed((self._called_ns, self._returned_ns))

    def _publish_all(self, publish: Publish) -> None:
        for _ in range(work.WARM_MESSAGES):
            publish(work.text(work.WARM))
            time.sleep(WARM_PAUSE_SECONDS)
        count = work.messages(self.parameters, self.scenario)
        gap_ns = NS_PER_SECOND / int(self.scenario["hertz"])
        called, returned, clock = (
            self._called_ns.append,
            self._returned_ns.append,
            time.monotonic_ns,
        )
        begun_ns = clock()
        for number in range(count):
            text = work.text(number)
            ahead_ns = begun_ns + number * gap_ns - clock()
            if ahead_ns > 0:
                time.sleep(ahead_ns / NS_PER_SECOND)
            before_ns = clock()
            publish(text)
            returned(clock())
            called(before_ns)

    def _watch(self, listeners: list[int]) -> None:
        time.sleep(SETTLE_SECONDS)
        before = wakeups.spent(listeners)
        time.sleep(self.parameters.idle_seconds)
        switches, running_ns = wakeups.spent(listeners).since(before)
        self._facts = {"switches": switches, "running_ns": running_ns}

    def _write(self) -> None:
        from oxlite import Database

        written, clock = 0, time.monotonic_ns
        with Database(self.place.path) as database:
            database.execute(work.WRITE)
            begun_ns = clock()
            until_ns = begun_ns + round(self.parameters.duration_seconds * NS_PER_SECOND)
            while (now_ns := clock()) < until_ns:
                database.execute(work.WRITE)
                written += 1
        self._facts = {"written": written, "elapsed_ns": now_ns - begun_ns}
