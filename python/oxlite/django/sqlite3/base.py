"""The backend: SQLite as Django speaks it, on ``oxlite.connect``.

What Django writes for SQLite is taken from its own backend; this module puts Oxlite's driver under
it, begins transactions, and keeps a forked child from its parent's connections.

Invariants: ``atomic()`` begins IMMEDIATE unless the settings or ``read_only()`` say otherwise, or
the connection refuses all writes, and nothing else takes the write lock before its first write;
``query_only`` is in force exactly as long as a transaction that only reads, unless the settings, or
a receiver of ``connection_created``, say it is always.
"""

import datetime
import decimal
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.db.backends import utils
from django.db.backends.sqlite3 import base as stock
from django.db.utils import DatabaseError, DatabaseErrorWrapper
from django.utils.asyncio import async_unsafe
from django.utils.dateparse import parse_date, parse_datetime, parse_time
from django.utils.functional import cached_property

import oxlite
from oxlite import _native
from oxlite import sqlite3 as Database  # noqa: N812 - Django's name for a driver
from oxlite.connection import confine, refuse_writes
from oxlite.django.current_transaction import note_beginning
from oxlite.django.next_transaction import next_is_read_only, without_read_only_next
from oxlite.django.sqlite3.client import DatabaseClient
from oxlite.django.sqlite3.creation import DatabaseCreation
from oxlite.django.sqlite3.cursors import (
    CursorWrapper,
    SQLiteCursorWrapper,
    SQLiteLoggedCursorWrapper,
)
from oxlite.django.sqlite3.features import DatabaseFeatures
from oxlite.django.sqlite3.functions import register_functions
from oxlite.django.sqlite3.introspection import DatabaseIntrospection
from oxlite.django.sqlite3.operations import DatabaseOperations
from oxlite.django.sqlite3.options import check_options
from oxlite.django.sqlite3.parked import Limits, identity, limits, parked_connections
from oxlite.django.sqlite3.schema import DatabaseSchemaEditor
from oxlite.django.sqlite3.validation import DatabaseValidation

__all__ = ["Database", "DatabaseWrapper", "SQLiteCursorWrapper", "SQLiteLoggedCursorWrapper"]

_in_datetimes: Final = _native.NativeConverter("datetime", stock.decoder(parse_datetime))
Database.register_converter("bool", _native.NativeConverter("bool", b"1".__eq__))
Database.register_converter("date", _native.NativeConverter("date", stock.decoder(parse_date)))
Database.register_converter("time", _native.NativeConverter("time", stock.decoder(parse_time)))
Database.register_converter("datetime", _in_datetimes)
Database.register_converter("timestamp", _in_datetimes)
Database.register_adapter(decimal.Decimal, str)
Database.register_adapter(datetime.date, stock.adapt_date)
Database.register_adapter(datetime.datetime, stock.adapt_datetime)

_PRAGMAS: Final[Mapping[str, bool]] = {
    "foreign_keys": True,
    "legacy_alter_table": False,
    # Django puts functions of its own (REGEXP, django_date_extract) into constraints, generated
    # columns and indexes; SQLite calls none from there that it was not told to trust.
    "trusted_schema": True,
}
"""What Django's schemas need of any profile but ``untrusted``."""

_READ_ONLY: Final = (
    "this transaction only reads: it is inside oxlite.django.read_only(), or a view's for a safe"
    " method (oxlite.django.middleware). Write outside of it, inside transaction.atomic(); a view"
    " that writes in answer to GET is marked with @oxlite.django.read_only_exempt"
)

_NEVER_WRITES: Final = (
    "this database is only read: its OPTIONS set query_only, in pragmas or in init_command, or a"
    " receiver of connection_created does"
)

_STILL_READING: Final = (
    "a result of this connection is still open (iterator(), or a cursor that was not read to its"
    " end), and nothing is written on top of its snapshot, which others have written after. Write"
    " inside the transaction.atomic() that contains the whole loop, or loop over a list of keys"
)


_FORKED_IN_TRANSACTION: Final = (
    " The process was forked inside transaction.atomic(), and no child is in its parent's"
    " transaction. In tests use TransactionTestCase: a TestCase is inside one all the time."
    " Elsewhere fork outside of atomic(), or let the child begin with"
    " django.db.connections.close_all()."
)

_FORKED_IN_MEMORY: Final = (
    " And a database in memory is one process's alone: name a file, in tests as"
    " settings.DATABASES[{alias!r}]['TEST']['NAME']."
)


@dataclass(slots=True)
class _Place:
    """Where a connection is parked."""

    key: str
    name: str
    limits: Limits
    file: tuple[int, int] | None = None


class _Process:
    """Which process this is, counted in forks: cheaper to look at than its id."""

    generation = 0

    @classmethod
    def forked(cls) -> None:
        cls.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


class DatabaseWrapper(stock.DatabaseWrapper):
    """A connection of a thread to a database, by Oxlite.

    Attributes:
        keeps_journal: A connection is opened without turning the file to WAL mode.
        journal_set: The journal mode that ``init_command`` or a receiver of ``connection_created``
            has asked for since; known of a connection that keeps the journal alone.
        begins_read_only: The next transaction is begun by ``read_only()``.
        transaction_number: How many transactions ``atomic()`` and ``set_autocommit(False)`` have
            begun.
        were_read_only: For each ``read_only()`` that has been entered, whether it was inside
            another one. A connection is a thread's own; one ``read_only()`` may be several's.
    """

    connection: Any
    run_on_commit: list[Any]
    savepoint_ids: list[Any]
    atomic_blocks: list[Any]
    Database = Database
    SchemaEditorClass = DatabaseSchemaEditor
    client_class = DatabaseClient
    creation_class = DatabaseCreation
    features_class = DatabaseFeatures
    introspection_class = DatabaseIntrospection
    ops_class = DatabaseOperations
    validation_class = DatabaseValidation

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keeps_journal = False
        self.journal_set: str | None = None
        self.begins_read_only = False
        self.were_read_only: list[bool] = []
        self._only_reads = False
        self._never_writes = False  # by the settings, or who prepares connections
        self._read_only_savepoint: str | None = None
        self.transaction_number = 0
        self._begins_by_itself = False  # as after set_autocommit(False)
        self._commits = 0
        self._changes_before = 0  # the transaction that is open
        self._changes_taken_back = 0
        self._generation = _Process.generation
        self._limits: Limits | None = None
        self._place: _Place | None = None
        self._settings: object = None
        self._key = ""
        self._is_prepared = False

    def get_connection_params(self) -> dict[str, Any]:
        """The arguments for ``oxlite.connect``.

        Raises:
            django.core.exceptions.ImproperlyConfigured: An option is unknown, belongs elsewhere, or
                has a value that it cannot have. No file has been touched.
        """
        options = self.settings_dict["OPTIONS"]
        check_options(self.alias, options)
        arguments: dict[str, Any] = super().get_connection_params()
        if "transaction_mode" not in options:
            self.transaction_mode = "IMMEDIATE"
        # The schema of a stranger's file is not Django's, and has to be trusted with nothing.
        own = {} if arguments.get("profile") == "untrusted" else _PRAGMAS
        arguments["pragmas"] = {**own, **(arguments.get("pragmas") or {})}
        if self.keeps_journal:
            arguments["journal"] = "keep"
        self._limits = limits(arguments.pop("pool", True))
        return arguments

    @async_unsafe
    def connect(self) -> None:
        """Open the connection, and do what receivers of ``connection_created`` do with it."""
        # Their transactions are not the one that a request only reads in.
        self._is_prepared = False
        with without_read_only_next():
            super().connect()
        if self._place is not None and type(self.connection) is Database.Connection:
            self._never_writes = _native.note_prepared(self.connection)
            self._is_prepared = True
        else:
            self._never_writes = _refuses_writes(self.connection)

    @async_unsafe
    def get_new_connection(self, conn_params: dict[str, Any]) -> oxlite.Connection:
        """A connection with Django's functions and what ``init_command`` says: parked, or opened.

        Raises:
            django.core.exceptions.ImproperlyConfigured: The driver does not take an option's value.
            oxlite.sqlite3.Error: The database cannot be opened; the message says why.
        """
        self._place = self._parking_place(conn_params)
        connection = self._parked()
        if connection is None:
            connection = self._open(conn_params)
            self._note_file()
        self._generation = _Process.generation
        self._only_reads = False
        self._read_only_savepoint = None
        self._changes_before = self._changes_taken_back = 0
        if not self.allow_thread_sharing:
            confine(connection, True)
        return connection

    def _open(self, conn_params: dict[str, Any]) -> oxlite.Connection:
        try:
            connection = oxlite.connect(**conn_params)
        except (ValueError, TypeError) as error:
            raise ImproperlyConfigured(f"settings.DATABASES[{self.alias!r}]: {error}") from error
        try:
            if self.keeps_journal:
                self.journal_set = None
                connection.set_authorizer(self._note_journal)
            register_functions(connection)
            if connection.profile != "untrusted":
                # Django remakes a table with SELECTs that name columns which are not there (yet).
                connection.setconfig(Database.SQLITE_DBCONFIG_DQS_DML, True)
                connection.setconfig(Database.SQLITE_DBCONFIG_DQS_DDL, True)
            for command in self.init_commands:
                if command := command.strip():
                    connection.execute(command)
            self._never_writes = _refuses_writes(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _parking_place(self, conn_params: dict[str, Any]) -> "_Place | None":
        """Where such a connection may be parked; ``None`` if nowhere."""
        name = str(conn_params["database"])
        if (
            self._limits is None
            or self.keeps_journal  # its authorizer is this object's
            or self.is_in_memory_db()
            or name.startswith("file:")  # it may lead to anything
            or not name
        ):
            return None
        settings = conn_params, self.init_commands
        if settings != self._settings:  # they are the same for each request
            self._settings, self._key = settings, repr(settings)
        return _Place(self._key, name, self._limits)

    def _parked(self) -> oxlite.Connection | None:
        place = self._place
        if place is None:
            return None
        place.file = identity(place.name)
        return place.file and parked_connections.take(self.alias, place.key, place.file)

    def _note_file(self) -> None:
        """Which file was opened: sure if its name has led to none before, or to the same one."""
        if (place := self._place) is not None:
            found = identity(place.name)
            if found is None or place.file not in (None, found):
                self._place = None
            place.file = found

    def close_pool(self) -> None:
        """Close the connections to this database that are parked in this process."""
        parked_connections.close(self.alias)

    def inc_thread_sharing(self) -> None:
        """Let other threads use the connection."""
        super().inc_thread_sharing()
        self._confine()

    def dec_thread_sharing(self) -> None:
        """End that. Raises ``RuntimeError`` if it was not begun."""
        super().dec_thread_sharing()
        self._confine()

    def _confine(self) -> None:
        """Tell the driver whether this thread alone may end the connection's transactions."""
        is_its_thread = self._thread_ident == threading.get_ident()
        if self.connection is not None and self._generation == _Process.generation:
            confine(self.connection, is_its_thread and not self.allow_thread_sharing)

    def _note_journal(
        self, action: int, name: str | None, value: str | None, schema: str | None, _: str | None
    ) -> int:
        """An authorizer that allows everything, and notes the journal mode that is asked for."""
        of_the_file = action == Database.SQLITE_PRAGMA and (schema or "main").lower() == "main"
        if of_the_file and (name or "").lower() == "journal_mode" and value is not None:
            self.journal_set = value.lower()
        return Database.SQLITE_OK

    def create_cursor(self, name: str | None = None) -> "SQLiteCursorWrapper":
        """A cursor that takes Django's placeholders."""
        if self.queries_logged:
            logged: SQLiteLoggedCursorWrapper = self.connection.cursor(SQLiteLoggedCursorWrapper)
            logged.operations = self.ops
            return logged
        cursor: SQLiteCursorWrapper = self.connection.cursor(SQLiteCursorWrapper)
        return cursor

    def make_cursor(self, cursor: Any) -> Any:
        """Django's cursor around the driver's, or what somebody has put in its place."""
        if issubclass(CursorWrapper, utils.CursorWrapper):
            return CursorWrapper(cursor, self)
        return super().make_cursor(cursor)

    def ensure_connection(self) -> None:
        """Open a connection if there is none, or only one of the parent of this process.

        A child in the middle of its parent's ``atomic()`` gets none of its own, which would not be
        in that transaction, unless it has closed this one; nor is there another to a database in
        memory. The error says so.
        """
        if self._is_of_the_parent() and not (self.in_atomic_block or self.is_in_memory_db()):
            self.leave_to_parent()
        super().ensure_connection()

    def leave_to_parent(self) -> None:
        """Forget a connection that a fork has brought into this process, without closing it."""
        self.connection = None
        self.in_atomic_block = self.needs_rollback = False
        self.run_on_commit, self.savepoint_ids, self.atomic_blocks = [], [], []
        self._only_reads = False

    @async_unsafe
    def close(self) -> None:
        """Close the connection; a child of a fork forgets its parent's, and its transaction."""
        if self._is_of_the_parent() and not self.is_in_memory_db():
            self.leave_to_parent()
        super().close()

    def _is_of_the_parent(self) -> bool:
        return self.connection is not None and self._generation != _Process.generation

    def _close(self) -> None:
        if self._generation != _Process.generation:
            return
        place, self._place = self._place, None
        is_prepared, self._is_prepared = self._is_prepared, False
        is_sound = is_prepared and not (self.errors_occurred or self.in_atomic_block)
        if place is None or place.file is None or not is_sound:
            super()._close()
            return
        with self.wrap_database_errors:
            parked_connections.park(
                self.alias, place.key, place.file, self.connection, place.limits
            )

    def is_usable(self) -> bool:
        """Whether there is a connection that answers: not after a COMMIT of unknown outcome."""
        if self.connection is None:
            return False
        try:
            self.connection.execute("SELECT 1").fetchone()
        except Database.Error:
            return False
        return True

    def _set_autocommit(self, autocommit: bool) -> None:
        if autocommit and self._only_reads:
            self.set_read_only(False)
        with self.wrap_database_errors:
            # What the driver begins before a write, where Django has been told to begin nothing.
            self.connection.isolation_level = None if autocommit else self.transaction_mode or ""
        self._begins_by_itself = not autocommit
        if not autocommit:
            self._note_transaction()

    def kept(self) -> tuple[int, int]:
        """How many transactions were committed, and how many rows changed and not taken back.

        Two answers are equal if nothing was committed in between, by ``atomic()`` or outside of it.
        Inside ``atomic()`` no rows are counted. A transaction that only reads is none.
        """
        changes = 0
        if not (self.in_atomic_block or self.connection is None):
            with suppress(Database.Error):  # it was closed, or belongs to the parent
                changes = self.connection.total_changes - self._changes_taken_back
        return self._commits, changes

    def _commit(self) -> None:
        super()._commit()
        if not (self._only_reads or self._never_writes):
            self._commits += 1
        if self._begins_by_itself:
            self._note_transaction()

    def _rollback(self) -> None:
        super()._rollback()
        if self.connection is not None:
            self._changes_taken_back += self.connection.total_changes - self._changes_before
        if self._begins_by_itself:
            self._note_transaction()

    def _start_transaction_under_autocommit(self) -> None:
        if self.begins_read_only or next_is_read_only(self.alias):
            self._begin_read_only()
        elif self._never_writes:
            # SQLite would refuse the write lock, but only when this thread had come to its turn.
            self.cursor().execute("BEGIN DEFERRED")
        else:
            super()._start_transaction_under_autocommit()
        self._changes_before = self.connection.total_changes
        self._note_transaction()

    def _note_transaction(self) -> None:
        self.transaction_number += 1
        note_beginning(self, self.transaction_number)

    def _begin_read_only(self) -> None:
        self.begins_read_only = False
        self.set_read_only(True)
        try:
            self.cursor().execute("BEGIN DEFERRED")
        except BaseException:
            self.set_read_only(False)
            raise

    def _savepoint(self, sid: str) -> None:
        # Where a test has begun the transaction, the request's own is this savepoint.
        super()._savepoint(sid)
        if next_is_read_only(self.alias) and not self._only_reads:
            self.set_read_only(True)
            self._read_only_savepoint = sid

    def _savepoint_rollback(self, sid: str) -> None:
        try:
            super()._savepoint_rollback(sid)
        finally:
            self._end_savepoint(sid)

    def _savepoint_commit(self, sid: str) -> None:
        try:
            super()._savepoint_commit(sid)
        finally:
            self._end_savepoint(sid)

    def _end_savepoint(self, sid: str) -> None:
        if sid == self._read_only_savepoint:
            self._read_only_savepoint = None
            self.end_read_only()

    @cached_property
    def wrap_database_errors(self) -> "_ErrorWrapper":
        """What aliases the driver's errors into Django's."""
        return _ErrorWrapper(self)

    def note_rollback(self) -> None:
        """Have the rest of ``atomic()`` refused if SQLite has ended its transaction by itself.

        It does so when a statement that writes is interrupted (``statement_timeout``), for
        INSERT OR ROLLBACK, and where the disk is full. What followed would be kept at once.

        Source: https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction
        """
        # Without AUTOCOMMIT a transaction may not have begun yet, but a savepoint has begun one.
        begun = self.commit_on_exit or any(self.savepoint_ids)
        if self.in_atomic_block and begun and self.connection is not None:
            with suppress(Database.Error):  # it was closed, or belongs to the parent
                if not self.connection.in_transaction:
                    self.needs_rollback = True

    def explain(self, error: Database.Error) -> None:
        """Say with an error what is in the way that only Django's side knows."""
        if isinstance(error, Database.ProgrammingError):
            if self._is_of_the_parent():
                transaction = _FORKED_IN_TRANSACTION if self.in_atomic_block else ""
                memory = _FORKED_IN_MEMORY if self.is_in_memory_db() else ""
                error.args = (f"{error}{transaction}{memory.format(alias=self.alias)}",)
        elif isinstance(error, oxlite.StaleSnapshotError):
            # Of a transaction that has read before SQLite leaves what was begun.
            if self.connection is not None and not self.connection.in_transaction:
                error.args = (f"{error}: {_STILL_READING}",)
        elif getattr(error, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
            if self._never_writes:
                error.args = (f"{error}: {_NEVER_WRITES}",)
            elif self._only_reads:
                error.args = (f"{error}: {_READ_ONLY}",)

    @property
    def only_reads(self) -> bool:
        """Whether the connection refuses to write now."""
        return self._only_reads

    def set_read_only(self, only_reads: bool) -> None:
        """Have the connection refuse to write, or not any more.

        Past Django's cursors: it belongs to the transaction, and is no query of the application's.

        Raises:
            django.db.Error: The connection is closed, or belongs to the parent of this process.
        """
        with self.wrap_database_errors:
            refuse_writes(self.connection, only_reads)
        self._only_reads = only_reads

    def end_read_only(self) -> None:
        """Let the connection write again, if there still is one."""
        if self.connection is not None and self._only_reads:
            try:
                self.set_read_only(False)
            except DatabaseError:
                self._only_reads = False  # it was closed; the next one is a new one


class _ErrorWrapper(DatabaseErrorWrapper):
    """Turns the driver's errors into Django's, which say also what the site can do about them.

    All statements, rows and commits pass through it.
    """

    wrapper: DatabaseWrapper

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception_type is None:
            return
        self.wrapper.note_rollback()
        if isinstance(exception, Database.OperationalError | Database.ProgrammingError):
            self.wrapper.explain(exception)
        super().__exit__(exception_type, exception, traceback)


def _refuses_writes(connection: oxlite.Connection) -> bool:
    """Whether a connection was told to refuse all writes.

    Where the file cannot be written, SQLite and the driver know: no lock is taken there.
    """
    (query_only,) = connection.execute("PRAGMA query_only").fetchone()
    return bool(query_only)
