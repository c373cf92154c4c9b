"""Isolation levels: when a transaction begins, and how.

============================ ======================================================================
level                        what it is on SQLite
============================ ======================================================================
``READ COMMITTED`` (default) Each read before the first write sees the newest commit and takes no
                             write lock. The first write, ``SELECT … FOR UPDATE``, DDL or SAVEPOINT
                             begins IMMEDIATE; from there on the transaction is serialised.
``SERIALIZABLE``             ``BEGIN IMMEDIATE`` from the start: nobody else writes until its end.
``SNAPSHOT``                 ``BEGIN DEFERRED``: one snapshot. A write on a snapshot that is not
                             the newest any more raises ``oxlite.StaleSnapshotError``.
``READ UNCOMMITTED``         As READ COMMITTED, with ``PRAGMA read_uncommitted``, which matters only
                             to connections that share a cache.
``AUTOCOMMIT``               Every statement by itself.
============================ ======================================================================

Who begins: a level that begins at the start does so in ``begin_transaction``; else the driver
begins before INSERT, UPDATE, DELETE and REPLACE, as its ``isolation_level`` says, and
``begin_to_write`` before the other statements that need a transaction, which the driver (like the
standard library's) does not look for. The driver's attribute is set at every level, so that
somebody who uses the driver's connection directly is inside a transaction as well, and one that
SQLite has ended in the middle (``ON CONFLICT ROLLBACK``) is followed by a new one and not by
commits of single statements.

Sources: https://sqlite.org/lang_transaction.html, https://sqlite.org/isolation.html,
    https://docs.sqlalchemy.org/en/20/core/connections.html#setting-transaction-isolation-levels-including-dbapi-autocommit
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from sqlalchemy import exc
from sqlalchemy.engine import Dialect
from sqlalchemy.engine.characteristics import ConnectionCharacteristic
from sqlalchemy.engine.interfaces import DBAPIConnection

if TYPE_CHECKING:
    from oxlite.sqlalchemy.dialect import SQLiteDialect_oxlite

__all__ = [
    "BLANK",
    "DEFAULT",
    "LEFT_TO_THE_DRIVER",
    "LEVELS",
    "DriverConnection",
    "Level",
    "ReadOnly",
    "Transactions",
    "begins",
    "reads_only",
]

_BeginMode = Literal["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"]


class DriverConnection(Protocol):
    """What is asked of a connection here: the driver's own, or its form for asyncio."""

    isolation_level: _BeginMode | None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Run one statement."""

    def end_reads(self) -> bool:
        """Stop the reads that are in the middle of their rows."""


class Level(NamedTuple):
    """What an isolation level does.

    Attributes:
        at_start: The statement that begins its transactions; ``None`` if they begin with the first
            write, or not at all.
        implicit: How a transaction begins where ``at_start`` has not begun one; ``None`` for not at
            all.
        read_uncommitted: The value of ``PRAGMA read_uncommitted``.
    """

    at_start: str | None
    implicit: _BeginMode | None
    read_uncommitted: bool = False


DEFAULT: Final = "READ COMMITTED"
LEVELS: Final = {
    "READ COMMITTED": Level(None, "IMMEDIATE"),
    "SERIALIZABLE": Level("BEGIN IMMEDIATE", "IMMEDIATE"),
    "SNAPSHOT": Level("BEGIN DEFERRED", "DEFERRED"),
    "READ UNCOMMITTED": Level(None, "IMMEDIATE", read_uncommitted=True),
    "AUTOCOMMIT": Level(None, None),
}


class Transactions:
    """The level of each connection of an engine, and the beginning of its transactions.

    Args:
        refuse_writes: Has a connection refuse to write, or not any more, as it is told.

    Attributes:
        any_begins_at_start: Whether a connection was ever at a level that begins its transactions
            at the start. If not, none has to be looked for.
        only_reads: Whether this is an engine of readers: its connections cannot write, whatever is
            executed on them, so nothing is switched on or off.
    """

    def __init__(self, refuse_writes: Callable[[DriverConnection, bool], None]) -> None:
        self._refuse_writes = refuse_writes
        self.only_reads = False
        self.any_begins_at_start = False
        self._levels: WeakKeyDictionary[DriverConnection, str] = WeakKeyDictionary()
        self._read_only: WeakKeyDictionary[DriverConnection, bool] = WeakKeyDictionary()
        # Of those whose transactions begin at the start.
        self._at_start: WeakKeyDictionary[DriverConnection, str] = WeakKeyDictionary()

    def level(self, connection: DriverConnection) -> str:
        """The connection's isolation level by name."""
        return self._levels.get(connection, DEFAULT)

    def adopt(self, connection: DriverConnection) -> None:
        """Put a connection that was opened by somebody else (``creator``) at the default level."""
        if connection not in self._levels:
            self.set_level(connection, DEFAULT)

    def set_level(self, connection: DriverConnection, name: str) -> None:
        """Put a connection at the level of that name.

        Args:
            connection: One that is in no transaction.
            name: A key of ``LEVELS``.
        """
        level = LEVELS[name]
        if level.read_uncommitted != LEVELS[self.level(connection)].read_uncommitted:
            connection.execute(f"PRAGMA read_uncommitted = {level.read_uncommitted:d}")
        self._levels[connection] = name
        self._set_beginnings(connection)

    def is_read_only(self, connection: DriverConnection) -> bool:
        """Whether the connection has been told not to write."""
        return self._read_only.get(connection, False)

    def set_read_only(self, connection: DriverConnection, value: bool) -> None:
        """Have a connection refuse to write (``PRAGMA query_only``), or not any more."""
        if self.is_read_only(connection) == value:
            return
        if not self.only_reads:
            self._refuse_writes(connection, value)
        self._read_only[connection] = value
        self._set_beginnings(connection)

    def _set_beginnings(self, connection: DriverConnection) -> None:
        at_start, implicit, _ = LEVELS[self.level(connection)]
        # IMMEDIATE would ask for the write lock, which such a connection is refused.
        if implicit is not None and self.is_read_only(connection):
            at_start, implicit = "BEGIN DEFERRED", "DEFERRED"
        connection.isolation_level = implicit
        if at_start is None:
            self._at_start.pop(connection, None)
        else:
            self._at_start[connection] = at_start
            self.any_begins_at_start = True

    def begin_transaction(self, connection: DriverConnection) -> None:
        """Begin what the level begins at the start of a transaction.

        A transaction that an event listener has begun is left as it is.

        Raises:
            oxlite.LockedError: The write lock is not to be had within ``timeout``.
        """
        statement = self._at_start.get(connection)
        if statement is not None and not connection.in_transaction:
            connection.execute(statement)

    def begin_to_write(self, connection: DriverConnection) -> None:
        """Begin the transaction of a connection that has only read so far.

        Raises:
            oxlite.LockedError: The write lock is not to be had within ``timeout``.
            oxlite.StaleSnapshotError: A result that is not fetched to its end holds an old
                snapshot.
        """
        implicit = connection.isolation_level
        if implicit is not None and not connection.in_transaction:
            connection.execute(f"BEGIN {implicit}")


class ReadOnly(ConnectionCharacteristic):
    """The execution option ``sqlite_read_only``: a snapshot in which nothing can be written.

    For a connection or an engine. Transactions begin DEFERRED whatever the level (at AUTOCOMMIT
    there are none), and every write is refused. Taken back when the connection returns to its pool.

    Source: https://sqlite.org/pragma.html#pragma_query_only
    """

    transactional = True

    def reset_characteristic(self, dialect: Dialect, dbapi_conn: DBAPIConnection) -> None:
        """Let the connection write again."""
        _transactions(dialect).set_read_only(_driver(dbapi_conn), False)

    def set_characteristic(
        self, dialect: Dialect, dbapi_conn: DBAPIConnection, value: object
    ) -> None:
        """Have the connection refuse to write, or not any more.

        Raises:
            sqlalchemy.exc.ArgumentError: The value is neither ``True`` nor ``False``.
        """
        if not isinstance(value, bool):
            raise exc.ArgumentError(f"sqlite_read_only must be True or False, not {value!r}")
        _transactions(dialect).set_read_only(_driver(dbapi_conn), value)

    def get_characteristic(self, dialect: Dialect, dbapi_conn: DBAPIConnection) -> bool:
        """Whether the connection refuses to write."""
        return _transactions(dialect).is_read_only(_driver(dbapi_conn))


def _transactions(dialect: "Dialect | SQLiteDialect_oxlite") -> Transactions:
    transactions: Transactions = dialect.transactions  # type: ignore[union-attr]
    return transactions


def _driver(connection: DBAPIConnection) -> DriverConnection:
    driver: Any = connection
    return driver  # type: ignore[no-any-return]


LEFT_TO_THE_DRIVER: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
"""How statements begin that need nothing: the driver begins before the writes by itself."""

BLANK: Final = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*"
"""What may stand before a statement, as a part of a regular expression with ``DOTALL``."""

_FIRST_WORD: Final = re.compile(rf"{BLANK}([a-z]+)", re.IGNORECASE | re.DOTALL)
_WRITING: Final = {"INSERT", "UPDATE", "DELETE", "REPLACE"}
_READING: Final = {"SELECT", "VALUES", "EXPLAIN"}
_BEGINNING: Final = _WRITING | {"CREATE", "DROP", "ALTER", "REINDEX", "ANALYZE", "SAVEPOINT"}

# What WITH is made of, as far as its main statement is to be found: comments and quoted names are
# stepped over, parentheses counted, words looked at.
_PIECE: Final = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]"""
    r"""|[()]|[^\W\d]\w*""",
    re.DOTALL,
)


def begins(statement: str) -> bool:
    """Whether a transaction must have begun before a statement, and the driver does not see to it.

    Statements that change how the connection works or cannot run inside a transaction (PRAGMA,
    ATTACH, VACUUM) begin none.
    """
    if statement.startswith(LEFT_TO_THE_DRIVER):
        return False
    found = _FIRST_WORD.match(statement)
    if found is None:
        return False
    word = found[1].upper()
    return word in _BEGINNING or (word == "WITH" and _main_word(statement, found.end()) in _WRITING)


def reads_only(statement: str) -> bool:
    """Whether a statement in SQL is a query, as far as can be told without preparing it."""
    found = _FIRST_WORD.match(statement)
    if found is None:
        return False
    word = found[1].upper()
    if word == "WITH":
        word = _main_word(statement, found.end())
    return word in _READING


def _main_word(statement: str, start: int) -> str:
    """What follows the common table expressions: SELECT, INSERT and so on."""
    depth = 0
    for found in _PIECE.finditer(statement, start):
        piece = found[0]
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
        elif depth == 0 and (word := piece.upper()) in _WRITING | _READING:
            return word
    return ""
