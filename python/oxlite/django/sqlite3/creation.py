"""Test databases, and their clones for tests that run in parallel.

For the standard library's driver Django copies the file of a test database, and of one in memory
nothing (a forked child has its parent's memory) or a file on the way. Here a file in WAL mode is
copied by SQLite, which knows what is in the WAL; and a forked child, which is refused its parent's
connections, is given what is in memory as an image. Copies are made past ``sqlite3.connect``, which
instrumentation may have wrapped: they are not the site's statements.

Invariant: no file of a database is left beside the name of another one.
"""

import multiprocessing
import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, ClassVar, Final

import django
from django.db.backends.sqlite3.creation import DatabaseCreation as StockDatabaseCreation

from oxlite.connection import driver_connection
from oxlite.sqlite3 import Connection

__all__ = ["DatabaseCreation"]

_BESIDE: Final = ("-wal", "-shm", "-journal", "-gate", "-activity", "-replica")
# What the release's runner of tests can do.
_BY_FILE: Final = {"forkserver", "spawn"} if django.VERSION >= (6, 0) else {"spawn"}


class DatabaseCreation(StockDatabaseCreation):
    """Creates, clones and destroys test databases."""

    # Of databases in memory, by their names, for the children of this process: one that is a mirror
    # of another has that one's name.
    _images: ClassVar[dict[str, bytes]] = {}

    def _create_test_db(self, verbosity: int, autoclobber: bool, keepdb: bool = False) -> str:
        self.connection.close_pool()
        name: str = super()._create_test_db(verbosity, autoclobber, keepdb)
        self._remove_what_is_left(name)
        return name

    def get_test_db_clone_settings(self, suffix: str) -> dict[str, Any]:
        """The settings of a clone.

        Raises:
            django.db.NotSupportedError: Processes are started in a way that is not known here.
        """
        settings: dict[str, Any] = self.connection.settings_dict
        by_file = multiprocessing.get_start_method() in _BY_FILE
        if by_file and self.is_in_memory_db(settings["NAME"] or ":memory:"):
            return {**settings, "NAME": f"{self.connection.alias}_{suffix}.sqlite3"}
        clone: dict[str, Any] = super().get_test_db_clone_settings(suffix)
        return clone

    def _clone_test_db(self, suffix: str, verbosity: int, keepdb: bool = False) -> None:
        self.connection.close_pool()
        source = self.connection.settings_dict["NAME"]
        target = self.get_test_db_clone_settings(suffix)["NAME"]
        in_memory = self.is_in_memory_db(source)
        self.connection.ensure_connection()
        if in_memory and multiprocessing.get_start_method() not in _BY_FILE:
            self._images[source] = self.connection.connection.serialize()
            return
        if Path(target).exists():
            if keepdb and not in_memory:
                return
            if verbosity >= 1:
                shown = self._get_database_display_str(verbosity, target)
                self.log(f"Destroying old test database for alias {shown}...")
            Path(target).unlink()
        self._remove_what_is_left(target)
        with closing(Connection(target)) as clone:
            self.connection.connection.backup(clone)

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        self.connection.close_pool()
        super()._destroy_test_db(test_database_name, verbosity)
        self._images.pop(test_database_name, None)
        self._remove_what_is_left(test_database_name)

    def setup_worker_connection(self, _worker_id: int) -> None:
        """Have this process, one of those that run tests, use its clone."""
        connection = self.connection
        settings = self.get_test_db_clone_settings(str(_worker_id))
        method = multiprocessing.get_start_method()
        if not self.is_in_memory_db(connection.settings_dict["NAME"]):
            connection.leave_to_parent()
            # In place, for django.db.connections and its other threads have the same dictionary.
            connection.settings_dict.update(settings)
            return
        if method in _BY_FILE:
            # A mirror has no clone of its own: it is the database that it mirrors.
            alias = connection.settings_dict["TEST"].get("MIRROR") or connection.alias
            clone = settings["NAME"].replace(f"{connection.alias}_", f"{alias}_", 1)
            with closing(Connection(f"file:{clone}?mode=ro", uri=True)) as file:
                image = file.serialize()
            name = f"file:memorydb_{alias}_{_worker_id}?mode=memory&cache=shared"
        else:
            source_name = connection.settings_dict["NAME"]
            image = self._images.get(source_name, b"")
            name = source_name.replace("?", f"_{_worker_id}?", 1)
        connection.leave_to_parent()
        connection.settings_dict.update({**settings, "NAME": name})
        connection.connect()
        # A mirror finds what the other has put there, or the other what the mirror has.
        if image and not connection.introspection.table_names():
            with closing(Connection(":memory:")) as source:
                source.deserialize(image)
                source.backup(driver_connection(connection.connection))
        self._mark_again(method)

    def _mark_again(self, method: str) -> None:
        """As Django does for its own suite, in releases whose runner does not."""
        if (
            method in _BY_FILE
            and django.VERSION < (6, 0)
            and os.environ.get("RUNNING_DJANGOS_TEST_SUITE") == "true"
        ):
            self.mark_expected_failures_and_skips()

    def _remove_what_is_left(self, name: str | Path) -> None:
        """Remove the files beside a database that is not there."""
        if not name or self.is_in_memory_db(name) or Path(name).exists():
            return
        for ending in _BESIDE:
            with suppress(FileNotFoundError):
                Path(f"{name}{ending}").unlink()
