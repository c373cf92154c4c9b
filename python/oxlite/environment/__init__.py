"""The environment report: everything a measured figure depends on.

A benchmark result without the settings, the build and the machine it came from
can be neither repeated nor compared. This room reads all of them: from the
very connection that is measured, and from the machine under it.

::

    server.py       what a PostgreSQL server says, where one is measured beside it
    connection.py   what a connection says about itself: versions, options, pragmas
    machine.py      processor, memory, kernel, Python, source revision
    filesystem.py   the file system under a directory
    fsync.py        the measured cost of a sync in that directory
    versions.py     which SQLites should not be let near a WAL
    assembly.py     the whole report, and the report of a database by its path
    tables.py       the report for a terminal (the only module that needs rich)

Invariants: reading alters neither the connection nor the database; no file of
a database is ever opened except by SQLite; the report names neither the host
nor its users, and holds only what JSON holds. Importing ``oxlite`` does not
import this room; importing this room imports neither rich nor psutil.
"""

from typing import TYPE_CHECKING, Any

from oxlite.environment.assembly import SCHEMA, checks_passed, inspect_database, report
from oxlite.environment.connection import (
    CONFIGURATION_PRAGMAS,
    SCANNING_PRAGMAS,
    Queryable,
    connection_report,
)
from oxlite.environment.errors import ReportError
from oxlite.environment.fsync import measure_fsync
from oxlite.environment.machine import machine_report
from oxlite.environment.server import SERVER_SETTINGS, server_report

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "CONFIGURATION_PRAGMAS",
    "SCANNING_PRAGMAS",
    "SCHEMA",
    "SERVER_SETTINGS",
    "Queryable",
    "ReportError",
    "checks_passed",
    "connection_report",
    "inspect_database",
    "machine_report",
    "measure_fsync",
    "render",
    "report",
    "server_report",
]


def render(report: dict[str, Any]) -> "RenderableType":
    """The report as tables for a terminal of 80 columns or more.

    Args:
        report: what :func:`report` or :func:`inspect_database` returned, also
            after a round trip through JSON.

    Raises:
        ReportError: rich is not installed.
    """
    try:
        from oxlite.environment.tables import tables
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "rich":
            raise
        raise ReportError.missing("rich") from error
    return tables(report)
