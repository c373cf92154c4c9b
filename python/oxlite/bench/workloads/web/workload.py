"""The ``web`` workload: a Django site on a real server, asked by 1 to 64 clients at once.

The blog begins with the same rows in every cell, PostgreSQL's among them. Each request first
updates somebody's ``last_seen_at``, so those that read write too. Clients ask in a closed loop;
every answer is accounted for by the clients, by the server and by the database.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import util
from typing import Any, ClassVar

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import UsageError, VerificationError
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.run import Session
from oxlite.bench.harness.scratch import Scratch, copy_synced
from oxlite.bench.layout import Drawable, number
from oxlite.bench.scenarios.cells import Grid
from oxlite.bench.scenarios.scenario import AXES, Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.web import figures, generator, ladder, server, verify
from oxlite.bench.workloads.web.parameters import WebParameters
from oxlite.bench.workloads.web.tables import TABLES

TASK = "oxlite.bench.workloads.web.worker:BlogTask"
NEEDED = ("django", "gunicorn")
HUNG_SECONDS = 300.0

HELD, BACKOFF, FAIR = (
    {"settings": ladder.ROLLBACK, "busy": busy} for busy in ("held", "backoff", "fair")
)
GATE = {"settings": ladder.ENGINE, "busy": ladder.GATE}


class WebSession:
    """The blog to start from, and the load generator, found once."""

    def __init__(
        self, parameters: WebParameters, scratch: Scratch, postgresql: PostgresServer
    ) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._postgresql = postgresql
        self._generator = generator.find(parameters.generator)
        require_installed()
        template = scratch.fresh("template").absolute()
        self._template = Database(
            Scenario("stdlib", settings=ladder.DEFAULTS), template / "blog.db", template
        )
        self._create(self._template)
        self._rows = verify.count_rows(self._template)
        self._fsync_wanted = True

    def _create(self, database: Database) -> None:
        """Make the tables and their rows, by Django."""
        parameters = self._parameters
        with WorkerGroup(database.directory) as group:
            group.start(TASK, _arguments(database, parameters), "own")
            group.wait_ready()
            made = {
                "users": parameters.users,
                "posts": parameters.posts,
                "seed": parameters.seed,
            }
            group.release(HUNG_SECONDS, made)
            group.stop()

    def _start(self, scenario: Scenario) -> Database:
        """The blog, for a measurement."""
        # Server and generator work in it, so it must not depend on where the lab does.
        directory = self._scratch.fresh(scenario.label).absolute()
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
        parameters = self._parameters
        database = self._start(scenario)
        arguments = _arguments(database, parameters)
        report = None
        with WorkerGroup(database.directory) as group:
            # What settings say that cannot be done is said here, before there is a server.
            one = group.start(TASK, arguments, scenario.build or "own")
            group.wait_ready()
            if with_environment:
                report = group.environment(one, scenario.driver, fsync=self._fsync_wanted)
                self._fsync_wanted = False
            group.stop()
        with server.served(arguments["environment"], parameters, database.directory) as site:
            url = f"http://{server.LOOPBACK}:{site.port}/benchmark/{scenario.mix}"
            load = generator.run(
                self._generator,
                url,
                int(scenario.clients or 1),
                parameters.duration_seconds,
                database.directory,
                rate=parameters.rate,
            )
            account = site.finish()
        verify.check_accounts(load, account)
        unanswered = load.unanswered.total()
        verify.check_rows(self._rows, verify.count_rows(database), account, unanswered)
        if not DRIVERS.get(scenario.driver).is_server:
            verify.check_file(database.path, ladder.journal_mode(scenario))
        sample = figures.sample(load, account, parameters.duration_seconds)
        sample.detail |= {"versions": one.facts["versions"]}
        sample.environment = report
        return sample


def _arguments(database: Database, parameters: WebParameters) -> dict[str, Any]:
    """What a process with the site's settings is told."""
    return {
        "environment": ladder.environment(database.scenario, database.path, parameters.atomic),
        "directory": str(database.directory),
        "driver": database.scenario.driver,
    }


def require_installed() -> None:
    """See that what the site runs on is there.

    Raises:
        UsageError: it is not.
    """
    absent = [name for name in NEEDED if util.find_spec(name) is None]
    if absent:
        names = " ".join(absent)
        raise UsageError(f"the site needs {names}; run `pip install {names}`")


class WebWorkload(Workload[WebParameters]):
    """See the module."""

    name = "web"
    title = "a Django site under load"
    parameters_type = WebParameters
    quick: ClassVar = {"clients": (1, 32), "duration_seconds": 2.0}
    axes: ClassVar = {
        "driver": ("stdlib", "oxlite"),
        "busy": ("backoff", "fair", "gate", "held"),
        "settings": AXES["settings"],
        "mix": AXES["mix"],
        "clients": (),
    }
    baselines: ClassVar[Sequence[Filter]] = (
        *(
            {"driver": "stdlib", "busy": "backoff", "settings": settings}
            for settings in (ladder.DEFAULTS, ladder.PUBLISHED)
        ),
    )
    selection: ClassVar[Sequence[Filter]] = (
        {"driver": "stdlib", "mix": "balanced"},
        *({"driver": "oxlite", "mix": "balanced", **one} for one in (HELD, BACKOFF, FAIR, GATE)),
        {"driver": "postgresql", "mix": "balanced"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = (
        *(
            {"driver": "stdlib", "mix": "balanced", "settings": settings}
            for settings in (ladder.DEFAULTS, ladder.PUBLISHED)
        ),
        {"driver": "oxlite", "mix": "balanced", **GATE},
    )
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=3600.0, warm_ups=0)
    quick_plan: ClassVar[Plan] = Plan(repeats=1, time_budget_seconds=60.0, warm_ups=0)
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    tables: ClassVar[Sequence[Drawable]] = TABLES

    def grids(self, parameters: WebParameters) -> Sequence[Grid]:
        """See the base class: the ladder of Django's own backend, Oxlite's, and PostgreSQL's."""
        own = {
            "driver": ("stdlib",),
            "busy": ("backoff",),
            "settings": tuple(name for name, _ in ladder.STEPS),
            "mix": self.axes["mix"],
            "clients": tuple(map(str, parameters.clients)),
        }
        ours = {**own, "driver": ("oxlite",), "settings": (ladder.ENGINE,)}
        return (
            own,
            {**ours, "busy": ("held", "backoff", "fair"), "settings": (ladder.ROLLBACK,)},
            {**ours, "busy": ("gate", "fair", "backoff")},
            {"driver": ("postgresql",), "mix": own["mix"], "clients": own["clients"]},
        )

    def work_digest(self, parameters: WebParameters) -> str:
        """See the base class."""
        shape = {**asdict(parameters), "generator": None}
        return hashlib.sha256(repr(sorted(shape.items())).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: WebParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        with PostgresServer(scratch) as postgresql:
            yield WebSession(parameters, scratch, postgresql)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        rate, failed = (
            number(sample.figures[metric.name]) for metric in (figures.RATE, figures.FAILED_PERCENT)
        )
        return f"{rate} requests/s, {failed} % failed"
