"""The driver for the dialect, as PEP 249 has it: ``oxlite.sqlite3``, opened by ``oxlite.connect``.

The dialect asks its DBAPI module for connections, as SQLAlchemy expects, so another module can
stand in for it (``create_engine(module=…)``). ``connect`` is looked up when it is called, so that
whoever wraps it, as instrumentation does, is seen.
"""

from typing import Any

import oxlite
from oxlite.sqlite3 import (
    PARSE_COLNAMES,
    PARSE_DECLTYPES,
    Binary,
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
    apilevel,
    paramstyle,
    sqlite_version,
    sqlite_version_info,
    threadsafety,
)

__all__ = [
    "PARSE_COLNAMES",
    "PARSE_DECLTYPES",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Row",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "sqlite_version",
    "sqlite_version_info",
    "threadsafety",
]


def connect(*arguments: Any, **options: Any) -> Connection:
    """Open a connection: ``oxlite.connect``, as it is now."""
    return oxlite.connect(*arguments, **options)
