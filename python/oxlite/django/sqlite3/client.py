"""``manage.py dbshell``.

The ``sqlite3`` program as Django has it, with a warning for whoever sits at a terminal where it is
old enough to corrupt a database in WAL mode; where it is missing, the shell that comes with the
driver.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError
from django.db.backends.sqlite3.client import DatabaseClient as StockDatabaseClient

from oxlite.environment.versions import can_corrupt_wal

__all__ = ["DatabaseClient", "program_version"]


class DatabaseClient(StockDatabaseClient):
    """Says which program is the shell."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[Any], None]:
        """The command line of the shell.

        Raises:
            django.core.management.CommandError: The program is missing, and the driver's shell does
                not take these parameters.
        """
        name = str(settings_dict["NAME"])
        program = shutil.which(cls.executable_name)
        if program is None:
            return [*_own_shell(cls.executable_name, name, [*parameters])], None
        version = program_version(program) if _is_at_a_terminal() else None
        if version is not None and can_corrupt_wal(version):
            number = ".".join(map(str, version))
            print(
                f"Warning: {program} is SQLite {number}, which can corrupt a database in WAL mode"
                " when a checkpoint of its own meets another's"
                " (https://sqlite.org/wal.html#walresetbug). Install 3.51.3 or later, or do not"
                " write with it while the site runs.",
                file=sys.stderr,
                flush=True,
            )
        return [cls.executable_name, name, *parameters], None


def _is_at_a_terminal() -> bool:
    """Whether somebody types there and reads it; to a script a warning at each call is noise."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _own_shell(program: str, name: str, parameters: list[str]) -> list[str]:
    """The command line of the driver's shell, which takes one statement and no options.

    Raises:
        CommandError: Something else is asked of it.
    """
    if len(parameters) > 1 or any(parameter.startswith(("-", ".")) for parameter in parameters):
        raise CommandError(
            f"{' '.join(parameters)!r} is for the program {program}, which is not installed;"
            " without it dbshell takes one SQL statement. Install it (Debian: apt install sqlite3)."
        )
    return [sys.executable, "-m", "oxlite.sqlite3", name, *parameters]


def program_version(program: str) -> tuple[int, ...] | None:
    """The version of the SQLite in a program; None if it does not tell."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"\d+(?:\.\d+)+", done.stdout)
    return tuple(map(int, found[0].split("."))) if found else None
