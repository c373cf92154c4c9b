"""The drop-in driver: the standard library's ``sqlite3``, name for name, on Oxlite's SQLite.

``from oxlite import sqlite3`` keeps the semantics and the defaults of the standard library's
module. What Oxlite adds (profiles, busy policies, pragmas that are read back) is asked for by
keyword and changes nothing otherwise. The classes live in the native module; this one holds what
PEP 249 wants at module level.

Invariant: nothing here reaches the standard library's ``sqlite3``, whose SQLite is another copy.
"""

import collections.abc as _abc
import datetime as _datetime
import time as _time

from oxlite._native import (
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
    ProgrammingError,
    Row,
    Warning,
    connect,
    enable_callback_tracebacks,
    sqlite_version,
)

__all__ = [
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
    "ProgrammingError",
    "Row",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "enable_callback_tracebacks",
    "paramstyle",
    "sqlite_version",
    "sqlite_version_info",
    "threadsafety",
]

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

Date = _datetime.date
Time = _datetime.time
Timestamp = _datetime.datetime
Binary = memoryview


def DateFromTicks(ticks: float) -> _datetime.date:  # noqa: N802 - PEP 249's name
    """Return the local date at ``ticks`` seconds since the epoch (PEP 249)."""
    return Date(*_time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> _datetime.time:  # noqa: N802 - PEP 249's name
    """Return the local time of day at ``ticks`` seconds since the epoch (PEP 249)."""
    return Time(*_time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> _datetime.datetime:  # noqa: N802 - PEP 249's name
    """Return the local date and time at ``ticks`` seconds since the epoch (PEP 249)."""
    return Timestamp(*_time.localtime(ticks)[:6])
