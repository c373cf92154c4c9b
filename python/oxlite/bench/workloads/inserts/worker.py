"""The process in which the threads of ``inserts`` insert.

It measures one scenario once. Threads open what they need before the start and close it
after the last insert; for the environment report something of the same kind is opened
again, because a connection with exclusive locks leaves no room for a second one.

The payload handed over has, for each thread, three arrays of one entry per insert: the
instants before and after (unsigned 64-bit ns), and the outcome (unsigned 16-bit: 0 done, n
the n-th of the reported kinds of errors).
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from typing import Any

from oxlite.bench.drivers import pragmas
from oxlite.bench.drivers.base import Connection
from oxlite.bench.drivers.oxlite import COMMITS, Oxlite
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import Errors, packed
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.harness.threads import SETTLE_NS, together
from oxlite.bench.workloads.inserts import work
from oxlite.bench.workloads.inserts.parts import Done, climber, inserter, kind
from oxlite.bench.workloads.inserts.steps import LADDER
from oxlite.bench.workloads.inserts.styles import STYLES, Enter, Insert
from oxlite.bench.workloads.inserts.work import InsertsParameters


class InsertsTask(ScenarioTask[InsertsParameters]):
    """One scenario."""

    parameters_type = InsertsParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._rows = work.rows(self.parameters)
        self.digests = [work.digest(self._rows)]
        self._errors = Errors(kind)
        self._found: list[Done] = []

    def run(self, turn: Message, start_ns: int) -> None:
        """Let all threads insert until the time is over."""
        seconds = self.parameters.duration_seconds
        threads = int(self.scenario.get("threads", 1))
        shares = [work.share(self._rows, thread, threads) for thread in range(threads)]
        with ExitStack() as stack:
            size = LADDER[self.scenario["step"]].rows if "step" in self.scenario else 1
            if size != 1:
                parts = [climber(self._climbed, self._rows, size)]
            else:
                enter = stack.enter_context(self._entered())
                parts = [inserter(enter, own, self.failures, self._errors) for own in shares]
            self._found = together(parts, seconds, SETTLE_NS if threads > 1 else 0)

    @contextmanager
    def _entered(self) -> Iterator[Enter]:
        """What each thread enters."""
        if "style" in self.scenario:
            with STYLES[self.scenario["style"]](self.place) as enter:
                yield enter
        else:
            yield self._alone

    @contextmanager
    def _alone(self) -> Iterator[Insert]:
        """The one thread of the ladder, where a row is a transaction."""
        with self._climbed() as connection:
            execute = connection.execute
            yield lambda row: execute(work.INSERT, row)

    @contextmanager
    def _climbed(self) -> Iterator[Connection]:
        """A connection with everything that the step has added."""
        step = LADDER[self.scenario["step"]]
        with closing(self.place.opened(prepared=step.prepared)) as connection:
            pragmas.check_journal(connection, step.journal)
            pragmas.apply_settings(connection, step.settings)
            pragmas.check(connection, step.expected())
            connection.execute(work.WARM, ()).fetchall()
            yield connection

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        return {
            "from_ns": self._found[0].from_ns,
            "counts": [len(done.numbers) for done in self._found],
            "errors": self._errors.kinds(),
        }, packed(each for done in self._found for each in done[:3])

    @cached_property
    def measured(self) -> Any:  # noqa: ANN401
        """One of the kind that was measured; see the module."""
        place, enter = self.place, self.exits.enter_context
        if "step" in self.scenario:
            return enter(self._climbed())
        if isinstance(place.driver, Oxlite) and self.scenario.get("style") in COMMITS:
            database = place.driver.open_database(place.path, self.scenario, place.timeout_seconds)
            return enter(enter(closing(database)).write())
        return enter(closing(place.opened()))
