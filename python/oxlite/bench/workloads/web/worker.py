"""A process with the site's settings: it makes the blog, and shows what a connection is like.

Each process has one configuration, because Django has; so the lab itself never loads Django.
"""

import os
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task


class BlogTask(Task):
    """The site, without a server."""

    def __init__(self, arguments: Message) -> None:
        self._directory = Path(arguments["directory"])
        self._driver = DRIVERS.get(arguments["driver"])
        os.environ.update(arguments["environment"])
        import django
        from django.db import connection

        django.setup()
        self._django = django
        self._connection = connection
        # The first connection makes the journal that the settings ask for, before any request.
        connection.ensure_connection()

    def ready(self) -> Message:
        """Which driver, which database, and which Django."""
        name = self._connection.vendor
        version = ".".join(map(str, self._connection.get_database_version()))
        own = {name: version, "django": self._django.get_version()}
        return {"versions": {**self._driver.versions(), **own}}

    def run(self, turn: Message, start_ns: int) -> None:
        """Make the tables and fill them."""
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        call_command("seed_blog", stdout=None, **turn)

    def collect(self) -> tuple[Message, bytes]:
        """There is nothing but the file."""
        return {}, b""

    def connection(self) -> tuple[Any, str]:
        """Django's connection, as every request has one."""
        self._connection.ensure_connection()
        return self._connection.connection, str(self._directory)

    def close(self) -> None:
        """See the base class."""
        self._connection.close()
