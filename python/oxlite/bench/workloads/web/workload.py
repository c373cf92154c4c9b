"""The ``web`` workload: a Django site on a real server, asked by 1 to 64 clients at once.

The blog begins with the same rows in every cell. Each request first updates somebody's
``last_seen_at``, so those that read write too. Clients ask in a closed loop; every answer is
accounted for by the clients, by the server and by the file.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import util
from typing import ClassVar

from oxlite.bench.errors import UsageError
from oxlite.bench.harness.model import Metric, Plan, Sample
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


class WebSession:
    """The blog to start from, made once, and the load generator, found once."""

    def __init__(self, parameters: WebParameters, scratch: Scratch) -> None:
        self._parameters = parameters
        self._scratch = scratch
        self._generator = generator.find(parameters.generator)
        require_installed()
        self._template = scratch.fresh("template").absolute() / "blog.db"
        self._create()
        self._rows = verify.count_rows(self._template)
        self._fsync_wanted = True

    def _create(self) -> None:
        parameters, scenario = self._parameters, Scenario("stdlib", settings=ladder.DEFAULTS)
        with WorkerGroup(self._template.parent) as group:
            environment = ladder.environment(scenario, self._template)
            group.start(TASK, {"environment": environment}, "own")
            group.wait_ready()
            made = {
                "users": parameters.users,
                "posts": parameters.posts,
                "seed": parameters.seed,
            }
            group.release(HUNG_SECONDS, made)
            group.stop()

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        parameters = self._parameters
        # Server and generator work in it, so it must not depend on where the lab does.
        directory = self._scratch.fresh(scenario.label).absolute()
        database = directory / "blog.db"
        copy_synced(self._template, database)
        environment = ladder.environment(scenario, database, parameters.atomic)
        report = None
        with WorkerGroup(directory) as group:
            # What settings say that cannot be done is said here, before there is a server.
            one = group.start(TASK, {"environment": environment}, scenario.build or "own")
            group.wait_ready()
            if with_environment:
                report = group.environment(one, scenario.driver, fsync=self._fsync_wanted)
                self._fsync_wanted = False
            group.stop()
        with server.served(environment, parameters, directory) as site:
            url = f"http://{server.LOOPBACK}:{site.port}/benchmark/{scenario.mix}"
            load = generator.run(
                self._generator,
                url,
                int(scenario.clients or 1),
                parameters.duration_seconds,
                directory,
            )
            account = site.finish()
        verify.check_accounts(load, account)
        unanswered = load.unanswered.total()
        journal_mode = ladder.journal_mode(scenario)
        verify.check_file(database, self._rows, account, journal_mode, unanswered)
        sample = figures.sample(load, account, parameters.duration_seconds)
        sample.detail |= {"versions": one.facts["versions"]}
        sample.environment = report
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


class WebWorkload(Workload[WebParameters]):
    """See the module."""

    name = "web"
    title = "a Django site under load"
    parameters_type = WebParameters
    quick: ClassVar = {"clients": (1, 32), "duration_seconds": 2.0}
    axes: ClassVar = {
        "driver": ("stdlib", "oxlite"),
        "busy": ("backoff", "fair", "gate"),
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
        {"driver": "oxlite", "busy": ladder.GATE, "mix": "balanced"},
    )
    quick_selection: ClassVar[Sequence[Filter]] = selection
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=3600.0, warm_ups=0)
    quick_plan: ClassVar[Plan] = Plan(repeats=1, time_budget_seconds=60.0, warm_ups=0)
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    tables: ClassVar[Sequence[Drawable]] = TABLES

    def grids(self, parameters: WebParameters) -> Sequence[Grid]:
        """See the base class: the ladder of Django's own backend, and Oxlite's."""
        own = {
            "driver": ("stdlib",),
            "busy": ("backoff",),
            "settings": tuple(name for name, _ in ladder.STEPS),
            "mix": self.axes["mix"],
            "clients": tuple(map(str, parameters.clients)),
        }
        ours = {**own, "driver": ("oxlite",), "settings": (ladder.ENGINE,)}
        return (own, {**ours, "busy": ("gate", "fair", "backoff")})

    def work_digest(self, parameters: WebParameters) -> str:
        """See the base class."""
        shape = {**asdict(parameters), "generator": None}
        return hashlib.sha256(repr(sorted(shape.items())).encode()).hexdigest()

    @contextmanager
    def session(
        self, parameters: WebParameters, scenarios: Sequence[Scenario], scratch: Scratch
    ) -> Iterator[Session]:
        """See the base class."""
        yield WebSession(parameters, scratch)

    def outcome(self, sample: Sample) -> str:
        """See the base class."""
        rate, failed = (
            number(sample.figures[metric.name]) for metric in (figures.RATE, figures.FAILED_PERCENT)
        )
        return f"{rate} requests/s, {failed} % failed"
