"""The drop-in driver: the standard library's ``sqlite3``, name for name, on Oxlite's SQLite.

``from oxlite import sqlite3`` keeps the semantics and the defaults of the standard library's
module. What Oxlite adds (profiles, busy policies, statement timeouts, hooks, sessions) is asked for
by name and changes nothing otherwise. The classes live in the native module; this one holds what
PEP 249 wants at module level.

Invariant: nothing here reaches the standard library's ``sqlite3``, whose SQLite is another copy.
"""

import collections.abc as _abc
import importlib as _importlib
import sys as _sys

from oxlite._native import (
    LEGACY_TRANSACTION_CONTROL,
    PARSE_COLNAMES,
    PARSE_DECLTYPES,
    Blob,
    Connection,
    Cursor,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    PrepareProtocol,
    ProgrammingError,
    Row,
    Warning,
    adapt,
    adapters,
    complete_statement,
    connect,
    converters,
    enable_callback_tracebacks,
    register_adapter,
    register_converter,
    sqlite_version,
)
from oxlite.sqlite3 import constants as _constants
from oxlite.sqlite3 import deprecated as _deprecated
from oxlite.sqlite3 import times as _times
from oxlite.sqlite3.constants import *  # noqa: F403 - two hundred numbers
from oxlite.sqlite3.registrations import register_all_from
from oxlite.sqlite3.times import (
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__all__ = [
    "LEGACY_TRANSACTION_CONTROL",
    "PARSE_COLNAMES",
    "PARSE_DECLTYPES",
    "Binary",
    "Blob",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "PrepareProtocol",
    "ProgrammingError",
    "Row",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "adapt",
    "adapters",
    "apilevel",
    "complete_statement",
    "connect",
    "converters",
    "enable_callback_tracebacks",
    "paramstyle",
    "register_adapter",
    "register_all_from",
    "register_converter",
    "sqlite_version",
    "sqlite_version_info",
    "threadsafety",
]
__all__ += _constants.__all__
if _sys.version_info >= (3, 15):
    __all__ += ["SQLITE_KEYWORDS"]  # noqa: F405 - by __getattr__

apilevel = "2.0"
"""The version of PEP 249 that this module follows."""

paramstyle = "qmark"
"""How parameters are written: ``?``. SQLite takes ``?1``, ``:name``, ``@name``, ``$name`` too."""

threadsafety = 3
"""Threads may share module, connections and cursors.

A connection opened with ``check_same_thread=False`` is serialised by Oxlite's own lock: a thread
that finds it in use waits, without the GIL.
"""

sqlite_version_info: tuple[int, ...] = tuple(int(part) for part in sqlite_version.split("."))
"""The version of SQLite inside, as numbers."""

_abc.Sequence.register(Row)

Binary = memoryview
"""What wraps bytes for a BLOB; bytes themselves do as well."""

_times.register_adapters_and_converters()


def __getattr__(name: str) -> object:
    """Find what is not there from the beginning: ``dbapi2``, and what some Pythons alone have."""
    if name == "dbapi2":
        return _importlib.import_module("oxlite.sqlite3.dbapi2")
    return _deprecated.attribute(name)
