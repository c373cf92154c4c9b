"""Oxlite: SQLite configured, verified and benchmarked for production web applications.

- ``from oxlite import sqlite3``: the standard library's driver, name for name, newer and faster.
- ``oxlite.connect("app.db")``: the same ``Connection`` with a production profile applied.
- ``oxlite.Database("app.db")``: readers and one writer of a database, for all threads.
- ``oxlite.profiles()``: what each profile sets.
- ``oxlite.options()``: what one may say when opening a database.
- ``oxlite.harmless(text)``: what others have written, for a terminal or a log.
- ``oxlite.shared_commit_group("app.db")``: the processes that share the syncs of its commits.
- ``oxlite.NETWORK_FILE_SYSTEMS``: the types of network file systems.
- ``oxlite.retry``: runs a transaction again whose snapshot had become stale.

Importing ``oxlite`` loads the driver and nothing else: no framework, no command line, no lab.
"""

try:
    from oxlite import sqlite3
    from oxlite._native import (
        NETWORK_FILE_SYSTEMS,
        CommitOutcomeUnknown,
        LockedError,
        NotificationsLost,
        PoolTimeout,
        Session,
        Setting,
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
    from oxlite.connection import connect
    from oxlite.database import Checkpoint, Database, DatabaseStatistics, Result
    from oxlite.notifications import Notification
    from oxlite.retries import retry
    from oxlite.schema import Option, options
    from oxlite.sqlite3 import Connection, sqlite_version
    from oxlite.version import VERSION

    if __version__ != VERSION:
        raise ImportError(f"{__version__} and {VERSION}", name="oxlite._native")
except ImportError as error:
    from oxlite.unloadable import explanation

    if (said := explanation(error)) is None:
        raise
    raise said from error

__all__ = [
    "NETWORK_FILE_SYSTEMS",
    "Checkpoint",
    "CommitOutcomeUnknown",
    "Connection",
    "Database",
    "DatabaseStatistics",
    "LockedError",
    "Notification",
    "NotificationsLost",
    "Option",
    "PoolTimeout",
    "Result",
    "Session",
    "Setting",
    "StaleSnapshotError",
    "StatementTimeout",
    "SyncFailedError",
    "__version__",
    "connect",
    "harmless",
    "options",
    "profiles",
    "retry",
    "shared_commit_group",
    "sqlite3",
    "sqlite_source_id",
    "sqlite_threadsafe",
    "sqlite_version",
]
