"""The process that watches as ``oxlite top`` does: it looks again and again, and keeps what it saw.

It watches from before the others begin to work, and opens no connection of its own.
"""

import statistics
import time
from contextlib import closing
from typing import Any

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import NS_PER_MS, NS_PER_SECOND
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.top.work import TopParameters
from oxlite.operations.top import Watch


class WatcherTask(ScenarioTask[TopParameters]):
    """The one that watches."""

    parameters_type = TopParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._watch = self.exits.enter_context(closing(Watch(self.place.path)))
        self._looks: list[Message] = []
        self._times_ns: list[int] = []

    def run(self, turn: Message, start_ns: int) -> None:
        """Look once when counting begins, and then again and again until it ends."""
        parameters = self.parameters
        step_seconds = min(parameters.every_seconds, parameters.limit_seconds)
        steps = int(parameters.limit_seconds / step_seconds)
        begun_ns = start_ns + round(parameters.lead_seconds * NS_PER_SECOND)
        for number in range(steps + 1):
            instant_ns = begun_ns + round(number * step_seconds * NS_PER_SECOND)
            self._watch.wait((instant_ns - time.perf_counter_ns()) / NS_PER_SECOND)
            self._looks.append(self._look())

    def _look(self) -> Message:
        begun_ns = time.perf_counter_ns()
        seen = self._watch.look()
        self._times_ns.append(time.perf_counter_ns() - begun_ns)
        return {
            "begun_ns": begun_ns,
            "since_before_seconds": seen.since_before_seconds,
            "commits_per_second": seen.commits_per_second,
            "per_second": seen.per_second and dict(seen.per_second),
            "telling": [one.process_id for one in seen.processes or () if one.tells],
        }

    def collect(self) -> tuple[Message, bytes]:
        """What was seen, and how long a look takes."""
        look_ms = statistics.median(self._times_ns) / NS_PER_MS
        return {"looks": self._looks, "look_ms": look_ms}, b""

    def connection(self) -> tuple[Any, str]:
        """There is none.

        Raises:
            WorkerError: always.
        """
        raise WorkerError("who watches has no connection")
