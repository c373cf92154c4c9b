"""The process that does the operations of ``orm``: in each turn one of them, once.

It works on the processor that the turn names; what has threads of its own may use all of them.

Invariants: what an operation did is counted, and must be what it is to do, and what it leaves in
the tables is digested the first time; one that fails fails alone; making
ready and tidying up are not timed, and nothing is collected as garbage while timing.
"""

import gc
import hashlib
import os
import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from oxlite.bench.drivers import pragmas
from oxlite.bench.drivers.base import distribution_version
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.mapper import Mapper
from oxlite.bench.workloads.orm.operations import TIMED, Timed
from oxlite.bench.workloads.orm.parameters import OrmParameters

BY_TITLE = {timed.title: timed for timed in TIMED}


def processors() -> set[int]:
    """Those that this process may use; none where that cannot be told."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _work_on(chosen: set[int]) -> None:
    """Have this thread, and those that it starts, run there from now on."""
    if chosen:
        os.sched_setaffinity(0, chosen)


def _opened(scenario: Scenario, path: Path) -> Mapper:
    """The mapper of a scenario, whose connections are opened as an application would.

    So the stock driver has its pragmas from the mapper, and Oxlite from a profile.
    """
    if scenario["mapper"] == "django":
        from oxlite.bench.workloads.orm.django import Django, database

        return Django(database(scenario, path))
    from oxlite.bench.workloads.orm.sqlalchemy import SqlAlchemy, engine

    return SqlAlchemy(engine(scenario, path))


class OrmTask(ScenarioTask[OrmParameters]):
    """One mapper on one driver.

    Attributes:
        mapper: the mapper.
    """

    parameters_type = OrmParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        scenario = self.scenario
        self.mapper = self.exits.enter_context(closing(_opened(scenario, self.place.path)))
        if "journal" in scenario:
            connection = self.mapper.connection()
            pragmas.check_journal(connection, scenario["journal"])
            pragmas.check(connection, pragmas.SETS[scenario["pragmas"]])
        self._digests: dict[str, str] = {}
        self._facts: Message = {}
        self._everywhere = processors()
        # What lives as long as the process is not to be gone through at each collection.
        gc.collect()
        gc.freeze()

    def ready(self) -> Message:
        """Who is measured."""
        mapper = self.scenario["mapper"]
        return {"versions": {**self.driver.versions(), mapper: distribution_version(mapper)}}

    def run(self, turn: Message, start_ns: int) -> None:
        """The operation whose title the turn names."""
        try:
            timed = BY_TITLE[turn["operation"]]
            one = turn.get("processor")
            _work_on({one} if one is not None and timed.is_of_one_thread else self._everywhere)
            self._facts = self._done(timed)
        except Exception as error:
            self._facts = {"failed": " ".join(f"{type(error).__name__}: {error}".split())}

    def _done(self, timed: Timed) -> Message:
        """What came of one operation.

        Raises:
            ValueError: it has not done its work.
        """
        scale = self.parameters.scale
        work = self.mapper.prepare(timed.operation, scale)
        around = self.mapper.transaction() if timed.in_transaction else nullcontext()
        gc.collect()
        gc.disable()
        try:
            begun_ns = time.perf_counter_ns()
            with around:
                count = work()
            elapsed_ns = time.perf_counter_ns() - begun_ns
        finally:
            gc.enable()
        expected = timed.operation.count(scale)
        degenerate = None
        if count != expected:
            degenerate = f"degenerate: it concerned {count:,} objects instead of {expected:,}"
            if not (scale.faithful and timed.operation.read_by_nobody):
                raise ValueError(degenerate)
        if timed.title not in self._digests:
            contents = sorted(map(repr, self.mapper.contents()))
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
        return self.mapper.connection(), str(self.place.path.parent)
