"""Oxlite: SQLite made ready to pull a production web application.

- ``from oxlite import sqlite3``: the standard library's driver, name for name, newer and faster.
- ``oxlite.connect("app.db")``: the same ``Connection`` with a production profile applied.
- ``oxlite.profiles()``: what each profile sets.

Importing ``oxlite`` loads the driver and nothing else: no framework, no command line, no lab.
"""

from collections.abc import Mapping
from os import PathLike
from typing import Literal

from oxlite import sqlite3
from oxlite._native import __version__, profiles, sqlite_source_id, sqlite_threadsafe
from oxlite.sqlite3 import Connection, sqlite_version

__all__ = [
    "Connection",
    "__version__",
    "connect",
    "profiles",
    "sqlite3",
    "sqlite_source_id",
    "sqlite_threadsafe",
    "sqlite_version",
]


def connect(
    database: str | bytes | PathLike[str] | PathLike[bytes],
    timeout: float = 5.0,
    detect_types: int = 0,
    isolation_level: Literal["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"] | None = "IMMEDIATE",
    check_same_thread: bool = True,
    factory: type[Connection] | None = None,
    cached_statements: int = 128,
    uri: bool = False,
    *,
    profile: str = "web",
    pragmas: Mapping[str, bool | int | str] | None = None,
    journal: Literal["profile", "keep"] = "profile",
    busy: Literal["none", "backoff", "fair"] | None = None,
    allow_no_locking: bool = False,
) -> Connection:
    """Open a database with a production profile: its pragmas are applied and read back.

    The positional arguments are those of ``sqlite3.connect``; they differ in one default: an
    implicit transaction begins IMMEDIATE, so it waits for the write lock instead of failing when a
    read turns into a write. Reads outside a transaction take no write lock.

    Args:
        database: Path of the file, ``":memory:"``, or ``""`` for a temporary database.
        timeout: How long a lock is waited for, in seconds.
        detect_types: Accepted for the standard library's signature; only 0 for now.
        isolation_level: How an implicit transaction begins; ``None`` for none.
        check_same_thread: Refuse use from any thread but this one. With ``False`` the connection
            may be shared; calls are serialised.
        factory: The subclass of ``Connection`` to create.
        cached_statements: How many prepared statements are kept.
        uri: Read a ``database`` that begins with ``file:`` as a URI
            (https://sqlite.org/uri.html).
        profile: ``"stock"`` (SQLite's own settings), ``"web"``, ``"durable"`` (web, and every
            commit synced) or ``"cache"`` (web, and nothing synced: for data that may be lost).
            ``oxlite.profiles()`` lists what each sets.
        pragmas: Pragmas to set over or beside the profile's, by name.
        journal: ``"keep"`` leaves the journal mode of the file as it is. Turning an existing file
            to WAL is persistent; it is logged once, with the way back, by the logger ``oxlite``.
        busy: How a lock is waited for: ``"fair"`` (every millisecond; what all profiles but stock
            do), ``"backoff"`` (SQLite's growing sleeps), ``"none"``.
        allow_no_locking: Accept URI parameters that switch file locking off (``nolock``,
            ``immutable``).

    Returns:
        The open connection.

    Raises:
        ValueError: An unknown profile, pragma, or choice, or a value out of range. No file has been
            touched.
        TypeError: A value of the wrong type. No file has been touched.
        oxlite.sqlite3.OperationalError: The file cannot be opened (the message says why), stayed
            locked, or a pragma did not take effect (the message names it).
        oxlite.sqlite3.DatabaseError: The file is not a database.
    """
    return (factory or Connection)(
        database,
        timeout,
        detect_types,
        isolation_level,
        check_same_thread,
        factory or Connection,
        cached_statements,
        uri,
        profile=profile,
        pragmas=None if pragmas is None else dict(pragmas),
        journal=journal,
        busy=busy,
        allow_no_locking=allow_no_locking,
    )
