"""A process with the site's settings: it makes the blog, and shows what a connection is like.

Each process has one configuration, because Django has; so the lab itself never loads Django.
"""

import os
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
