"""The dialect ``sqlite+oxlite``.

SQLite as SQLAlchemy speaks it to the standard library's driver, on ``oxlite.connect``: a connection
has a profile, so its pragmas are set and verified by the driver and no listener is needed for them.

Invariant: a transaction is begun by the isolation level, here or in the driver, never by a read at
the default level.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from sqlalchemy import exc, pool
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL, Connection, Dialect, Engine
from sqlalchemy.engine.interfaces import (
    ConnectArgsType,
    DBAPIConnection,
    DBAPICursor,
    ExecutionContext,
    IsolationLevel,
)
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.sql import sqltypes
from sqlalchemy.sql.selectable import GenerativeSelect

import oxlite
from oxlite import sqlite3
from oxlite.connection import refuse_writes
from oxlite.own_tables import in_transaction
from oxlite.sqlalchemy.array_indexes import (
    indexes_of_table,
    names_of_indexes,
    reflected_indexes,
    refuse_another_table,
    statements_of,
)
from oxlite.sqlalchemy.arrays import (
    TYPE_NAME,
    ArrayAsText,
    ArrayCompiler,
    ReflectedArray,
    SQLiteDDLCompiler_oxlite,
    SQLiteTypeCompiler_oxlite,
    is_of_the_type,
)
from oxlite.sqlalchemy.errors import INHERITED, explain_read_only, is_disconnect, refusal_to_lock
from oxlite.sqlalchemy.functions import create_regexp
from oxlite.sqlalchemy.isolation import (
    DEFAULT,
    LEFT_TO_THE_DRIVER,
    LEVELS,
    DriverConnection,
    ReadOnly,
    Transactions,
    begins,
)
from oxlite.sqlalchemy.migrations import (
    dropped_table,
    explain_refused_commit,
    explain_refused_drop,
    refuse_what_loses,
)
from oxlite.sqlalchemy.options import (
    check_arguments,
    level_name,
    read_url,
    refuse_drivers_word,
)
from oxlite.sqlalchemy.pools import OneThreadPool, QueuePool

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIModule  # not in the first releases of 2.0

__all__ = ["SQLiteCompiler_oxlite", "SQLiteDialect_oxlite"]

_READ_ONLY: Final = "SQLITE_READONLY"


class SQLiteCompiler_oxlite(ArrayCompiler, SQLiteCompiler):
    """Compiles statements, and remembers those that ask for a lock."""

    locks_rows = False
    """Whether the statement has a FOR UPDATE. SQLite has no such clause: it begins to write."""

    def for_update_clause(self, select: GenerativeSelect, **kw: Any) -> str:
        """Write nothing, and remember that it was asked for.

        Raises:
            sqlalchemy.exc.CompileError: It says NOWAIT or SKIP LOCKED.
        """
        asked = select._for_update_arg
        if asked is not None and (asked.nowait or asked.skip_locked):
            what = "nowait" if asked.nowait else "skip_locked"
            raise exc.CompileError(
                f"with_for_update({what}=True): SQLite has one lock for the whole file, and no rows"
                " that are locked by themselves. Leave it out, and say how long to wait with"
                " ?timeout=… in the URL; oxlite.LockedError tells that it was in vain."
            )
        self.locks_rows = True
        return ""


class SQLiteDialect_oxlite(SQLiteDialect_pysqlite):
    """``sqlite+oxlite``: SQLite by ``oxlite.connect``.

    Attributes:
        transactions: The isolation level of each connection.
        engine_level: The isolation level of the engine, as far as is known before it connects.
        reader: The engine with this one's readers, if there is one.
    """

    driver = "oxlite"
    supports_statement_cache = True
    # Before SQLAlchemy 2.0.43 there is no such option.
    skip_autocommit_rollback = False
    statement_compiler = SQLiteCompiler_oxlite
    ddl_compiler = SQLiteDDLCompiler_oxlite
    type_compiler_cls = SQLiteTypeCompiler_oxlite
    colspecs = {  # noqa: RUF012 - as the class has it
        **SQLiteDialect_pysqlite.colspecs,
        sqltypes.ARRAY: ArrayAsText,
    }
    ischema_names = {  # noqa: RUF012
        **SQLiteDialect_pysqlite.ischema_names,
        TYPE_NAME: ReflectedArray,
    }
    connection_characteristics = SQLiteDialect_pysqlite.connection_characteristics.union(
        {"sqlite_read_only": ReadOnly()}
    )

    def __init__(self, isolation_level: IsolationLevel | None = None, **kwargs: Any) -> None:
        if isolation_level is not None:
            refuse_drivers_word(isolation_level)
            # SQLAlchemy compares it with what get_isolation_level() answers.
            isolation_level = cast(IsolationLevel, isolation_level.replace("_", " ").upper())
        super().__init__(isolation_level=isolation_level, **kwargs)
        self.transactions = Transactions(self._refuse_writes)
        self.engine_level: str = isolation_level or DEFAULT
        self.reader: Engine | None = None

    @classmethod
    def import_dbapi(cls) -> "DBAPIModule":
        """The driver, as PEP 249 has it."""
        from oxlite.sqlalchemy import dbapi

        return cast("DBAPIModule", dbapi)

    @classmethod
    def get_async_dialect_cls(cls, url: URL) -> type[Dialect]:
        """The class for ``create_async_engine``, which takes the same URL."""
        from oxlite.sqlalchemy.aio import SQLiteDialect_oxlite_async

        return SQLiteDialect_oxlite_async

    @classmethod
    def _is_url_file_db(cls, url: URL) -> bool:
        # SQLAlchemy knows mode=memory, and not that other way to write it.
        in_memory = (url.database or "").startswith("file::memory:") and "uri" in url.query
        return not in_memory and bool(super()._is_url_file_db(url))

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """``QueuePool`` for files; a database in memory is one connection of one thread."""
        return QueuePool if cls._is_url_file_db(url) else OneThreadPool

    def get_check_constraints(self, connection: Connection, *args: Any, **kw: Any) -> Any:
        """The CHECKs of a table, but for those that belong to the types of columns."""
        found = super().get_check_constraints(connection, *args, **kw)  # type: ignore[no-untyped-call]
        return [check for check in found if not is_of_the_type(check["sqltext"])]

    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """The indexes of a table, those of arrays among them."""
        found = super().get_indexes(connection, table_name, schema=schema, **kw)  # type: ignore[no-untyped-call]
        return [*found, *reflected_indexes(connection, table_name, schema)]

    def get_table_names(self, connection: Connection, *args: Any, **kw: Any) -> Any:
        """The tables of a database, but for those that are indexes of arrays."""
        found = super().get_table_names(connection, *args, **kw)  # type: ignore[no-untyped-call]
        schema = args[0] if args else kw.get("schema")
        indexes = names_of_indexes(connection, schema)
        return [name for name in found if name not in indexes]

    def retrieve_dbapi_version(self, dbapi: "DBAPIModule") -> Any:
        """Oxlite's version; that of SQLite is ``server_version_info``."""
        from sqlalchemy import util

        return util.parse_version_string(oxlite.__version__)

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        """Read the URL.

        Raises:
            sqlalchemy.exc.ArgumentError: An option in it is unknown, belongs elsewhere, or cannot
                be read.
        """
        opening = read_url(url)
        arguments = opening.arguments
        # A pool hands a connection from thread to thread, one at a time.
        arguments.setdefault("check_same_thread", not self._is_url_file_db(url))
        self.learn_level(arguments)
        return [opening.database], arguments

    def learn_level(self, arguments: Mapping[str, Any]) -> None:
        """Remember the isolation level that arguments for ``connect`` say, if the engine has none.

        Raises:
            sqlalchemy.exc.ArgumentError: There is no such level.
        """
        if self._on_connect_isolation_level is None and "isolation_level" in arguments:
            self.engine_level = level_name(arguments["isolation_level"])

    def connect(self, *cargs: Any, **cparams: Any) -> DBAPIConnection:
        """Open a connection.

        Raises:
            sqlalchemy.exc.ArgumentError: What ``connect_args`` says is wrong; no file has been
                touched.
            oxlite.sqlite3.Error: It could not be opened.
        """
        check_arguments(cparams)
        level = level_name(cparams.pop("isolation_level", DEFAULT))
        try:
            connection = self._open(*cargs, **cparams)
        except (ValueError, TypeError) as error:
            raise exc.ArgumentError(str(error)) from error
        self.transactions.set_level(connection, level)
        return cast(DBAPIConnection, connection)

    def _open(self, *cargs: Any, **cparams: Any) -> DriverConnection:
        return _driver(self.loaded_dbapi.connect(*cargs, **cparams))

    def on_connect(self) -> Callable[[DBAPIConnection], None]:
        """Prepare each new connection, whoever has opened it."""
        functions = super().on_connect()

        def prepare(connection: DBAPIConnection) -> None:
            functions(connection)
            self.create_regexp(connection)
            self.transactions.adopt(_driver(connection))

        return prepare

    def create_regexp(self, connection: DBAPIConnection) -> None:
        """Put the driver's ``REGEXP`` in the place of SQLAlchemy's."""
        create_regexp(cast(sqlite3.Connection, connection))

    def get_isolation_level_values(self, dbapi_connection: DBAPIConnection) -> list[IsolationLevel]:
        """The names of the levels there are."""
        return cast(list[IsolationLevel], list(LEVELS))

    def set_isolation_level(self, dbapi_connection: DBAPIConnection, level: IsolationLevel) -> None:
        """Put a connection at a level."""
        self.transactions.set_level(_driver(dbapi_connection), level)

    def get_isolation_level(self, dbapi_connection: DBAPIConnection) -> IsolationLevel:
        """The level that a connection is at."""
        return cast(IsolationLevel, self.transactions.level(_driver(dbapi_connection)))

    def do_begin(self, dbapi_connection: PoolProxiedConnection) -> None:
        """Begin a transaction, at the levels that begin one at the start.

        Raises:
            oxlite.LockedError: The write lock is not to be had within ``timeout``.
        """
        # Without calls where it can be, as the two below: every transaction comes by.
        if self.transactions.any_begins_at_start:
            self.transactions.begin_transaction(_driver(dbapi_connection.dbapi_connection))

    def do_commit(self, dbapi_connection: PoolProxiedConnection) -> None:
        """Commit; a transaction that cannot be is rolled back.

        SQLite keeps it open (a deferred foreign key may still be mended), but to SQLAlchemy a
        transaction is over with its COMMIT: what comes next would become part of the failed one.

        Raises:
            oxlite.sqlite3.IntegrityError: A deferred constraint is violated.
            oxlite.CommitOutcomeUnknown: The disk has failed in the middle of it.
        """
        connection: Any = dbapi_connection.dbapi_connection
        try:
            connection.commit()
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                explain_refused_commit(_driver(connection), error)
            with suppress(sqlite3.Error):
                connection.rollback()
            raise

    def do_rollback(self, dbapi_connection: PoolProxiedConnection) -> None:
        """Roll back, and end what still reads; the pool does so too when a connection comes back.

        A result that was left in the middle would keep its snapshot, for whoever comes next. A
        transaction that a fork has left with the parent is the parent's.
        """
        connection: Any = dbapi_connection.dbapi_connection
        try:
            connection.end_reads()
            if self.skip_autocommit_rollback and self.detect_autocommit_setting(connection):
                return
            # By the pool's proxy, where SQLAlchemy's own suite listens for it.
            dbapi_connection.rollback()
        except sqlite3.ProgrammingError as error:
            if INHERITED not in str(error):
                raise

    def do_close(self, dbapi_connection: DBAPIConnection) -> None:
        """Close a connection; what a fork has brought into this process is left alone."""
        try:
            super().do_close(dbapi_connection)  # type: ignore[no-untyped-call]
        except sqlite3.ProgrammingError as error:
            if INHERITED not in str(error):
                raise

    def do_execute(
        self,
        cursor: DBAPICursor,
        statement: str,
        parameters: Any,
        context: ExecutionContext | None = None,
    ) -> None:
        """Run one statement, in a transaction if it needs one.

        Raises:
            oxlite.sqlite3.Error: What SQLite said; of a write that is refused, also by which
                setting. Or what a migration would lose: see ``refuse_what_loses``.
        """
        # Without calls where it can be: it is on the way of every statement.
        if not statement.startswith(LEFT_TO_THE_DRIVER):
            if begins(statement):
                self.transactions.begin_to_write(_connection_of(cursor))
            refuse_what_loses(_connection_of(cursor), statement)
            if several := _several(_connection_of(cursor), statement, context):
                self._execute_several(cursor, several)
                return
        if context is not None and getattr(context.compiled, "locks_rows", False):
            self._lock(_connection_of(cursor))
        try:
            cursor.execute(statement, parameters)
        except sqlite3.OperationalError as error:
            self._raise_explained(error, cursor)
        except sqlite3.IntegrityError as error:
            explain_refused_drop(_connection_of(cursor), statement, error)
            raise

    def _execute_several(self, cursor: DBAPICursor, statements: list[str]) -> None:
        """Run what stands for one statement as a whole, or not at all."""
        connection = _connection_of(cursor)
        with _as_a_whole(connection):
            for statement in statements:
                try:
                    cursor.execute(statement)
                except sqlite3.OperationalError as error:
                    self._raise_explained(error, cursor)
                except sqlite3.IntegrityError as error:
                    explain_refused_drop(connection, statement, error)
                    raise

    def do_execute_no_params(
        self, cursor: DBAPICursor, statement: str, context: ExecutionContext | None = None
    ) -> None:
        """Run one statement that has no parameters; as ``do_execute``."""
        self.do_execute(cursor, statement, (), context)

    def do_executemany(
        self,
        cursor: DBAPICursor,
        statement: str,
        parameters: Sequence[Any],
        context: ExecutionContext | None = None,
    ) -> None:
        """Run one statement with many sets of parameters, in a transaction.

        Raises:
            oxlite.sqlite3.Error: What SQLite said; of a write that is refused, also by which
                setting.
        """
        if begins(statement):
            self.transactions.begin_to_write(_connection_of(cursor))
        try:
            cursor.executemany(statement, parameters)
        except sqlite3.OperationalError as error:
            self._raise_explained(error, cursor)

    def _refuse_writes(self, connection: DriverConnection, refuses: bool) -> None:
        """Have a connection refuse to write, or not any more."""
        refuse_writes(cast(Any, connection), refuses)

    def _lock(self, connection: DriverConnection) -> None:
        """Begin to write, which is what FOR UPDATE comes to.

        Raises:
            oxlite.sqlite3.OperationalError: The connection only reads.
        """
        if self.transactions.only_reads or self.transactions.is_read_only(connection):
            raise refusal_to_lock(self.transactions.is_read_only(connection))
        self.transactions.begin_to_write(connection)

    def _raise_explained(self, error: sqlite3.OperationalError, cursor: DBAPICursor) -> NoReturn:
        """Raise an error; if it says that nothing can be written, with the reason."""
        if getattr(error, "sqlite_errorname", "").startswith(_READ_ONLY):
            connection = _connection_of(cursor)
            (query_only,) = connection.execute("PRAGMA query_only").fetchone()
            explain_read_only(error, self.transactions.is_read_only(connection), bool(query_only))
        raise error

    def do_begin_twophase(self, connection: Connection, xid: object) -> NoReturn:
        """Refuse: SQLite has no such thing.

        Raises:
            sqlalchemy.exc.InvalidRequestError: Always.
        """
        raise exc.InvalidRequestError(
            "SQLite has no two-phase commit: a file has no server that could keep a prepared"
            " transaction. Open the session without twophase=True."
        )

    def is_disconnect(
        self,
        e: BaseException,
        connection: PoolProxiedConnection | DBAPIConnection | None,
        cursor: DBAPICursor | None,
    ) -> bool:
        """Whether a connection cannot be used any more, so that the pool should open others."""
        return is_disconnect(e)


def _several(
    connection: DriverConnection, statement: str, context: ExecutionContext | None
) -> list[str]:
    """The statements that are run for one: those of an index of arrays, or of its table's end."""
    if context is not None and getattr(context.compiled, "array_index", None) is not None:
        refuse_another_table(connection, context)
        return list(statements_of(statement))
    dropped = dropped_table(statement)
    indexes = [] if dropped is None else indexes_of_table(connection, *dropped)
    return [statement, *indexes] if indexes else []


@contextmanager
def _as_a_whole(connection: DriverConnection) -> Iterator[None]:
    """A block of statements, none of which stays if one fails, in whatever transaction is open."""
    with in_transaction(cast(sqlite3.Connection, connection)):
        connection.execute("SAVEPOINT oxlite_as_a_whole")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):  # the transaction may be over
                connection.execute("ROLLBACK TO oxlite_as_a_whole")
                connection.execute("RELEASE oxlite_as_a_whole")
            raise
        connection.execute("RELEASE oxlite_as_a_whole")


def _connection_of(cursor: DBAPICursor) -> DriverConnection:
    connection: DriverConnection = cast(Any, cursor).connection
    return connection


def _driver(connection: object) -> DriverConnection:
    return cast(DriverConnection, connection)
