"""The process that does the operations of ``orm``: in each turn one of them, once.

It works on the processor that the turn names; what has threads of its own may use all of them.

Invariants: what an operation did is counted, and must be what it is to do, and what it leaves in
the tables is digested the first time; one that fails fails alone, and is not tried again; making
ready and tidying up are not timed, and nothing is collected as garbage while timing.
"""

import gc
import hashlib
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.opening import opened
from oxlite.bench.workloads.orm.operations import TIMED, Timed
from oxlite.bench.workloads.orm.parameters import OrmParameters

BY_TITLE = {timed.title: timed for timed in TIMED}


def _processors() -> set[int]:
    """Those that this process may use; none where that cannot be told."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _work_on(processors: set[int]) -> None:
    """Have this thread, and those that it starts, run there from now on."""
    if processors:
        os.sched_setaffinity(0, processors)


class OrmTask(Task):
    """One mapper on one driver."""

    def __init__(self, arguments: Message) -> None:
        self._scale = OrmParameters(**arguments["parameters"]).scale
        self._scenario = scenario = Scenario(**arguments["scenario"])
        self._path = Path(arguments["path"])
        self._driver = DRIVERS.get(scenario.driver)
        self._mapper = opened(scenario, self._path)
        self._failed: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._facts: Message = {}
        self._everywhere = _processors()
        # What lives as long as the process is not to be gone through at each collection.
        gc.collect()
        gc.freeze()

    def ready(self) -> Message:
        """Who is measured."""
        return {"versions": {**self._driver.versions(), **self._mapper.versions()}}

    def run(self, turn: Message, start_ns: int) -> None:
        """The operation whose title the turn names, unless it has failed before."""
        title = turn["operation"]
        if title not in self._failed:
            try:
                timed = BY_TITLE[title]
                one = turn.get("processor")
                _work_on({one} if one is not None and timed.is_of_one_thread else self._everywhere)
                self._facts = self._done(timed)
            except Exception as error:
                self._failed[title] = " ".join(f"{type(error).__name__}: {error}".split())
        if title in self._failed:
            self._facts = {"failed": self._failed[title]}

    def _done(self, timed: Timed) -> Message:
        """What came of one operation.

        Raises:
            ValueError: it has not done its work.
        """
        work = self._mapper.prepare(timed.operation.name, self._scale)
        around = self._mapper.transaction() if timed.in_transaction else nullcontext()
        gc.collect()
        gc.disable()
        try:
            begun_ns = time.perf_counter_ns()
            with around:
                count = work()
            elapsed_ns = time.perf_counter_ns() - begun_ns
        finally:
            gc.enable()
        expected = timed.operation.count(self._scale)
        degenerate = None
        if count != expected:
            degenerate = f"degenerate: it concerned {count:,} objects instead of {expected:,}"
            if not (self._scale.faithful and timed.operation.read_by_nobody):
                raise ValueError(degenerate)
        if timed.title not in self._digests:
            contents = sorted(map(repr, self._mapper.contents()))
            self._digests[timed.title] = hashlib.sha256(repr(contents).encode()).hexdigest()
        return {
            "elapsed_ns": elapsed_ns,
            "digest": self._digests[timed.title],
            "degenerate": degenerate,
        }

    def collect(self) -> tuple[Message, bytes]:
        """Nanoseconds and digest of the operation, or why it has failed."""
        return self._facts, b""

    def connection(self) -> tuple[Any, str]:
        """See the base class."""
        _work_on(self._everywhere)  # the machine's processors are counted by it
        return self._mapper.connection(), str(self._path.parent)

    def close(self) -> None:
        """See the base class."""
        self._mapper.close()
