"""The database that a scenario starts from, and its rows once the work is done, whoever keeps it.

A file is a copy of one that the standard library has made once for each journal, so that all
drivers start from the same bytes. PostgreSQL's is made and filled anew in the run's own server.

Invariant: a database that is started from is new, and no connection to it is open.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.pragmas import JOURNAL_MODES
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.scratch import Scratch, copy_synced
from oxlite.bench.scenarios.scenario import Scenario

TIMEOUT_SECONDS = 60.0

Fill = Callable[[Connection, Driver], None]
"""Makes the tables and what is in them from the start, in the words that the driver has for types.

Of a file the driver is the standard library's."""


@dataclass(frozen=True)
class Database:
    """The database of one measurement.

    Attributes:
        scenario: who works on it.
        path: the file; of PostgreSQL as its driver's ``open`` takes it.
        directory: for what else the measurement writes.
    """

    scenario: Scenario
    path: Path
    directory: Path

    def rows(self, query: str) -> list[Any]:
        """The rows of a query, read when nobody writes any more.

        Raises:
            VerificationError: the file is damaged.
        """
        driver = DRIVERS.get(self.scenario.driver)
        if driver.is_server:
            with closing(driver.open(self.path, self.scenario, TIMEOUT_SECONDS)) as connection:
                return connection.execute(query, ()).fetchall()
        return rows_of_file(self.path, query)


def rows_of_file(path: Path, query: str) -> list[Any]:
    """The rows of a query on a file that is sound.

    Raises:
        VerificationError: it is damaged.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
            if integrity != "ok":
                raise VerificationError(f"the database is damaged: {integrity}")
            return connection.execute(query).fetchall()
    except sqlite3.DatabaseError as error:
        raise VerificationError(f"the database cannot be read: {error}") from None


class Databases:
    """The databases of a run."""

    def __init__(self, scratch: Scratch, name: str, fill: Fill, server: PostgresServer) -> None:
        """Make nothing yet.

        Args:
            scratch: where they are.
            name: what they are called.
            fill: makes the tables.
            server: keeps those of PostgreSQL; it is started when the first is asked for.
        """
        self._scratch = scratch
        self._name = name
        self._fill = fill
        self._templates = scratch.fresh("templates")
        self._server = server

    def start(self, scenario: Scenario, journal: str) -> Database:
        """A new database for a measurement.

        Args:
            scenario: who will work on it.
            journal: a value of the axis of that name; PostgreSQL has none of it.

        Raises:
            WorkerError: PostgreSQL does not start.
        """
        directory = self._scratch.fresh(scenario.label)
        driver = DRIVERS.get(scenario.driver)
        if driver.is_server:
            path = self._server.database(self._name)
            with closing(driver.open(path, scenario, TIMEOUT_SECONDS)) as connection:
                self._fill(connection, driver)
        else:
            path = directory / f"{self._name}.db"
            copy_synced(self._template(journal), path)
        return Database(scenario, path, directory)

    def _template(self, journal: str) -> Path:
        path = self._templates / f"{journal}.db"
        if not path.exists():
            make_file(path, journal, self._fill)
        return path


def make_file(path: Path, journal: str, fill: Fill) -> None:
    """Make a file, by the standard library for every driver."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={JOURNAL_MODES[journal]}")
        fill(connection, DRIVERS.get("stdlib"))
