"""Oxlite: SQLite made ready to pull a production web application.

- ``from oxlite import sqlite3``: the standard library's driver, name for name, newer and faster.
- ``oxlite.connect("app.db")``: the same ``Connection`` with a production profile applied.
- ``oxlite.Database("app.db")``: readers and one writer of a database, for all threads.
- ``oxlite.profiles()``: what each profile sets.
- ``oxlite.harmless(text)``: what others have written, for a terminal or a log.
- ``oxlite.shared_commit_group("app.db")``: the processes that share the syncs of its commits.
- ``oxlite.retry``: runs a transaction again whose snapshot had become stale.

Importing ``oxlite`` loads the driver and nothing else: no framework, no command line, no lab.
"""

from oxlite import sqlite3
from oxlite._native import (
    CommitOutcomeUnknown,
    LockedError,
    PoolTimeout,
    Session,
    StaleSnapshotError,
    StatementTimeout,
    SyncFailedError,
    __version__,
    harmless,
    profiles,
    shared_commit_group,
    sqlite_source_id,
    sqlite_threadsafe,
)
from oxlite.database import Database
from oxlite.opening import connect
from oxlite.outcomes import Result
from oxlite.retrying import retry
from oxlite.sqlite3 import Connection, sqlite_version

__all__ = [
    "CommitOutcomeUnknown",
    "Connection",
    "Database",
    "LockedError",
    "PoolTimeout",
    "Result",
    "Session",
    "StaleSnapshotError",
    "StatementTimeout",
    "SyncFailedError",
    "__version__",
    "connect",
    "harmless",
    "profiles",
    "retry",
    "shared_commit_group",
    "sqlite3",
    "sqlite_source_id",
    "sqlite_threadsafe",
    "sqlite_version",
]
