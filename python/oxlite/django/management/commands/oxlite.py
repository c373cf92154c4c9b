"""``manage.py oxlite …``: the command line of Oxlite, on the database of the settings.

The command line runs in a process of its own, so nothing of it is imported here.
"""

import subprocess
import sys
from argparse import REMAINDER, ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, connections

from oxlite.django.sqlite3.validation import database_file

__all__ = ["Command"]

_TAKES_A_DATABASE: Final = frozenset({"env"})
"""The commands whose first argument is a database."""


class Command(BaseCommand):
    """Hands its arguments on, with the database filled in."""

    help = (
        "Runs a command of Oxlite's command line on a database: manage.py oxlite env --json."
        " The command line is an extra: pip install 'oxlite[cli]'"
    )
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's form

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare them: the database's alias, and all that is handed on."""
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="the alias of the database; it stands before the command",
        )
        parser.add_argument("arguments", nargs=REMAINDER, help="a command of oxlite, and its own")

    def handle(self, *args: object, **options: Any) -> None:
        """Run the command line; its exit code is ours.

        Raises:
            django.core.management.CommandError: The database is not in a file.
        """
        command = list(options["arguments"])
        if command and command[0] in _TAKES_A_DATABASE and "--help" not in command:
            alias = options["database"]
            file = database_file(connections[alias].settings_dict["NAME"])
            if file is None:
                raise CommandError(f"settings.DATABASES[{alias!r}]['NAME'] names no file")
            command.insert(1, str(file))
        done = subprocess.run([sys.executable, "-m", "oxlite.cli", *command])
        if done.returncode:
            sys.exit(done.returncode)
