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
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.base import Connection
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.oxlite import COMMITS, Oxlite
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.threads import SETTLE_NS, together
from oxlite.bench.harness.worker import Task
from oxlite.bench.scenarios import pragmas
from oxlite.bench.scenarios.opening import open_connection
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.inserts import work
from oxlite.bench.workloads.inserts.parameters import InsertsParameters
from oxlite.bench.workloads.inserts.parts import Done, Errors, climber, inserter
from oxlite.bench.workloads.inserts.steps import LADDER
from oxlite.bench.workloads.inserts.styles import STYLES, Enter, Insert, Place


class InsertsTask(Task):
    """One scenario."""

    def __init__(self, arguments: Message) -> None:
        self._parameters = InsertsParameters(**arguments["parameters"])
        self._scenario = scenario = Scenario(**arguments["scenario"])
        self._place = Place(
            DRIVERS.get(scenario.driver),
            Path(arguments["path"]),
            scenario,
            self._parameters.timeout_seconds,
        )
        self._rows = work.rows(self._parameters)
        self._errors = Errors()
        self._found: list[Done] = []
        self._reported = ExitStack()
        # Loads the driver before the start.
        self._failures = self._place.driver.errors()

    def ready(self) -> Message:
        """The digest of the work, and who will do it."""
        return {"digest": work.digest(self._rows), "versions": self._place.driver.versions()}

    def run(self, turn: Message, start_ns: int) -> None:
        """Let all threads insert until the time is over."""
        seconds = self._parameters.duration_seconds
        threads = int(self._scenario.threads or 1)
        shares = [work.share(self._rows, thread, threads) for thread in range(threads)]
        with ExitStack() as stack:
            if self._scenario.step is not None and LADDER[self._scenario.step].rows != 1:
                size = LADDER[self._scenario.step].rows
                parts = [climber(self._climbed, self._rows, size)]
            else:
                enter = stack.enter_context(self._entered())
                parts = [inserter(enter, own, self._failures, self._errors) for own in shares]
            self._found = together(parts, seconds, SETTLE_NS if threads > 1 else 0)

    @contextmanager
    def _entered(self) -> Iterator[Enter]:
        """What each thread enters."""
        if self._scenario.style is not None:
            with STYLES[self._scenario.style](self._place) as enter:
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
        step, place = LADDER[self._scenario.step or ""], self._place
        with closing(
            open_connection(
                place.driver,
                place.path,
                place.scenario,
                place.timeout_seconds,
                prepared=step.prepared,
            )
        ) as connection:
            pragmas.check_journal(connection, step.journal)
            pragmas.apply_settings(connection, step.settings)
            pragmas.check(connection, step.expected())
            connection.execute(work.WARM, ()).fetchall()
            yield connection

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the module."""
        return {
            "from_ns": self._found[0].from_ns,
            "counts": [len(done.outcomes) for done in self._found],
            "errors": self._errors.kinds(),
        }, b"".join(
            each.tobytes()
            for done in self._found
            for each in (done.begun_ns, done.ended_ns, done.outcomes)
        )

    def connection(self) -> tuple[Any, str]:
        """One of the kind that was measured; see the module."""
        place, directory = self._place, str(self._place.path.parent)
        enter = self._reported.enter_context
        if self._scenario.step is not None:
            return enter(self._climbed()), directory
        if isinstance(place.driver, Oxlite) and self._scenario.style in COMMITS:
            database = enter(
                closing(
                    place.driver.open_database(place.path, self._scenario, place.timeout_seconds)
                )
            )
            return enter(database.write()), directory
        return enter(closing(place.opened())), directory

    def close(self) -> None:
        """See the base class."""
        self._reported.close()
