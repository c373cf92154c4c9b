"""The process that does the operations of ``orm``, one after the other.

Invariants: what an operation did is counted, and must be what it is to do; one that fails fails
alone, and is not tried again; making ready and tidying up are not timed.
"""

import gc
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.opening import opened
from oxlite.bench.workloads.orm.operations import Timed
from oxlite.bench.workloads.orm.parameters import OrmParameters

NS_PER_MS = 1e6


class OrmTask(Task):
    """One mapper on one driver."""

    def __init__(self, arguments: Message) -> None:
        self._parameters = OrmParameters(**arguments["parameters"])
        self._scenario = scenario = Scenario(**arguments["scenario"])
        self._path = Path(arguments["path"])
        self._driver = DRIVERS.get(scenario.driver)
        self._mapper = opened(scenario, self._path)
        self._figures: dict[str, float] = {}
        self._failed: dict[str, str] = {}

    def ready(self) -> Message:
        """Who is measured."""
        return {"versions": {**self._driver.versions(), **self._mapper.versions()}}

    def run(self, turn: Message, start_ns: int) -> None:
        """Every operation once."""
        self._figures = {}
        for timed in self._parameters.operations():
            if timed.metric in self._failed:
                continue
            try:
                self._figures[timed.metric] = self._time(timed) / NS_PER_MS
            except Exception as error:
                self._failed[timed.metric] = " ".join(f"{type(error).__name__}: {error}".split())

    def _time(self, timed: Timed) -> int:
        """The nanoseconds of one operation.

        Raises:
            ValueError: it has not done its work.
        """
        n = self._parameters.scale
        work = self._mapper.prepare(timed.operation.name, n)
        gc.collect()
        around = self._mapper.transaction() if timed.in_transaction else nullcontext()
        begun_ns = time.perf_counter_ns()
        with around:
            count = work()
        elapsed_ns = time.perf_counter_ns() - begun_ns
        expected = timed.operation.count(n)
        if count != expected:
            raise ValueError(f"degenerate: it concerned {count:,} objects instead of {expected:,}")
        return elapsed_ns

    def collect(self) -> tuple[Message, bytes]:
        """Milliseconds of each operation, and what has failed, with reasons."""
        return {"figures": self._figures, "failed": self._failed}, b""

    def connection(self) -> tuple[Any, str]:
        """See the base class."""
        return self._mapper.connection(), str(self._path.parent)

    def close(self) -> None:
        """See the base class."""
        self._mapper.close()
