"""A process with a site's settings: it makes the blog, and shows what a connection is like.

Each process has one configuration, because Django has; so the lab itself never loads Django, nor
what the site with pools is made of.
"""

import os
from contextlib import closing
from typing import Any

from oxlite.bench.drivers.base import distribution_version
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.workloads.web.parameters import WebParameters


class BlogTask(ScenarioTask[WebParameters]):
    """The site, without a server."""

    parameters_type = WebParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._directory: str = arguments["directory"]
        os.environ.update(arguments["environment"])
        import django
        from django.db import connection

        django.setup()
        # The first connection makes the journal that the settings ask for, before any request.
        connection.ensure_connection()
        self._connection = connection
        self.exits.callback(connection.close)

    def ready(self) -> Message:
        """Which driver, which database, and which Django."""
        name = self._connection.vendor
        version = ".".join(map(str, self._connection.get_database_version()))
        own = {name: version, "django": distribution_version("django")}
        return {"versions": {**self.driver.versions(), **own}}

    def run(self, turn: Message, start_ns: int) -> None:
        """Make the tables and fill them."""
        from django.core.management import call_command

        made = {name: getattr(self.parameters, name) for name in ("users", "posts", "seed")}
        call_command("migrate", verbosity=0)
        call_command("seed_blog", stdout=None, **made)

    def collect(self) -> tuple[Message, bytes]:
        """There is nothing but the file."""
        return {}, b""

    def connection(self) -> tuple[Any, str]:
        """Django's connection, as every request has one."""
        self._connection.ensure_connection()
        return self._connection.connection, self._directory


class PooledTask(ScenarioTask[WebParameters]):
    """The site with pools, without a server; its tables are there."""

    parameters_type = WebParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._directory: str = arguments["directory"]
        from oxlite.bench.workloads.web.pooled.pools import pools_of

        pools = pools_of(arguments["environment"])
        self.exits.callback(pools.dispose)
        # As with Django: the first connection makes the journal, before any request.
        self._connection = self.exits.enter_context(closing(pools.engines[0].raw_connection()))

    def ready(self) -> Message:
        """Which driver, and what the site is made of."""
        own = {name: distribution_version(name) for name in ("flask", "sqlalchemy")}
        return {"versions": {**self.driver.versions(), **own}}

    def run(self, turn: Message, start_ns: int) -> None:
        """There is nothing to make."""

    def collect(self) -> tuple[Message, bytes]:
        """There is nothing but the file."""
        return {}, b""

    def connection(self) -> tuple[Any, str]:
        """The driver's connection, as the pool lends it."""
        return self._connection.driver_connection, self._directory
