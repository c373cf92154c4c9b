"""``manage.py dbshell``.

The ``sqlite3`` program as Django has it, unless it is missing or old enough to corrupt a database
in WAL mode; then the shell that comes with the driver.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from django.db.backends.sqlite3.client import DatabaseClient as StockDatabaseClient

from oxlite.django.versions import can_corrupt_wal

__all__ = ["DatabaseClient", "program_version"]


class DatabaseClient(StockDatabaseClient):
    """Says which program is the shell."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[Any], None]:
        """The command line of the shell."""
        version = program_version(cls.executable_name)
        name = settings_dict["NAME"]
        if version is not None and not can_corrupt_wal(version):
            return [cls.executable_name, name, *parameters], None
        return [sys.executable, "-m", "oxlite.sqlite3", name, *parameters], None


def program_version(name: str) -> tuple[int, ...] | None:
    """The version of the SQLite in a program; None if it is not there or does not tell."""
    program = shutil.which(name)
    if program is None:
        return None
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"\d+(?:\.\d+)+", done.stdout)
    return tuple(map(int, found[0].split("."))) if found else None
