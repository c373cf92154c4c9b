"""``manage.py check --database default``: what is set and has no effect, and what will hurt later.

Invariants: no file of a database is opened but by SQLite; none is made, and none is written (the
files beside one may be made: the WAL's, the gate's), nor turned to another journal mode, but by
``init_command`` and by receivers of ``connection_created``.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from django.core.checks import CheckMessage, Error, Info, Warning
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.backends.base.validation import BaseDatabaseValidation
from django.db.utils import Error as DatabaseError

import oxlite
from oxlite import sqlite3
from oxlite.environment.errors import ReportError
from oxlite.environment.filesystem import file_system

__all__ = ["DatabaseValidation", "database_file"]

_WITHOUT_INDEX: Final = """
SELECT tables.name, keys."from"
FROM sqlite_master AS tables, pragma_foreign_key_list(tables.name) AS keys
WHERE tables.type = 'table' AND keys.seq = 0
  AND NOT EXISTS (
    SELECT 1
    FROM pragma_index_list(tables.name) AS indexes, pragma_index_info(indexes.name) AS parts
    WHERE NOT indexes.partial AND parts.seqno = 0 AND parts.name = keys."from"
  )
  AND NOT EXISTS (
    SELECT 1 FROM pragma_table_info(tables.name) AS columns
    WHERE columns.name = keys."from" AND columns.pk = 1 AND upper(columns.type) = 'INTEGER'
  )
ORDER BY 1, 2
"""
_SOMEBODY: Final = "code that prepares connections (a receiver of connection_created)"
_KEPT: Final = 'journal="keep"'
"""The driver's reason why a file was not turned to WAL mode: it was asked not to."""


class DatabaseValidation(BaseDatabaseValidation):
    """What a database and its settings are checked for."""

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Look at the database; see ``docs/django.md`` for what each message means."""
        found: list[CheckMessage] = [*super().check(**kwargs)]
        connection = self.connection
        file = database_file(connection.settings_dict["NAME"])
        was_open = connection.connection is not None
        try:
            if file is not None and not was_open:
                if file.parent.is_dir() and not file.exists():
                    connection.get_connection_params()
                    return found  # of what is not there yet only the options can be looked at
                connection.keeps_journal = True
            connection.ensure_connection()
            return [*found, *self._messages(file)]
        except (ImproperlyConfigured, DatabaseError) as error:
            return [*found, Error(f"{connection.alias}: {error}", id="oxlite.E001")]
        finally:
            if connection.keeps_journal:
                connection.keeps_journal = False
                connection.close()

    def _messages(self, file: Path | None) -> Iterator[CheckMessage]:
        yield from self._without_effect(in_file=file is not None)
        yield from self._without_waiting()
        yield from self._without_index()
        if file is not None:
            yield from self._far_away(file)
            yield from self._older_sqlites(file)

    def _not_turned(self, journal: str) -> CheckMessage:
        return Info(
            f"{self.connection.alias}: the file is in journal mode {journal}; the site's first"
            " connection turns it to WAL, this check has not.",
            hint="If the site has already run, somebody turns it back, or WAL mode is not possible"
            " there: the error output of the site says so.",
            id="oxlite.I001",
        )

    def _without_effect(self, *, in_file: bool) -> Iterator[CheckMessage]:
        connection = self.connection
        driver: oxlite.Connection = connection.connection
        asked = connection.settings_dict["OPTIONS"].get("pragmas") or {}
        keeps_journal = connection.settings_dict["OPTIONS"].get("journal") == "keep"
        hint = "Take it out of OPTIONS, or mend the reason."
        for name, requested, effective, reason in driver.settings:
            if reason == _KEPT and connection.keeps_journal and not keeps_journal:
                if connection.journal_set is None:
                    yield self._not_turned(effective)
            elif reason is not None and (in_file or name in asked):
                yield self._warning(
                    "W001", f"{name} = {requested} has no effect, it is {effective}: {reason}", hint
                )
        yield from self._undone()
        # Without a queue nobody stands in line, and a busy_handler would be asked whether to wait.
        queued = in_file and driver.queue_statistics() is not None
        no_gate = self._no_gate() if queued else None
        if no_gate is not None:
            yield self._warning(
                "W002",
                f"writers of other processes are not stood in line with: {no_gate}",
                "Let the application create files in the folder of the database.",
            )
        shared = driver.shared_commit_statistics()
        if shared is not None and shared["shared_commit_unavailable"]:
            yield self._warning(
                "W001",
                f"durable_commit = 'shared' has no effect: {shared['shared_commit_unavailable']}",
                hint,
            )

    def _without_waiting(self) -> Iterator[CheckMessage]:
        options = self.connection.settings_dict["OPTIONS"]
        busy = self.connection.connection.busy
        if "timeout" in options and busy in {"none", "handler"}:
            reason = "busy = 'none' never waits" if busy == "none" else "busy_handler decides"
            yield self._warning(
                "W001",
                f"timeout = {options['timeout']} has no effect: {reason}",
                "Take one of the two out of OPTIONS.",
            )

    def _no_gate(self) -> str | None:
        """Why processes do not stand in line; it is known once somebody has gone to the gate.

        By a connection of its own, which waits for nobody and writes nothing: the site's may be in
        the middle of a transaction. It leaves the journal as the site has it.
        """
        kept = {"timeout": 0.0, "journal": "keep"}
        arguments = {**self.connection.get_connection_params(), **kept}
        with closing(oxlite.connect(**arguments)) as visitor:
            visitor.isolation_level = None
            with suppress(sqlite3.OperationalError):  # locked, or there to be read only
                visitor.execute("BEGIN IMMEDIATE")
                visitor.execute("ROLLBACK")
            queue = visitor.queue_statistics()
        return queue["process_queue_unavailable"] if queue is not None else None

    def _undone(self) -> Iterator[CheckMessage]:
        """What the connection has otherwise than it was opened with, whoever has set it."""
        commands = " ".join(self.connection.init_commands).lower()
        # With the journal as it is: another connection would turn the site's file to WAL mode.
        arguments = {**self.connection.get_connection_params(), "journal": "keep"}
        with closing(oxlite.connect(**arguments)) as untouched:
            for name, requested, _, reason in self.connection.connection.settings:
                found = _value(self.connection.connection, name)
                if name != "journal_mode":
                    wanted = _value(untouched, name)
                elif reason is None or (
                    reason == _KEPT and self.connection.journal_set is not None
                ):
                    wanted = requested.lower()
                else:
                    continue  # it has its own message
                # A database in memory has some of them not, and answers with no row.
                if None not in (wanted, found) and wanted != found:
                    who = "init_command" if name in commands else _SOMEBODY
                    yield self._warning(
                        "W003",
                        f"{who} sets {name} = {found}, over the profile's {wanted}",
                        f"Write in OPTIONS {{'pragmas': {{{name!r}: …}}}}, and it is checked.",
                    )
            milliseconds = _value(self.connection.connection, "busy_timeout")
            if milliseconds != _value(untouched, "busy_timeout"):
                who = "init_command" if "busy_timeout" in commands else _SOMEBODY
                yield self._warning(
                    "W003",
                    f"{who} sets busy_timeout = {milliseconds}, so SQLite waits in its own way,"
                    " behind the queue and for as long again",
                    "Take it out, and write in OPTIONS {'timeout': …}, in seconds.",
                )

    def _without_index(self) -> Iterator[CheckMessage]:
        with self.connection.cursor() as cursor:
            cursor.execute(_WITHOUT_INDEX)
            keys = cursor.fetchall()
        for table, column in keys:
            yield self._warning(
                "W004",
                f"the foreign key {table}.{column} has no index",
                "Each DELETE of a row that it may refer to reads the whole table, with the write"
                " lock held. Leave db_index of the field as it is, or add an index.",
            )

    def _far_away(self, file: Path) -> Iterator[CheckMessage]:
        try:
            found = file_system(file.parent)
        except ReportError:
            return  # outside Linux psutil tells, which need not be installed
        if found["network"]:
            yield self._warning(
                "W005",
                f"{file.name} is on a network file system ({found['type']})",
                "Its locks and its memory shared between processes cannot be relied on, and the"
                " database may be corrupted. Put the file on a disk of this machine.",
            )

    def _older_sqlites(self, file: Path) -> Iterator[CheckMessage]:
        """Other entries of DATABASES that open this file with another SQLite."""
        for alias, settings in connections.settings.items():
            if database_file(settings["NAME"]) != file:
                continue
            with suppress(ImproperlyConfigured):  # its own check says so
                other = connections[alias]
                # Whatever its ENGINE is called: many a backend stands on Django's.
                if other.vendor == "sqlite" and other.Database is not sqlite3:
                    yield self._warning(
                        "W006",
                        f"the database {alias!r} opens {file.name} by another SQLite in this"
                        f" process, {other.Database.sqlite_version}",
                        "Give it the ENGINE oxlite.django.sqlite3.",
                    )

    def _warning(self, number: str, text: str, hint: str) -> CheckMessage:
        return Warning(f"{self.connection.alias}: {text}.", hint=hint, id=f"oxlite.{number}")


def _value(connection: oxlite.Connection, pragma: str) -> object:
    """What a pragma answers; None if nothing."""
    row = connection.execute(f"PRAGMA {pragma}").fetchone()
    return None if row is None else row[0]


def database_file(name: object) -> Path | None:
    """The file of a database by its NAME; None for one in memory or without a name."""
    text = str(name or "")
    if text in {"", ":memory:"}:
        return None
    if text.startswith("file:"):
        parts = urlsplit(text)
        if "mode=memory" in parts.query or "vfs=memdb" in parts.query:
            return None
        text = unquote(parts.path)
        if text in {"", ":memory:"}:
            return None
    return Path(text).resolve()
