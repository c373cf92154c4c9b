"""``manage.py oxlite …``: the command line of Oxlite, on databases and caches of the settings.

The command line runs in a process of its own, so nothing of it is imported here.
"""

import os
import signal
import subprocess
import sys
from argparse import REMAINDER, ArgumentParser
from typing import Any, Final

from django.conf import settings
from django.core.cache import DEFAULT_CACHE_ALIAS, caches
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, connections

from oxlite.django.cache import OxliteCache
from oxlite.django.sqlite3.validation import database_file

__all__ = ["Command"]

_DATABASE_COMES_AFTER: Final = {
    "backup": 1,
    "doctor": 1,
    "env": 1,
    "replicate": 2,
    "snapshot": 2,
    "tasks": 2,
    "top": 1,
}
"""After how many words the database comes. Of ``restore`` it is the last argument."""

_ENDS_WITHIN_SECONDS: Final = 5.0
"""How long the command line may take after Ctrl-C before it is told once more."""

_TAKES_A_CACHE: Final = "cache"
"""The command whose own commands take the file of a cache."""


class Command(BaseCommand):
    """Hands its arguments on, with the database filled in."""

    help = (
        "Runs a command of Oxlite's command line on a database: manage.py oxlite env --json."
        " The command line is an extra: pip install 'oxlite[cli]'"
    )
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's form

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare them: the aliases of database and cache, and all that is handed on."""
        parser.add_argument(
            "--database",
            action="append",
            choices=tuple(connections),
            help="the alias of the database; it stands before the command. replicate takes several",
        )
        parser.add_argument(
            "--cache",
            default=DEFAULT_CACHE_ALIAS,
            choices=tuple(settings.CACHES),
            help="the alias of the cache; it stands before the command",
        )
        parser.add_argument("arguments", nargs=REMAINDER, help="a command of oxlite, and its own")

    def handle(self, *args: object, **options: Any) -> None:
        """Run the command line; its exit code is ours.

        Raises:
            django.core.management.CommandError: The database is not in a file, or the cache none of
                Oxlite's.
        """
        command = list(options["arguments"])
        name = command[0] if command else ""
        takes_a_database = len(command) >= _DATABASE_COMES_AFTER.get(name, 99)
        if name == "restore":  # without a backup it would be taken for that
            takes_a_database = any(not word.startswith("-") for word in command[1:])
        if name == "replicate":
            takes_a_database = _complete_replicate(command)
        is_help = (
            "--help" in command[: command.index("--")] if "--" in command else ("--help" in command)
        )
        if takes_a_database and not is_help:
            aliases = options["database"] or [DEFAULT_DB_ALIAS]
            if len(aliases) > 1 and name != "replicate":
                raise CommandError(f"{name} takes one database: write --database once")
            place = _DATABASE_COMES_AFTER.get(name, len(command))
            command[place:place] = map(_file, aliases)
        if command[:1] == [_TAKES_A_CACHE] and len(command) > 1 and "--help" not in command:
            alias = options["cache"]
            backend = caches[alias]
            if not isinstance(backend, OxliteCache):
                raise CommandError(
                    f"settings.CACHES[{alias!r}] is no oxlite.django.cache.OxliteCache"
                )
            command.insert(2, str(backend.path))
        whole = [sys.executable, "-m", "oxlite.cli", *command]
        if name == "replicate":  # a service: signals are for it alone
            os.execv(sys.executable, whole)
        code = _run(whole)
        if code:
            sys.exit(code)


def _file(alias: str) -> str:
    """The file of a database. Raises ``CommandError`` if it is in none."""
    file = database_file(connections[alias].settings_dict["NAME"])
    if file is None:
        raise CommandError(f"settings.DATABASES[{alias!r}]['NAME'] names no file")
    return str(file)


def _complete_replicate(command: list[str]) -> bool:
    """Say ``run``, which may be left out, so that the database comes after it."""
    if len(command) == 1 or command[1].startswith("-"):
        if command[1:2] == ["--help"]:
            return False
        command.insert(1, "run")
    return True


def _run(command: list[str]) -> int:
    """Run it; its exit code. A terminal's Ctrl-C is for both, and it decides what comes of that."""
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        pass
    try:
        return process.wait(_ENDS_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:  # it was sent to this process alone
        process.send_signal(signal.SIGINT)
        return process.wait()
