"""Oxlite for asyncio: no blocked event loop, no thread for each connection.

- ``oxlite.aio.Database("app.db")``: ``oxlite.Database``, awaited: readers and one writer, run by
  native threads; what tasks write at the same time is committed together.
- ``oxlite.aio.connect("app.db")``: one connection, in the words of aiosqlite.

Both work on asyncio's own loops, on uvloop's, and under anyio on asyncio; with any number of loops.
The exceptions and constants that an application needs are here as well, so
``import oxlite.aio as aiosqlite`` is enough for one that was written for aiosqlite. So are its
modules, under their names: ``core``, ``cursor`` and ``context``.
"""

from oxlite.aio import context as context
from oxlite.aio import core as core
from oxlite.aio import cursor as cursor
from oxlite.aio.connection import Connection, Cursor, connect
from oxlite.aio.database import Database
from oxlite.database.result import Result
from oxlite.sqlite3 import (
    PARSE_COLNAMES,
    PARSE_DECLTYPES,
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
    apilevel,
    paramstyle,
    register_adapter,
    register_converter,
    sqlite_version,
    sqlite_version_info,
    threadsafety,
)

__all__ = [
    "PARSE_COLNAMES",
    "PARSE_DECLTYPES",
    "Connection",
    "Cursor",
    "DataError",
    "Database",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Result",
    "Row",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "register_adapter",
    "register_converter",
    "sqlite_version",
    "sqlite_version_info",
    "threadsafety",
]
