"""How a database is opened with a production profile.

Invariant: every connection is opened by ``oxlite.sqlite3.connect``, which is looked up when it is
called. So whoever wraps that one function, as instrumentation does, is asked by all doors.
"""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Literal, TypeAlias, TypedDict

from oxlite import _native, sqlite3
from oxlite.sqlite3 import Connection

__all__ = [
    "BusyPolicy",
    "ConnectOptions",
    "DriverOptions",
    "ProfileName",
    "confine",
    "connect",
    "driver_connection",
    "only_read",
    "refuse_writes",
]


ProfileName: TypeAlias = Literal["stock", "web", "durable", "cache", "untrusted"]
"""The names of ``oxlite.profiles()``."""

BusyPolicy: TypeAlias = Literal["none", "backoff", "fair", "gate"]
"""How a lock is waited for."""


class DriverOptions(TypedDict, total=False):
    """What the driver's ``connect`` takes beyond the standard library's; see ``connect``."""

    profile: ProfileName
    pragmas: Mapping[str, bool | int | str] | None
    journal: Literal["profile", "keep"]
    busy: BusyPolicy | None
    busy_handler: Callable[[int], object] | None
    statement_timeout: float | None
    slow_statement: float | None
    extensions: Iterable[str | PathLike[str]] | None
    allow_no_locking: bool
    durable_commit: Literal["each", "shared"]


class ConnectOptions(DriverOptions, total=False):
    """The options of ``connect``, for what hands them on; see there."""

    timeout: float
    detect_types: int
    isolation_level: Literal["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"] | None
    check_same_thread: bool
    factory: type[Connection] | None
    cached_statements: int
    uri: bool
    autocommit: bool | Literal[-1]


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
    autocommit: bool | Literal[-1] = sqlite3.LEGACY_TRANSACTION_CONTROL,
    profile: ProfileName = "web",
    pragmas: Mapping[str, bool | int | str] | None = None,
    journal: Literal["profile", "keep"] = "profile",
    busy: BusyPolicy | None = None,
    busy_handler: Callable[[int], object] | None = None,
    statement_timeout: float | None = None,
    slow_statement: float | None = None,
    extensions: Iterable[str | PathLike[str]] | None = None,
    allow_no_locking: bool = False,
    durable_commit: Literal["each", "shared"] = "each",
) -> Connection:
    """Open a database with a production profile: its pragmas are applied and read back.

    The positional arguments are those of ``sqlite3.connect``; they differ in one default: an
    implicit transaction begins IMMEDIATE, so it waits for the write lock instead of failing when a
    read turns into a write. Reads outside a transaction take no write lock.

    Args:
        database: Path of the file, ``":memory:"``, or ``""`` for a temporary database.
        timeout: How long a lock is waited for, in seconds.
        detect_types: Where converters are looked for: ``sqlite3.PARSE_DECLTYPES`` (a column's
            declared type), ``sqlite3.PARSE_COLNAMES`` (brackets in its name), or both.
        isolation_level: How an implicit transaction begins; ``None`` for none.
        check_same_thread: Refuse use from any thread but this one. With ``False`` the connection
            may be shared; calls are serialised.
        factory: The subclass of ``Connection`` to create.
        cached_statements: How many prepared statements are kept.
        uri: Read a ``database`` that begins with ``file:`` as a URI
            (https://sqlite.org/uri.html).
        autocommit: ``False`` keeps a transaction open always, as PEP 249 has it; ``True`` leaves
            transactions to SQL. By default data modifications begin one, as ``isolation_level``
            says.
        profile: ``"stock"`` (SQLite's own settings), ``"web"``, ``"durable"`` (web, and every
            commit synced), ``"cache"`` (web, and nothing synced: for data that may be lost) or
            ``"untrusted"`` (for the file of a stranger, which is not changed and runs nothing of
            what it contains; ``docs/profiles.md``). ``oxlite.profiles()`` lists what each sets.
        pragmas: Pragmas to set over or beside the profile's, by name.
        journal: ``"keep"`` leaves the journal mode of the file as it is. Turning an existing file
            to WAL is persistent; it is logged once, with the way back, by the logger ``oxlite``.
        busy: How a lock is waited for: ``"gate"`` (writers stand in line, those of this process and
            of others that do; what all profiles but stock do), ``"fair"`` (every millisecond),
            ``"backoff"`` (SQLite's growing sleeps), ``"none"``. Processes meet at a file beside the
            database, ``app.db-gate``; where there can be none, they do as with ``"fair"``.
        busy_handler: Waits in your own way instead: called with how often it has been asked for
            one lock, it sleeps and answers whether to try again. It must not use the connection;
            ``timeout`` does not limit it.
        statement_timeout: How long a statement may work, in seconds; then it is interrupted. The
            time between two fetches does not count, waiting for a lock does (with ``"backoff"``
            noticed only at its end). Looked at thousands of times a second, but not inside your
            own functions; COMMIT is not cut short.
        slow_statement: Statements that take as long or longer, in seconds, are logged with their
            plan (https://sqlite.org/eqp.html), by the logger ``oxlite.slow_statements``: what
            SQLite worked on them and waited for locks, not what passes between two fetches. The
            text is logged as it was prepared, without the values of its parameters; one in a
            transaction that writes is logged when that ends. See ``docs/slow-statements.md``.
        extensions: Loadable extensions: paths, or names of Python packages with a
            ``loadable_path()``, as they are imported (``"sqlite_vec"``), or of libraries that the
            system's loader finds. Afterwards none can be loaded any more, unless
            ``enable_load_extension`` says so.
        allow_no_locking: Accept URI parameters that switch file locking off (``nolock``,
            ``immutable``).
        durable_commit: ``"shared"``: every commit is durable when it is answered, and the commits
            of all processes that say so share their syncs of the disk. Read
            ``docs/shared-commit.md`` first: it has requirements, and a failed sync stops
            everything. For the profiles web and durable; it sets ``synchronous`` by itself.
            ``"each"``: every connection as its ``synchronous`` says.

    Returns:
        The open connection.

    Raises:
        ValueError: An unknown profile, pragma, or choice, or a value out of range. No file has been
            touched.
        TypeError: A value of the wrong type. No file has been touched.
        oxlite.LockedError: The file stayed locked.
        oxlite.SyncFailedError: With ``durable_commit="shared"``: a sync has failed on opening.
        oxlite.sqlite3.OperationalError: The file cannot be opened (the message says why), a pragma
            did not take effect, or an extension could not be loaded (the message names it).
        oxlite.sqlite3.DatabaseError: The file is not a database.
    """
    return sqlite3.connect(
        database,
        timeout=timeout,
        detect_types=detect_types,
        isolation_level=isolation_level,
        check_same_thread=check_same_thread,
        factory=factory or Connection,
        cached_statements=cached_statements,
        uri=uri,
        autocommit=autocommit,
        profile=profile,
        pragmas=pragmas,
        journal=journal,
        busy=busy,
        busy_handler=busy_handler,
        statement_timeout=statement_timeout,
        slow_statement=slow_statement,
        extensions=extensions,
        allow_no_locking=allow_no_locking,
        durable_commit=durable_commit,
    )


def driver_connection(connection: Connection) -> Connection:
    """The driver's own connection: itself, or the one inside what instrumentation put around it.

    Native code takes no other.

    Args:
        connection: What ``connect`` has returned, or whoever has wrapped it.

    Raises:
        TypeError: There is none inside.
    """
    # A proxy says of itself that it is an instance of what it stands for; its type does not.
    if issubclass(type(connection), Connection):
        return connection
    inside = getattr(connection.cursor(), "connection", None)
    if not issubclass(type(inside), Connection):
        raise TypeError(
            "oxlite.sqlite3.connect() was replaced by a function that returns"
            f" {type(connection).__module__}.{type(connection).__qualname__}, in which no"
            " oxlite.sqlite3.Connection can be found"
        )
    return inside  # type: ignore[return-value]


def confine(connection: Connection, to_this_thread: bool) -> None:
    """Say that only this thread uses a connection from now on, or that any may again.

    For who sees to that himself, with ``check_same_thread=False``. Who would wait for a transaction
    that only he can end is refused at once.

    Args:
        connection: What ``connect`` has returned, or whoever has wrapped it.
        to_this_thread: Whether only this thread does.
    """
    _native.confine(driver_connection(connection), to_this_thread)


def refuse_writes(connection: Connection, refuses: bool) -> None:
    """Have a connection refuse to write, or not any more: ``PRAGMA query_only``, set.

    Running that pragma would have SQLite prepare every statement anew, and this does not. Nothing
    that is executed meanwhile ends it, and nothing else writes: ``backup()`` into it,
    ``deserialize()`` and open blobs are refused too. Afterwards the pragma is what it was before.

    Args:
        connection: What ``connect`` has returned, or whoever has wrapped it.
        refuses: Whether it refuses.

    Raises:
        oxlite.sqlite3.ProgrammingError: The connection is closed, or belongs to another process.

    Source: https://sqlite.org/pragma.html#pragma_query_only
    """
    _native.refuse_writes(driver_connection(connection), refuses)


def only_read(connection: Connection) -> None:
    """Have a connection only read, whatever is executed on it, until it is closed.

    Args:
        connection: What ``connect`` has returned, or whoever has wrapped it.
    """
    _native.only_read(driver_connection(connection))
