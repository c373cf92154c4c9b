"""The native module's declarations; tests hold them against the built module."""

import sys
from asyncio import Future
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NoReturn,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    final,
    overload,
    type_check_only,
)

from typing_extensions import Buffer, disjoint_base

from oxlite.connection import DriverOptions, ProfileName

__all__ = [
    "ABSENT",
    "LEGACY_TRANSACTION_CONTROL",
    "NETWORK_FILE_SYSTEMS",
    "PARSE_COLNAMES",
    "PARSE_DECLTYPES",
    "SQLITE_ABORT",
    "SQLITE_ABORT_ROLLBACK",
    "SQLITE_ALTER_TABLE",
    "SQLITE_ANALYZE",
    "SQLITE_ATTACH",
    "SQLITE_AUTH",
    "SQLITE_AUTH_USER",
    "SQLITE_BUSY",
    "SQLITE_BUSY_RECOVERY",
    "SQLITE_BUSY_SNAPSHOT",
    "SQLITE_BUSY_TIMEOUT",
    "SQLITE_CANTOPEN",
    "SQLITE_CANTOPEN_CONVPATH",
    "SQLITE_CANTOPEN_DIRTYWAL",
    "SQLITE_CANTOPEN_FULLPATH",
    "SQLITE_CANTOPEN_ISDIR",
    "SQLITE_CANTOPEN_NOTEMPDIR",
    "SQLITE_CANTOPEN_SYMLINK",
    "SQLITE_CHANGESET_ABORT",
    "SQLITE_CHANGESET_CONFLICT",
    "SQLITE_CHANGESET_CONSTRAINT",
    "SQLITE_CHANGESET_DATA",
    "SQLITE_CHANGESET_FOREIGN_KEY",
    "SQLITE_CHANGESET_NOTFOUND",
    "SQLITE_CHANGESET_OMIT",
    "SQLITE_CHANGESET_REPLACE",
    "SQLITE_CONSTRAINT",
    "SQLITE_CONSTRAINT_CHECK",
    "SQLITE_CONSTRAINT_COMMITHOOK",
    "SQLITE_CONSTRAINT_DATATYPE",
    "SQLITE_CONSTRAINT_FOREIGNKEY",
    "SQLITE_CONSTRAINT_FUNCTION",
    "SQLITE_CONSTRAINT_NOTNULL",
    "SQLITE_CONSTRAINT_PINNED",
    "SQLITE_CONSTRAINT_PRIMARYKEY",
    "SQLITE_CONSTRAINT_ROWID",
    "SQLITE_CONSTRAINT_TRIGGER",
    "SQLITE_CONSTRAINT_UNIQUE",
    "SQLITE_CONSTRAINT_VTAB",
    "SQLITE_CORRUPT",
    "SQLITE_CORRUPT_INDEX",
    "SQLITE_CORRUPT_SEQUENCE",
    "SQLITE_CORRUPT_VTAB",
    "SQLITE_CREATE_INDEX",
    "SQLITE_CREATE_TABLE",
    "SQLITE_CREATE_TEMP_INDEX",
    "SQLITE_CREATE_TEMP_TABLE",
    "SQLITE_CREATE_TEMP_TRIGGER",
    "SQLITE_CREATE_TEMP_VIEW",
    "SQLITE_CREATE_TRIGGER",
    "SQLITE_CREATE_VIEW",
    "SQLITE_CREATE_VTABLE",
    "SQLITE_DBCONFIG_DEFENSIVE",
    "SQLITE_DBCONFIG_DQS_DDL",
    "SQLITE_DBCONFIG_DQS_DML",
    "SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE",
    "SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE",
    "SQLITE_DBCONFIG_ENABLE_COMMENTS",
    "SQLITE_DBCONFIG_ENABLE_FKEY",
    "SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER",
    "SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION",
    "SQLITE_DBCONFIG_ENABLE_QPSG",
    "SQLITE_DBCONFIG_ENABLE_TRIGGER",
    "SQLITE_DBCONFIG_ENABLE_VIEW",
    "SQLITE_DBCONFIG_LEGACY_ALTER_TABLE",
    "SQLITE_DBCONFIG_LEGACY_FILE_FORMAT",
    "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE",
    "SQLITE_DBCONFIG_RESET_DATABASE",
    "SQLITE_DBCONFIG_REVERSE_SCANORDER",
    "SQLITE_DBCONFIG_STMT_SCANSTATUS",
    "SQLITE_DBCONFIG_TRIGGER_EQP",
    "SQLITE_DBCONFIG_TRUSTED_SCHEMA",
    "SQLITE_DBCONFIG_WRITABLE_SCHEMA",
    "SQLITE_DELETE",
    "SQLITE_DENY",
    "SQLITE_DETACH",
    "SQLITE_DONE",
    "SQLITE_DROP_INDEX",
    "SQLITE_DROP_TABLE",
    "SQLITE_DROP_TEMP_INDEX",
    "SQLITE_DROP_TEMP_TABLE",
    "SQLITE_DROP_TEMP_TRIGGER",
    "SQLITE_DROP_TEMP_VIEW",
    "SQLITE_DROP_TRIGGER",
    "SQLITE_DROP_VIEW",
    "SQLITE_DROP_VTABLE",
    "SQLITE_EMPTY",
    "SQLITE_ERROR",
    "SQLITE_ERROR_KEY",
    "SQLITE_ERROR_MISSING_COLLSEQ",
    "SQLITE_ERROR_RESERVESIZE",
    "SQLITE_ERROR_RETRY",
    "SQLITE_ERROR_SNAPSHOT",
    "SQLITE_ERROR_UNABLE",
    "SQLITE_FORMAT",
    "SQLITE_FULL",
    "SQLITE_FUNCTION",
    "SQLITE_IGNORE",
    "SQLITE_INSERT",
    "SQLITE_INTERNAL",
    "SQLITE_INTERRUPT",
    "SQLITE_IOERR",
    "SQLITE_IOERR_ACCESS",
    "SQLITE_IOERR_AUTH",
    "SQLITE_IOERR_BADKEY",
    "SQLITE_IOERR_BEGIN_ATOMIC",
    "SQLITE_IOERR_BLOCKED",
    "SQLITE_IOERR_CHECKRESERVEDLOCK",
    "SQLITE_IOERR_CLOSE",
    "SQLITE_IOERR_CODEC",
    "SQLITE_IOERR_COMMIT_ATOMIC",
    "SQLITE_IOERR_CONVPATH",
    "SQLITE_IOERR_CORRUPTFS",
    "SQLITE_IOERR_DATA",
    "SQLITE_IOERR_DELETE",
    "SQLITE_IOERR_DELETE_NOENT",
    "SQLITE_IOERR_DIR_CLOSE",
    "SQLITE_IOERR_DIR_FSYNC",
    "SQLITE_IOERR_FSTAT",
    "SQLITE_IOERR_FSYNC",
    "SQLITE_IOERR_GETTEMPPATH",
    "SQLITE_IOERR_IN_PAGE",
    "SQLITE_IOERR_LOCK",
    "SQLITE_IOERR_MMAP",
    "SQLITE_IOERR_NOMEM",
    "SQLITE_IOERR_RDLOCK",
    "SQLITE_IOERR_READ",
    "SQLITE_IOERR_ROLLBACK_ATOMIC",
    "SQLITE_IOERR_SEEK",
    "SQLITE_IOERR_SHMLOCK",
    "SQLITE_IOERR_SHMMAP",
    "SQLITE_IOERR_SHMOPEN",
    "SQLITE_IOERR_SHMSIZE",
    "SQLITE_IOERR_SHORT_READ",
    "SQLITE_IOERR_TRUNCATE",
    "SQLITE_IOERR_UNLOCK",
    "SQLITE_IOERR_VNODE",
    "SQLITE_IOERR_WRITE",
    "SQLITE_LIMIT_ATTACHED",
    "SQLITE_LIMIT_COLUMN",
    "SQLITE_LIMIT_COMPOUND_SELECT",
    "SQLITE_LIMIT_EXPR_DEPTH",
    "SQLITE_LIMIT_FUNCTION_ARG",
    "SQLITE_LIMIT_LENGTH",
    "SQLITE_LIMIT_LIKE_PATTERN_LENGTH",
    "SQLITE_LIMIT_SQL_LENGTH",
    "SQLITE_LIMIT_TRIGGER_DEPTH",
    "SQLITE_LIMIT_VARIABLE_NUMBER",
    "SQLITE_LIMIT_VDBE_OP",
    "SQLITE_LIMIT_WORKER_THREADS",
    "SQLITE_LOCKED",
    "SQLITE_LOCKED_SHAREDCACHE",
    "SQLITE_LOCKED_VTAB",
    "SQLITE_MISMATCH",
    "SQLITE_MISUSE",
    "SQLITE_NOLFS",
    "SQLITE_NOMEM",
    "SQLITE_NOTADB",
    "SQLITE_NOTFOUND",
    "SQLITE_NOTICE",
    "SQLITE_NOTICE_RBU",
    "SQLITE_NOTICE_RECOVER_ROLLBACK",
    "SQLITE_NOTICE_RECOVER_WAL",
    "SQLITE_OK",
    "SQLITE_OK_LOAD_PERMANENTLY",
    "SQLITE_OK_SYMLINK",
    "SQLITE_PERM",
    "SQLITE_PRAGMA",
    "SQLITE_PROTOCOL",
    "SQLITE_RANGE",
    "SQLITE_READ",
    "SQLITE_READONLY",
    "SQLITE_READONLY_CANTINIT",
    "SQLITE_READONLY_CANTLOCK",
    "SQLITE_READONLY_DBMOVED",
    "SQLITE_READONLY_DIRECTORY",
    "SQLITE_READONLY_RECOVERY",
    "SQLITE_READONLY_ROLLBACK",
    "SQLITE_RECURSIVE",
    "SQLITE_REINDEX",
    "SQLITE_ROW",
    "SQLITE_SAVEPOINT",
    "SQLITE_SCHEMA",
    "SQLITE_SELECT",
    "SQLITE_TOOBIG",
    "SQLITE_TRANSACTION",
    "SQLITE_UPDATE",
    "SQLITE_WARNING",
    "SQLITE_WARNING_AUTOINDEX",
    "Absent",
    "ActivityWatcher",
    "Announcement",
    "Blob",
    "Change",
    "ClockChange",
    "CommitOutcomeUnknown",
    "Conflict",
    "Connection",
    "Connections",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "Feed",
    "Hearing",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Job",
    "Loan",
    "LockedError",
    "Mailbox",
    "NativeConverter",
    "NotSupportedError",
    "NotificationsLost",
    "OperationalError",
    "Parked",
    "Pattern",
    "Pool",
    "PoolTimeout",
    "PrepareProtocol",
    "ProgrammingError",
    "Row",
    "Seals",
    "SerialExecutor",
    "Session",
    "Setting",
    "StaleSnapshotError",
    "Statement",
    "StatementTimeout",
    "Subscription",
    "SyncFailedError",
    "Warning",
    "Writer",
    "WriterInUse",
    "__version__",
    "adapt",
    "adapters",
    "cache_number",
    "close_to_threads",
    "complete_statement",
    "concat_changesets",
    "confine",
    "connect",
    "converters",
    "create_any_value_function",
    "create_copy_functions",
    "create_date_functions",
    "create_pattern_function",
    "create_small_functions",
    "create_statistic_functions",
    "enable_callback_tracebacks",
    "enable_shared_cache",
    "forget_rowid",
    "hand_over",
    "harmless",
    "invert_changeset",
    "latest_rowid",
    "note_prepared",
    "only_read",
    "open_to_threads",
    "options",
    "prepare_notifications",
    "profiles",
    "read_changeset",
    "refuse_writes",
    "register_adapter",
    "register_converter",
    "shared_commit_group",
    "sqlite_source_id",
    "sqlite_threadsafe",
    "sqlite_version",
    "wait_at_most",
]

__version__: str
"""The version of Oxlite."""
sqlite_version: str
"""The version of the SQLite inside, as a string."""
sqlite_source_id: str
"""The check-in that the SQLite inside was made from, with its time."""

ABSENT: Absent
"""What stands for a value that a changeset does not have."""
LEGACY_TRANSACTION_CONTROL: Literal[-1]
"""For `autocommit`: data modifications begin transactions, as `isolation_level` says."""
NETWORK_FILE_SYSTEMS: frozenset[str]
"""The types of file systems that are on a network, as Linux names them."""
PARSE_COLNAMES: int
"""For `detect_types`: the converter is named in brackets in a column's name."""
PARSE_DECLTYPES: int
"""For `detect_types`: the converter is found by a column's declared type."""
SQLITE_ABORT: int
SQLITE_ABORT_ROLLBACK: int
SQLITE_ALTER_TABLE: int
SQLITE_ANALYZE: int
SQLITE_ATTACH: int
SQLITE_AUTH: int
SQLITE_AUTH_USER: int
SQLITE_BUSY: int
SQLITE_BUSY_RECOVERY: int
SQLITE_BUSY_SNAPSHOT: int
SQLITE_BUSY_TIMEOUT: int
SQLITE_CANTOPEN: int
SQLITE_CANTOPEN_CONVPATH: int
SQLITE_CANTOPEN_DIRTYWAL: int
SQLITE_CANTOPEN_FULLPATH: int
SQLITE_CANTOPEN_ISDIR: int
SQLITE_CANTOPEN_NOTEMPDIR: int
SQLITE_CANTOPEN_SYMLINK: int
SQLITE_CHANGESET_ABORT: int
SQLITE_CHANGESET_CONFLICT: int
SQLITE_CHANGESET_CONSTRAINT: int
SQLITE_CHANGESET_DATA: int
SQLITE_CHANGESET_FOREIGN_KEY: int
SQLITE_CHANGESET_NOTFOUND: int
SQLITE_CHANGESET_OMIT: int
SQLITE_CHANGESET_REPLACE: int
SQLITE_CONSTRAINT: int
SQLITE_CONSTRAINT_CHECK: int
SQLITE_CONSTRAINT_COMMITHOOK: int
SQLITE_CONSTRAINT_DATATYPE: int
SQLITE_CONSTRAINT_FOREIGNKEY: int
SQLITE_CONSTRAINT_FUNCTION: int
SQLITE_CONSTRAINT_NOTNULL: int
SQLITE_CONSTRAINT_PINNED: int
SQLITE_CONSTRAINT_PRIMARYKEY: int
SQLITE_CONSTRAINT_ROWID: int
SQLITE_CONSTRAINT_TRIGGER: int
SQLITE_CONSTRAINT_UNIQUE: int
SQLITE_CONSTRAINT_VTAB: int
SQLITE_CORRUPT: int
SQLITE_CORRUPT_INDEX: int
SQLITE_CORRUPT_SEQUENCE: int
SQLITE_CORRUPT_VTAB: int
SQLITE_CREATE_INDEX: int
SQLITE_CREATE_TABLE: int
SQLITE_CREATE_TEMP_INDEX: int
SQLITE_CREATE_TEMP_TABLE: int
SQLITE_CREATE_TEMP_TRIGGER: int
SQLITE_CREATE_TEMP_VIEW: int
SQLITE_CREATE_TRIGGER: int
SQLITE_CREATE_VIEW: int
SQLITE_CREATE_VTABLE: int
SQLITE_DBCONFIG_DEFENSIVE: int
SQLITE_DBCONFIG_DQS_DDL: int
SQLITE_DBCONFIG_DQS_DML: int
SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE: int
SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE: int
SQLITE_DBCONFIG_ENABLE_COMMENTS: int
SQLITE_DBCONFIG_ENABLE_FKEY: int
SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER: int
SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: int
SQLITE_DBCONFIG_ENABLE_QPSG: int
SQLITE_DBCONFIG_ENABLE_TRIGGER: int
SQLITE_DBCONFIG_ENABLE_VIEW: int
SQLITE_DBCONFIG_LEGACY_ALTER_TABLE: int
SQLITE_DBCONFIG_LEGACY_FILE_FORMAT: int
SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE: int
SQLITE_DBCONFIG_RESET_DATABASE: int
SQLITE_DBCONFIG_REVERSE_SCANORDER: int
SQLITE_DBCONFIG_STMT_SCANSTATUS: int
SQLITE_DBCONFIG_TRIGGER_EQP: int
SQLITE_DBCONFIG_TRUSTED_SCHEMA: int
SQLITE_DBCONFIG_WRITABLE_SCHEMA: int
SQLITE_DELETE: int
SQLITE_DENY: int
SQLITE_DETACH: int
SQLITE_DONE: int
SQLITE_DROP_INDEX: int
SQLITE_DROP_TABLE: int
SQLITE_DROP_TEMP_INDEX: int
SQLITE_DROP_TEMP_TABLE: int
SQLITE_DROP_TEMP_TRIGGER: int
SQLITE_DROP_TEMP_VIEW: int
SQLITE_DROP_TRIGGER: int
SQLITE_DROP_VIEW: int
SQLITE_DROP_VTABLE: int
SQLITE_EMPTY: int
SQLITE_ERROR: int
SQLITE_ERROR_KEY: int
SQLITE_ERROR_MISSING_COLLSEQ: int
SQLITE_ERROR_RESERVESIZE: int
SQLITE_ERROR_RETRY: int
SQLITE_ERROR_SNAPSHOT: int
SQLITE_ERROR_UNABLE: int
SQLITE_FORMAT: int
SQLITE_FULL: int
SQLITE_FUNCTION: int
SQLITE_IGNORE: int
SQLITE_INSERT: int
SQLITE_INTERNAL: int
SQLITE_INTERRUPT: int
SQLITE_IOERR: int
SQLITE_IOERR_ACCESS: int
SQLITE_IOERR_AUTH: int
SQLITE_IOERR_BADKEY: int
SQLITE_IOERR_BEGIN_ATOMIC: int
SQLITE_IOERR_BLOCKED: int
SQLITE_IOERR_CHECKRESERVEDLOCK: int
SQLITE_IOERR_CLOSE: int
SQLITE_IOERR_CODEC: int
SQLITE_IOERR_COMMIT_ATOMIC: int
SQLITE_IOERR_CONVPATH: int
SQLITE_IOERR_CORRUPTFS: int
SQLITE_IOERR_DATA: int
SQLITE_IOERR_DELETE: int
SQLITE_IOERR_DELETE_NOENT: int
SQLITE_IOERR_DIR_CLOSE: int
SQLITE_IOERR_DIR_FSYNC: int
SQLITE_IOERR_FSTAT: int
SQLITE_IOERR_FSYNC: int
SQLITE_IOERR_GETTEMPPATH: int
SQLITE_IOERR_IN_PAGE: int
SQLITE_IOERR_LOCK: int
SQLITE_IOERR_MMAP: int
SQLITE_IOERR_NOMEM: int
SQLITE_IOERR_RDLOCK: int
SQLITE_IOERR_READ: int
SQLITE_IOERR_ROLLBACK_ATOMIC: int
SQLITE_IOERR_SEEK: int
SQLITE_IOERR_SHMLOCK: int
SQLITE_IOERR_SHMMAP: int
SQLITE_IOERR_SHMOPEN: int
SQLITE_IOERR_SHMSIZE: int
SQLITE_IOERR_SHORT_READ: int
SQLITE_IOERR_TRUNCATE: int
SQLITE_IOERR_UNLOCK: int
SQLITE_IOERR_VNODE: int
SQLITE_IOERR_WRITE: int
SQLITE_LIMIT_ATTACHED: int
SQLITE_LIMIT_COLUMN: int
SQLITE_LIMIT_COMPOUND_SELECT: int
SQLITE_LIMIT_EXPR_DEPTH: int
SQLITE_LIMIT_FUNCTION_ARG: int
SQLITE_LIMIT_LENGTH: int
SQLITE_LIMIT_LIKE_PATTERN_LENGTH: int
SQLITE_LIMIT_SQL_LENGTH: int
SQLITE_LIMIT_TRIGGER_DEPTH: int
SQLITE_LIMIT_VARIABLE_NUMBER: int
SQLITE_LIMIT_VDBE_OP: int
SQLITE_LIMIT_WORKER_THREADS: int
SQLITE_LOCKED: int
SQLITE_LOCKED_SHAREDCACHE: int
SQLITE_LOCKED_VTAB: int
SQLITE_MISMATCH: int
SQLITE_MISUSE: int
SQLITE_NOLFS: int
SQLITE_NOMEM: int
SQLITE_NOTADB: int
SQLITE_NOTFOUND: int
SQLITE_NOTICE: int
SQLITE_NOTICE_RBU: int
SQLITE_NOTICE_RECOVER_ROLLBACK: int
SQLITE_NOTICE_RECOVER_WAL: int
SQLITE_OK: int
SQLITE_OK_LOAD_PERMANENTLY: int
SQLITE_OK_SYMLINK: int
SQLITE_PERM: int
SQLITE_PRAGMA: int
SQLITE_PROTOCOL: int
SQLITE_RANGE: int
SQLITE_READ: int
SQLITE_READONLY: int
SQLITE_READONLY_CANTINIT: int
SQLITE_READONLY_CANTLOCK: int
SQLITE_READONLY_DBMOVED: int
SQLITE_READONLY_DIRECTORY: int
SQLITE_READONLY_RECOVERY: int
SQLITE_READONLY_ROLLBACK: int
SQLITE_RECURSIVE: int
SQLITE_REINDEX: int
SQLITE_ROW: int
SQLITE_SAVEPOINT: int
SQLITE_SCHEMA: int
SQLITE_SELECT: int
SQLITE_TOOBIG: int
SQLITE_TRANSACTION: int
SQLITE_UPDATE: int
SQLITE_WARNING: int
SQLITE_WARNING_AUTOINDEX: int

if sys.version_info >= (3, 15):
    SQLITE_KEYWORDS: tuple[str, ...]
    __all__ += ["SQLITE_KEYWORDS"]

adapters: dict[tuple[type, type], Callable[[Any], Any]]
"""The adapters that are registered, by type and protocol."""
converters: dict[str, Callable[[bytes], Any]]
"""The converters that are registered, by the name of their type in capitals."""

_IsolationLevel: TypeAlias = Literal["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"]
_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
_T = TypeVar("_T")
_CursorT = TypeVar("_CursorT", bound=Cursor)

class _NamedParameters(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...

_Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any] | _NamedParameters

_Adapter: TypeAlias = Callable[[Any], object]
_AutocommitMode: TypeAlias = bool | Literal[-1]
_ConflictAction: TypeAlias = Literal["omit", "replace", "abort"] | int
_PathOrName: TypeAlias = str | PathLike[str]
_PreupdateHook: TypeAlias = Callable[
    [
        int,
        str,
        str,
        int | None,
        int | None,
        tuple[Any, ...] | None,
        tuple[Any, ...] | None,
    ],
    object,
]

def adapt(obj: Any, proto: Any = None, alt: Any = ..., /) -> Any:
    """Adapt `obj` to the protocol `proto`; `alt` if there is no way, or a `ProgrammingError`
    without.
    """

def complete_statement(statement: str) -> bool:
    """Whether `statement` ends in a complete SQL statement: a semicolon that no string,
    comment or trigger body holds.
    """

def concat_changesets(first: Buffer, second: Buffer, /) -> bytes:
    """The changeset that does what `first` and then `second` do; or the patchset, if both are."""

def enable_callback_tracebacks(enable: object, /) -> None:
    """Show the exceptions of callbacks by `sys.unraisablehook`, or (the default) drop them."""

def enable_shared_cache(do_enable: bool) -> None:
    """Let connections opened from now on share one page cache for each database, or (the
    default) not.

    SQLite discourages it (<https://sqlite.org/sharedcache.html>), and Python has removed it
    in 3.12; where it must be, open one database with `file:…?cache=shared` and `uri=True`.
    """

def close_to_threads() -> None:
    """Before a fork: waits until nobody makes a thread state, and lets nobody begin to."""

def open_to_threads() -> None:
    """After a fork, in the parent. The child has a door of its own."""

def confine(connection: Connection, to_this_thread: bool) -> None:
    """From now on only this thread uses the connection, or any may again: for who sees to that
    himself, with `check_same_thread` switched off.
    """

def forget_rowid(connection: Connection) -> None:
    """Forgets which row a connection has inserted last, for `latest_rowid`."""

def wait_at_most(connection: Connection, seconds: float | None) -> None:
    """From now on the connection waits for locks no longer than `seconds`, all together, since
    its call has waited for something else before; with `None` for as long as its timeout
    says.
    """

def harmless(text: str) -> str:
    """A text that others have written, for a terminal or a log: on one line, and with nothing
    in it that a terminal obeys. What is no Unicode (a surrogate) is written out as well.
    """

def latest_rowid(connection: Connection) -> int | None:
    """The row id of its latest insert since it was forgotten; `None` if there was none."""

def only_read(connection: Connection) -> None:
    """Has a connection only read, until it is closed."""

def refuse_writes(connection: Connection, refuses: bool) -> None:
    """Has a connection refuse what writes, or ends that."""

def invert_changeset(changeset: Buffer, /) -> bytes:
    """The changeset that undoes `changeset`. A patchset cannot be inverted, since it lacks old
    values.
    """

def read_changeset(changeset: Buffer, /) -> Iterator[Change]:
    """The changes in a changeset or patchset, one after the other.

    What is malformed raises `DatabaseError` (`SQLITE_CORRUPT`) when the iteration gets
    there.
    """

def register_adapter(type: type[Any], adapter: _Adapter, /) -> None:
    """Register `adapter`, which makes of a `type` object one that SQLite can store."""

def register_converter(typename: str, converter: Callable[[bytes], Any], /) -> None:
    """Register `converter`, which makes an object of the bytes of a column declared as
    `typename`.
    """

def shared_commit_group(database: _PathOrName) -> _SharedCommitGroup | None:
    """The processes that share the syncs of a database's commits (`durable_commit="shared"`)
    and are this user's: a dict with `members` (how many they are now; `None` where the
    system does not tell), `commits` (of all of them, since the first one came),
    `commits_durable` (up to which these are), `syncs_led` (made for all), `leaders_lost`
    (processes that have died in one) and `poisoned` (why nothing is committed any more;
    `None` if all is well). `None` if no processes share. With no member, the rest is of
    those who were there last.

    Nothing is opened, locked or changed. Raises `OSError` where there is no such file.
    """

def options(door: str) -> tuple[tuple[Any, ...], ...]:
    """What an opening takes at a door (`"sqlite3.connect"`, `"connect"` or `"Database"`), one
    tuple for each option: its name, its kind, what it takes in words, its default, whether
    it takes `None`, its choices, the least number, the number it takes only more than, and
    what it is for.
    """

def profiles() -> dict[str, dict[str, int | str]]:
    """Each profile's pragmas, and SQLite's switches and limits by their names in C, in the
    order in which they are applied.
    """

def sqlite_threadsafe() -> int:
    """The threading mode SQLite was compiled with: 0, 1 or 2."""

def connect(
    database: _Path,
    timeout: float = 5.0,
    detect_types: int = 0,
    isolation_level: _IsolationLevel | None = "",
    check_same_thread: bool = True,
    factory: type[Connection] | None = None,
    cached_statements: int = 128,
    uri: bool = False,
    *,
    autocommit: _AutocommitMode = ...,
    **options: Unpack[DriverOptions],
) -> Connection:
    """Opens a database: `factory(database, …)`, which is `Connection` by default."""

@disjoint_base
class Connection:
    """A connection to a database, as PEP 249 and the standard library define it."""

    DataError: type[DataError]
    DatabaseError: type[DatabaseError]
    Error: type[Error]
    IntegrityError: type[IntegrityError]
    InterfaceError: type[InterfaceError]
    InternalError: type[InternalError]
    NotSupportedError: type[NotSupportedError]
    OperationalError: type[OperationalError]
    ProgrammingError: type[ProgrammingError]
    Warning: type[_Warning]
    autocommit: _AutocommitMode
    """Who begins and ends transactions: `True` (the application, by SQL), `False` (one is
    always open) or `LEGACY_TRANSACTION_CONTROL` (data modifications begin one, as
    `isolation_level` says). Setting `True` commits an open transaction, `False` begins one.
    """
    isolation_level: _IsolationLevel | None
    """How an implicit transaction begins: `""`, `"DEFERRED"`, `"IMMEDIATE"`, `"EXCLUSIVE"`, or
    `None` for no implicit transactions.
    """
    row_factory: Callable[[Cursor, tuple[Any, ...]], object] | None
    """The row factory that new cursors get; `None` for tuples."""
    statement_timeout: float | None
    """How long a statement may work, in seconds, before it is interrupted with
    `oxlite.StatementTimeout`; `None` for as long as it takes. The application's own time
    between two fetches does not count; waiting for a lock does.
    """
    text_factory: Callable[[bytes], Any]
    """Called with the bytes of each TEXT value; `str` by default."""
    def __init__(
        self,
        database: _Path,
        timeout: float = 5.0,
        detect_types: int = 0,
        isolation_level: _IsolationLevel | None = "",
        check_same_thread: bool = True,
        factory: type[Connection] | None = None,
        cached_statements: int = 128,
        uri: bool = False,
        *,
        autocommit: _AutocommitMode = ...,
        **options: Unpack[DriverOptions],
    ) -> None: ...
    def queue_statistics(self) -> _QueueStatistics | None:
        """What the queue of writers has done in this process, for all connections to the
        database together: a dict with `waiting` (connections in line now), `admissions`
        (let through to the lock), `thread_waits` (for another connection of this process),
        `process_waits` (for other processes), `turns` (of the process among others),
        `queue_skips` (went ahead of a queue that did not move) and
        `process_queue_unavailable` (why processes do not queue; `None` if they do). `None`
        for a connection that does not wait in one.
        """
    def shared_commit_statistics(self) -> _SharedCommitStatistics | None:
        """What the commits to the main database have come to in this process, by all its
        connections with `durable_commit="shared"` together: a dict with
        `shared_commit_unavailable` (why each is synced by itself; `None` if they share
        syncs), `commits`, `syncs_led` (made for all), `syncs_beside` (beside a leader that
        did not go on), `answered_by_others` (commits that another one's sync has made
        durable), `commits_of_all` (of all processes, since the first of those that are
        there), `leaders_lost` (processes that have died in a sync for all, since then) and
        `poisoned` (why nothing is committed any more; `None` if all is well). `None` for a
        connection without that.
        """
    def checkpoint(
        self,
        mode: Literal["passive", "full", "restart", "truncate"] = "passive",
        *,
        timeout: float = 1.0,
        name: str = "main",
    ) -> tuple[bool, int, int]:
        """Makes a checkpoint of the database `name`: `"passive"` (as far as it comes without
        waiting), `"full"` (waits for the writer and for readers of older snapshots),
        `"restart"` (and for all readers, so that the log is begun anew) or `"truncate"`
        (and cuts its file to nothing).

        It stands in line for the write lock as every writer does, and then waits for others
        for `timeout` seconds at most, less if the connection's own is shorter. Nobody else
        can write meanwhile.

        Answers as `PRAGMA wal_checkpoint` does: whether somebody was in the way, the frames
        in the log, and how many of them are in the database; -1 where there is no log, or
        where another checkpoint is under way.
        """
    def give_way(self, work: Callable[[], _T]) -> _T:
        """Runs `work` while this connection is at the head of the queue for the write lock,
        without taking the lock: so that a program which knows of no queue (Litestream) gets
        it beside writers that never pause. Answers with what `work` returns.

        Keep it short: others do not write meanwhile. `OperationalError` if it does not get
        there within the time that a statement would wait. Writers of other processes go
        past it when they have waited for 100 ms. `work` must not use this connection.
        """
    def wal_statistics(self) -> _WalStatistics | None:
        """What has become of the main database's write-ahead log, by all connections of this
        process together: a dict with `frames` (in the log after the latest commit of this
        process), `commits` (of this process, where it makes the checkpoints), `checkpoints`
        (that brought all of it into the database), `checkpoints_incomplete` (somebody was
        in the way), `checkpoint_waits` (for which nobody could write while readers were
        waited for), `checkpoint_errors`, `last_error` (its text, or `None`) and
        `readers_named` (how often a log beyond its limit was told of). `None` for a
        connection of the profile `stock`, or to a database that is not in a file.
        """
    @property
    def busy(self) -> Literal["none", "backoff", "fair", "gate", "handler"]:
        """How the connection waits for locks: `"gate"`, `"fair"`, `"backoff"`, `"none"`, or
        `"handler"` for a `busy_handler` of its own.
        """
    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; while another thread uses the connection, as it was
        before that.
        """
    @property
    def profile(self) -> ProfileName:
        """The name of the profile the connection was opened with."""
    @property
    def settings(self) -> tuple[Setting, ...]:
        """What became of each pragma on opening: `oxlite.Setting`s, of its name, the value
        asked for, the value in force, and the reason why it could not be applied (`None` if
        it was).
        """
    @property
    def timeout(self) -> float:
        """For how long at most it waits for a lock, in seconds."""
    @property
    def total_changes(self) -> int:
        """How many rows have been changed since the connection was opened; while another
        thread uses it, as it was before that.
        """
    def apply_changeset(
        self,
        changeset: Buffer,
        *,
        filter: Callable[[str], object] | None = None,
        on_conflict: Callable[[Conflict], _ConflictAction] | _ConflictAction | None = None,
    ) -> None:
        """Applies a changeset or patchset to the database `main`: all of it, or, if that
        raises, nothing. Like a data modification it begins a transaction where the
        connection is to have one.

        `filter` is asked with the name of each table whether its changes are wanted. Tables
        that the database does not have, or that have other primary keys, are passed over in
        silence.

        `on_conflict` says what becomes of a change that cannot be made as recorded. It is
        called with an `oxlite.changeset.Conflict` and answers `"omit"` (leave the change
        out), `"replace"` (overwrite the row that is there; for the kinds `"data"` and
        `"conflict"` only) or `"abort"`, or SQLite's numbers for these. One of these in
        place of a callable is the answer to every conflict; `"replace"` then aborts where
        there is no row to replace. By default every conflict aborts.

        An exception of either is raised here. `on_conflict` may use this connection, but
        not close it; other threads wait meanwhile.
        """
    def backup(
        self,
        target: Connection,
        *,
        pages: int = ...,
        progress: Callable[[int, int, int], object] | None = None,
        name: str = "main",
        sleep: float = 0.25,
    ) -> None:
        """Copies the database `name` over the main database of `target`, while both may be in
        use.

        `pages` are copied at a time (all at once if 0 or less); after each step `progress`
        is called with SQLite's code, the pages that remain and the pages in all. A step
        that meets a lock is tried again after `sleep` seconds.
        """
    def blobopen(
        self,
        table: str,
        column: str,
        row: int,
        /,
        *,
        readonly: bool = ...,
        name: str = "main",
    ) -> Blob:
        """Opens the BLOB or TEXT value in `column` of the row `row` of `table` for reading
        and, unless `readonly`, writing in place.
        """
    def close(self) -> None:
        """Closes the database. An open transaction is rolled back. Closing twice is allowed."""
    def end_reads(self) -> bool:
        """Stops the reads that somebody has left in the middle of their rows, so that the
        connection keeps no snapshot; who fetches the next row of one gets an
        `OperationalError`. Whether nothing is in the middle of its work then.
        """
    def commit(self) -> None:
        """Commits the open transaction; nothing if none is open, or if `autocommit` is `True`.
        If it is `False`, the next one begins.
        """
    def create_aggregate(
        self, name: str, n_arg: int, aggregate_class: Callable[[], Any] | None
    ) -> None:
        """Creates an aggregate from a class whose instances have `step(*args)` and
        `finalize()`; `None` removes it.
        """
    def create_collation(
        self, name: str, callback: Callable[[str, str], SupportsIndex] | None, /
    ) -> None:
        """Creates a collation from a function that compares two `str` and returns a negative
        number, zero or a positive one; `None` removes it.
        """
    def create_function(
        self,
        name: str,
        narg: int,
        func: Callable[..., Any] | None,
        *,
        deterministic: bool = False,
    ) -> None:
        """Creates an SQL function of `narg` arguments (-1: any number); `None` removes it.

        A `deterministic` function lets SQLite reuse its results and use it in indexes.
        """
    def create_session(self, *, name: str = "main", tables: Iterable[str] | None = None) -> Session:
        """Begins to record the changes of rows in the database `name`: of the `tables` named,
        or of all, also of those made later.

        Only tables with a declared primary key are recorded. A connection with a preupdate
        hook cannot have sessions.
        """
    def create_window_function(
        self, name: str, num_params: int, aggregate_class: Callable[[], Any] | None, /
    ) -> None:
        """Creates an aggregate window function from a class whose instances have
        `step(*args)`, `inverse(*args)`, `value()` and `finalize()`; `None` removes it.
        """
    @overload
    def cursor(self) -> Cursor:
        """A new cursor; `factory` is called with the connection and must return a `Cursor`."""
    @overload
    def cursor(self, factory: Callable[[Connection], _CursorT]) -> _CursorT: ...
    def deserialize(self, data: Buffer, /, *, name: str = "main") -> None:
        """Replaces the database `name` by one in memory with this content."""
    def enable_load_extension(self, enable: bool, /) -> None:
        """Lets this connection load extensions, by `load_extension` and by the SQL function of
        that name, or (as it is at first) not.

        An extension is native code with all the rights of this process. To load one when
        the connection is opened, and no other after it, `oxlite.connect(extensions=[…])` is
        safer.
        """
    def execute(self, sql: str, parameters: _Parameters = ..., /) -> Cursor:
        """Makes a cursor, executes on it and returns it."""
    def executemany(self, sql: str, parameters: Iterable[_Parameters], /) -> Cursor:
        """Makes a cursor, executes on it with each set of parameters and returns it."""
    def executescript(self, sql_script: str, /) -> Cursor:
        """Makes a cursor, executes a script on it and returns it."""
    def getconfig(self, op: int, /) -> bool:
        """Whether one of SQLite's switches is on: `op` is one of the `SQLITE_DBCONFIG_`
        constants.
        """
    def getlimit(self, category: int, /) -> int:
        """The value of a run-time limit: `category` is one of the `SQLITE_LIMIT_` constants."""
    def interrupt(self) -> None:
        """Makes the statements that run on this connection now fail with `OperationalError:
        interrupted`, also while they wait for a lock. May be called from any thread.
        """
    def iterdump(self, *, filter: str | None = None) -> Iterator[str]:
        """An iterator over the SQL text that makes the database anew, statement by statement.

        `filter` is a LIKE pattern for the names of the objects to dump; `None` means all.
        """
    def load_extension(self, name: str, /, *, entrypoint: str | None = None) -> None:
        """Loads an extension from a shared library, whose entry point SQLite guesses from the
        name unless `entrypoint` says it. `enable_load_extension(True)` comes first.
        """
    def rollback(self) -> None:
        """Rolls the open transaction back; nothing if none is open, or if `autocommit` is
        `True`. If it is `False`, the next one begins.
        """
    def serialize(self, *, name: str = "main") -> bytes:
        """The content of the database `name`, as its file would be."""
    def set_authorizer(
        self,
        authorizer_callback: Callable[[int, str | None, str | None, str | None, str | None], int]
        | None,
    ) -> None:
        """Asks `authorizer_callback` about every access while a statement is prepared: it is
        called with an action code, two arguments that depend on it, the schema, and the
        trigger or view responsible; it answers `SQLITE_OK`, `SQLITE_DENY` or
        `SQLITE_IGNORE`. `None` removes it.
        """
    def set_commit_hook(self, commit_hook: Callable[[], object] | None, /) -> None:
        """Asks `commit_hook` before each commit; a true answer, or an exception, turns the
        commit into a rollback. `None` removes it
        (<https://sqlite.org/c3ref/commit_hook.html>).
        """
    def set_preupdate_hook(self, preupdate_hook: _PreupdateHook | None, /) -> None:
        """Calls `preupdate_hook` before each row that a statement inserts, updates or deletes,
        with `SQLITE_INSERT`, `SQLITE_UPDATE` or `SQLITE_DELETE`, the schema, the table, the
        row id before and after, and the row before and after, as tuples; `None` stands for
        what there is not: the row before an insert, the row after a delete. `None` removes
        it.

        A write through a `Blob` is an update whose new row is `None`, since it is not
        known. TEXT that is not UTF-8 comes as `str` with surrogate escapes. The row ids of
        a table WITHOUT ROWID mean nothing. The hook can neither change nor prevent
        anything, and cannot use the connection; a connection with a `Session` cannot have
        one (<https://sqlite.org/c3ref/preupdate_blobwrite.html>).
        """
    def set_progress_handler(self, progress_handler: Callable[[], object] | None, n: int) -> None:
        """Calls `progress_handler` about every `n` instructions of SQLite's virtual machine; a
        true answer interrupts the statement. `None` removes it.
        """
    def set_rollback_hook(self, rollback_hook: Callable[[], object] | None, /) -> None:
        """Calls `rollback_hook` after each rollback; `None` removes it."""
    def set_trace_callback(self, trace_callback: Callable[[str], object] | None) -> None:
        """Calls `trace_callback` with the text, parameters filled in, of each statement that
        begins to run; `None` removes it.
        """
    def set_update_hook(
        self, update_hook: Callable[[int, str, str, int], object] | None, /
    ) -> None:
        """Calls `update_hook` for each row that a statement inserts, updates or deletes, with
        `SQLITE_INSERT`, `SQLITE_UPDATE` or `SQLITE_DELETE`, the schema, the table and the
        row id; `None` removes it. Tables WITHOUT ROWID do not call it
        (<https://sqlite.org/c3ref/update_hook.html>).
        """
    def set_wal_hook(self, wal_hook: Callable[[str, int], object] | None, /) -> None:
        """Calls `wal_hook` after each commit in WAL mode with the schema and the number of
        pages in the WAL. It takes the place of automatic checkpoints: run `PRAGMA
        wal_checkpoint` in it, on this connection, when the number is high. `None` removes
        it; checkpoints are automatic again, as the profile has them
        (<https://sqlite.org/c3ref/wal_hook.html>).
        """
    def setconfig(self, op: int, enable: bool = ..., /) -> None:
        """Turns one of SQLite's switches on or off."""
    def setlimit(self, category: int, limit: int, /) -> int:
        """Sets a run-time limit, at most to the bound it was compiled with, and returns the
        one before; a negative `limit` changes nothing.
        """
    def __call__(self, sql: str, /) -> Statement: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        _exception: BaseException | None,
        _traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Session:
    """Records the changes of rows, made by `Connection.create_session`.

    Only tables with a declared primary key are recorded, and only rows whose key has no
    NULL. What is rolled back leaves no change (<https://sqlite.org/sessionintro.html>).
    """

    enabled: bool
    """Whether changes are recorded. Setting it to `False` stops that until it is `True` again."""
    indirect: bool
    """Whether every change is marked as indirect from now on; if not, those only that triggers
    and foreign key actions make.
    """
    @property
    def is_empty(self) -> bool:
        """Whether nothing has been recorded. Changes that cancel each other out count as
        recorded, but the changeset is then empty.
        """
    @property
    def memory_used_bytes(self) -> int:
        """The memory that the recorded changes take, in bytes."""
    def attach(self, table: str | None = None) -> None:
        """Records the changes of `table` from now on; `None`: of every table, also of those
        made later. The table need not exist yet.
        """
    def changeset(self) -> bytes:
        """What has changed since the tables were attached: one change for each row, from what
        it was then to what it is now. Recording goes on; for changes from now on only,
        create another session.
        """
    def close(self) -> None:
        """Ends the recording; what has been recorded is gone. Closing twice is allowed, and
        after the connection.
        """
    def diff(self, table: str, *, from_name: str) -> None:
        """Records what would turn `table` of the attached database `from_name` into the same
        table of the session's database, and attaches the table. A table without a primary
        key, or in neither of them, is passed over.
        """
    def patchset(self) -> bytes:
        """Like `changeset()`, smaller: without the old values other than the primary key. So
        it finds fewer conflicts, and cannot be inverted.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _exception_type: type[BaseException] | None,
        _exception: BaseException | None,
        _traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Absent:
    """The class of `ABSENT`."""
    def __reduce__(self) -> str: ...

@final
class ActivityWatcher:
    """Has the processes of Oxlite that use a database tell what they do, until it is closed.

    It makes a file beside the database that whoever may write the database may read, and
    takes it away. Processes hear of it within about a second, when they next use the
    database. Raises `OSError` where it cannot be: on a network file system, or without the
    right to make files there.
    """
    def __new__(cls, database: str | PathLike[str]) -> Self: ...
    def processes(self) -> list[_ProcessActivity]:
        """What each process has told last: dicts with `process_id`, `pid_namespace` (`"own"`,
        `"another"` or `"unknown"`: where that is its number), `told_ms` (when, by
        `time.CLOCK_MONOTONIC`), `counters` (by name), `slowest` (dicts with `sql`,
        `longest_us`, `waited_us`, `count`, `ago_ms`: of the last minute) and `readings`
        (dicts with `thread_id`, `held_ms`, `sql`: connections with a snapshot).
        """
    def holder(self) -> _HolderActivity | None:
        """Who has the database's write lock, if that has told so (writes that are short do
        not): a dict with `process_id`, `pid_namespace`, `thread_id`, `held_ms` and `sql`,
        else `None`.
        """
    def close(self) -> None:
        """Watches no longer. To be called again is fine."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Change:
    """One row inserted, updated or deleted."""

    __match_args__: ClassVar[tuple[str, str, str, str]]
    @property
    def is_indirect(self) -> bool:
        """Whether a trigger or a foreign key action made the change."""
    @property
    def key(self) -> tuple[Any, ...]:
        """The values of the primary key, in the columns' order: of the new row for an insert,
        of the old one otherwise. (An update never changes it: that is a delete and an
        insert.)
        """
    @property
    def new(self) -> tuple[Any, ...]:
        """The row after, column by column; `ABSENT` where the change does not say: for a
        delete all of it, for an update what does not change.
        """
    @property
    def old(self) -> tuple[Any, ...]:
        """The row before, column by column; `ABSENT` where the change does not say. For an
        insert all of it; for an update all but the primary key and what changes. A patchset
        has the primary key only.
        """
    @property
    def operation(self) -> Literal["insert", "update", "delete"]:
        """`"insert"`, `"update"` or `"delete"`."""
    @property
    def primary_key(self) -> tuple[bool, ...]:
        """For each column whether it belongs to the primary key."""
    @property
    def table(self) -> str:
        """The table's name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Conflict:
    """Why a change could not be applied."""
    @property
    def change(self) -> Change | None:
        """What was to be done; `None` for the kind `"foreign_key"`."""
    @property
    def kind(
        self,
    ) -> Literal["data", "not_found", "conflict", "constraint", "foreign_key"]:
        """`"data"`: the row to update or delete has other values than the change expects.
        `"not_found"`: there is no such row to update or delete. `"conflict"`: a row with
        the primary key to insert is there. `"constraint"`: another constraint would be
        violated. `"foreign_key"`: all changes are made, and foreign keys are violated.
        """
    @property
    def row(self) -> tuple[Any, ...] | None:
        """The row that is there, for the kinds `"data"` and `"conflict"`."""
    @property
    def violations(self) -> int | None:
        """How often foreign keys are violated, for the kind `"foreign_key"`, as far as SQLite
        tells: it says 1, however many. `PRAGMA foreign_key_check` lists them.
        """

@final
class Statement:
    """A prepared statement. It shows that the SQL could be prepared, and has no use of its
    own; the standard library's is the same.
    """

@final
class PrepareProtocol:
    """The protocol that objects are adapted to when they are bound."""
    def __new__(cls, *_args: object, **_kwargs: object) -> Self: ...

@final
class Blob:
    """An open BLOB or TEXT value, made by `Connection.blobopen`. Its size cannot change."""
    def close(self) -> None:
        """Closes the blob. Closing twice is allowed. Outside of a transaction this commits
        what was written, and raises if that fails.
        """
    def read(self, length: int = ..., /) -> bytes:
        """Reads up to `length` bytes from the current position; all that remain by default."""
    def seek(self, offset: int, origin: int = 0, /) -> None:
        """Moves the current position: `origin` is 0 (the start), 1 (here) or 2 (the end)."""
    def tell(self) -> int:
        """The current position, in bytes."""
    def write(self, data: Buffer, /) -> None:
        """Writes at the current position; the blob cannot grow."""
    def __contains__(self, _value: object, /) -> bool: ...
    def __delitem__(self, key: SupportsIndex | slice, /) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _exception_type: type[BaseException] | None,
        _exception: BaseException | None,
        _traceback: TracebackType | None,
    ) -> Literal[False]: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> bytes: ...
    def __iter__(self) -> NoReturn: ...
    def __len__(self) -> int: ...
    @overload
    def __setitem__(self, key: SupportsIndex, value: int, /) -> None: ...
    @overload
    def __setitem__(self, key: slice, value: Buffer, /) -> None: ...

@disjoint_base
class Cursor:
    """A cursor over a connection, as PEP 249 and the standard library define it."""

    arraysize: int
    """How many rows `fetchmany()` fetches by default."""
    row_factory: Callable[[Cursor, tuple[Any, ...]], object] | None
    """Called with the cursor and the row's tuple to make each row; `None` for plain tuples."""
    def __init__(self, connection: Connection) -> None: ...
    @property
    def connection(self) -> Connection:
        """The connection the cursor belongs to."""
    @property
    def description(
        self,
    ) -> tuple[tuple[str, None, None, None, None, None, None], ...] | None:
        """A 7-tuple for each column, of which only the first item (the name) is not `None`;
        `None` for statements without rows.
        """
    @property
    def lastrowid(self) -> int | None:
        """The row id of the latest insert, `None` before the first."""
    @property
    def rowcount(self) -> int:
        """Rows changed by the latest INSERT, UPDATE, DELETE or REPLACE; -1 for other statements."""
    def close(self) -> None:
        """Stops the statement; the cursor cannot be used afterwards."""
    def execute(self, sql: str, parameters: _Parameters = ..., /) -> Self:
        """Executes one SQL statement and returns the cursor.

        `parameters` is a sequence for `?` and `?1`, a mapping for `:name`, `@name` and
        `$name`.
        """
    def executemany(self, sql: str, seq_of_parameters: Iterable[_Parameters], /) -> Self:
        """Executes one INSERT, UPDATE, DELETE or REPLACE with each set of parameters in turn."""
    def executescript(self, sql_script: str, /) -> Self:
        """Commits an open transaction, then executes every statement of `sql_script`."""
    def fetchall(self) -> list[Any]:
        """All rows that remain, as a list."""
    def fetchmany(self, size: int = 1) -> list[Any]:
        """The next `size` rows as a list, `arraysize` by default; all that remain if fewer do."""
    def fetchone(self) -> Any:
        """The next row, or `None`."""
    def setinputsizes(self, sizes: object, /) -> None:
        """Accepted and ignored: PEP 249 asks for it, SQLite has no use for it."""
    def setoutputsize(self, size: object, column: object = None, /) -> None:
        """Accepted and ignored: PEP 249 asks for it, SQLite has no use for it."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

@disjoint_base
class Row(Sequence[Any]):
    """A row that may be indexed by position, by slice and, in any case, by column name.

    Meant as a `row_factory`: `connection.row_factory = sqlite3.Row`.
    """
    def __new__(cls, cursor: Cursor, data: tuple[Any, ...]) -> Self: ...
    def keys(self) -> list[str]:
        """The names of the columns, as a list of `str`."""
    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> Any: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Any, ...]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Loan:
    """What a thread has borrowed, if anything."""

    connection: Connection | None
    """The connection; `None` if nothing is lent, it is still to be opened, or a fork has
    brought it here.
    """
    def __new__(cls) -> Self: ...
    def give_back(self, is_usable: bool) -> None:
        """Gives it back, if anything is lent: to be lent again, or closed and opened anew."""

@final
class Pool:
    """A fixed number of connections to lend, opened when they are first lent; those who wait
    for one are served in order.
    """
    def __new__(cls, count: int) -> Self: ...
    def take(self, loan: Loan, timeout: float) -> float | None:
        """Borrows the connection that came back last; waits for one for `timeout` seconds. How
        long that has taken, in seconds, 0 if one was idle; `None` if none came back. The
        loan has no connection yet where one is still to be opened.
        """
    def holders(self) -> list[tuple[int, float]]:
        """The threads that have connections, and for how many seconds each."""
    def lends_all_to_this_thread(self) -> bool:
        """Whether this thread has all of them."""
    def lent(self) -> list[Connection]:
        """The connections that are lent."""
    def close(self) -> list[Connection]:
        """Lends nothing any more; the connections that are idle, to be closed by the caller."""
    def wait_for_all(self, timeout: float) -> bool:
        """Waits for `timeout` seconds until all that is lent has come back to the closed pool;
        whether it has.
        """
    def statistics(self) -> tuple[int, int, int]:
        """How many places are idle and how many lent, and how many threads wait for one."""

@final
class Mailbox:
    """The outcomes for one event loop."""
    def __new__(cls) -> Self: ...
    def fileno(self) -> int:
        """The descriptor that is readable when something is to be collected."""
    def collect(self) -> None:
        """Gives those who wait what is here for them; from the loop's thread, which is told of
        the rest again.
        """
    def close(self) -> None:
        """For a loop that has been closed: lets go of what is here and of all that comes."""

@final
class Job:
    """A job that was submitted."""
    def cancel(self) -> bool:
        """Gives it up: what has not begun is not done, a read that has is interrupted, and
        what is on its way to a borrower goes back. Whether it had not begun.
        """

@final
class SerialExecutor:
    """Runs tasks in the order in which they come."""
    def __new__(cls) -> Self: ...
    def call(
        self,
        mailbox: Mailbox,
        future: Future[Any],
        function: Callable[..., object],
        arguments: tuple[Any, ...],
        connection: Connection | None = None,
    ) -> Job:
        """Has `function(*arguments)` called; what it returns or raises is given to `future`
        through the mailbox of its loop. With a connection, giving it up interrupts what
        that reads.
        """
    def fetch(
        self,
        mailbox: Mailbox,
        future: Future[Any],
        connection: Connection,
        function: Callable[[str, Any], object],
        sql: str,
        parameters: object,
    ) -> Job:
        """Has a query run, all of whose rows `future` gets; what is no query, or whose
        parameters or rows need code of the application, by `function(sql, parameters)`.
        """
    def call_unheard(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        """The same, for what nobody waits for: it needs no loop."""

@final
class Parked:
    """A connection that nobody uses, until it is lent or closed. Whoever forgets it closes it."""
    def lend(self) -> Connection:
        """The connection, as it was prepared, for any thread.

        Raises `ProgrammingError` if it was lent or closed already.
        """
    def close(self) -> None:
        """Closes the database. Nothing happens if it was lent or closed already."""

def note_prepared(connection: Connection) -> bool:
    """Says that a connection is ready for its user: as it is now it may be handed over to the
    next. Whether it refuses to write.
    """

def hand_over(connection: Connection) -> Parked | None:
    """Closes a connection for whoever has it, and keeps the database open for the next one. An
    open transaction is rolled back, and reads in the middle of their rows are ended.

    `None` if that cannot be, so that it was closed: something was set, registered or
    attached since `note_prepared`, or the database is in memory.
    """

@final
class Connections:
    """Connections that work, or are lent."""
    def __new__(
        cls,
        open: Callable[[], Connection],
        count: int,
        batch_limit: int,
        timeout: float,
        profile: str,
    ) -> Self: ...
    def read(
        self, mailbox: Mailbox, future: Future[Any], sql: str, parameters: object, is_one: bool
    ) -> Job | None:
        """Has a query run: `future` gets its rows, or its first row, `None` if it has none. No
        job, and nothing done, if only a borrowed connection can tell what the parameters
        are.
        """
    def write(
        self,
        mailbox: Mailbox,
        future: Future[Any],
        sql: str,
        parameters: object,
        is_many: bool,
        announcement: Announcement | None = None,
    ) -> Job | None:
        """Has a data modification run, perhaps in one transaction with others: `future` gets
        row count, row id and rows. When it has been committed it is announced. No job, and
        nothing done, if it can only be run with a borrowed connection.
        """
    def take(self, mailbox: Mailbox, future: Future[Any]) -> Job:
        """Lends `future` a connection when its turn has come; it is to be given back."""
    def give(self, connection: Connection | None) -> bool:
        """Takes a connection back that was lent, or what is to be opened anew in its place.
        `False` if all is closed: then the caller closes it.
        """
    def expire(self, timeout: float, explain: Callable[[], str], is_writer: bool) -> float | None:
        """Tells some of those that have waited for longer than `timeout` seconds so, in the
        words of `explain()`; in how many seconds there is somebody else to be told, if
        anybody waits. No more of them at a time than a loop takes in one turn, or what
        comes for others would wait behind them.
        """
    def interrupt_reads(self) -> None:
        """Interrupts the reads that are under way."""
    def end(self) -> None:
        """The process ends: whoever still asks, in a thread that ends with it, is left waiting."""
    def close(self, timeout: float) -> tuple[list[Connection], bool]:
        """Takes up nothing any more, and waits for `timeout` seconds until all have come back:
        the connections to be closed, and whether that is all of them. To be called outside
        the event loop.
        """
    def statistics(self) -> tuple[int, int, int, int, int, int, int]:
        """How many connections are idle, work and are lent, and how many of those that work
        are being opened; how many wait for them; batches, and how many requests were in
        them.
        """

@final
class Announcement:
    """What is signalled when a notification in `channel` of the database at `path` has been
    committed.

    `ValueError` for what is no name of a channel. Where processes have no memory in common
    nothing is signalled: whoever watches the files finds it.
    """
    def __new__(cls, path: str, channel: str) -> Self: ...
    def check(self, connection: Connection) -> None:
        """`ProgrammingError` if the main database of `connection` is not the one at the path."""
    @staticmethod
    def of_rows(path: str, prefix: str) -> Announcement:
        """What is signalled when a statement is committed: the topics that its rows name in
        their first column, after `prefix`.
        """
    def follow(self, connection: Connection, names: list[str] = ...) -> None:
        """Announces it when the transaction ends that is open on `connection`, which has
        inserted it. `names`: what was returned in the first column of the rows, if topics
        are named there.
        """

@final
class Feed:
    """Reads the notifications of a database, by a connection that is used for nothing else."""
    def __new__(cls, connection: Connection) -> Self: ...
    def has_table(self) -> bool:
        """Whether the table of notifications is there. Raises `LockedError` soon, as the
        others do, where another program has the file for itself: whoever asks waits by
        himself, so that nobody waits for him meanwhile.
        """
    def listen(self, channels: list[str], since: str | None) -> Subscription:
        """Listens to `channels` from now on, or from after the position `since`."""
    def hear(self, topics: list[str]) -> Hearing:
        """Hears whenever rows come to a table of Oxlite's that names one of `topics`, whoever
        commits them.
        """
    def close(self, quietly: bool = False) -> None:
        """Ends all who listen. With `quietly` that is no error to them."""

@final
class Hearing:
    """Hears of rows in tables of Oxlite's."""
    def seen(self) -> int:
        """The number of the latest signal, to be asked for before one looks at the database."""
    def has_newer(self, seen: int) -> bool:
        """Whether there is a signal with a greater number; if not, the descriptor is readable
        when there is one.
        """
    def is_replaced(self) -> bool:
        """Whether the name of the database leads to another file, or to none."""
    def fileno(self) -> int:
        """Readable when there is news."""
    def close(self) -> None:
        """Hears no longer."""

@final
class Subscription:
    """What one takes who listens."""
    def take(self, timeout: float | None) -> tuple[str, str | bytes | None, str] | None:
        """The next notification: channel, payload and position; waits for `timeout` seconds at
        most, for ever with `None`. `None` if none has come.
        """
    def has_ended(self) -> bool:
        """Whether it has come to its end, and nothing waits any more."""
    def fileno(self) -> int:
        """Readable while one waits, and after the end."""
    def close(self) -> None:
        """Listens no longer, and wakes whoever waits."""

@final
class ClockChange:
    """What is done to the clock before a question is answered: it shows the time of a zone, is
    put forward by some microseconds, and then shows the time of another zone, if there is
    one.

    The zones are the bytes of TZif files; `ValueError` for those that are not certainly
    understood as `zoneinfo` does.
    """
    def __new__(cls, source: bytes, shift: int, target: bytes | None, /) -> Self: ...

def create_date_functions(
    connection: Connection,
    originals: Mapping[str, Callable[..., Any]],
    clock_change: Callable[[str | None, str | None], ClockChange | None],
    /,
) -> None:
    """Creates those of the functions that `originals` has, by their names in SQL, each with
    its original behind it. `clock_change` is called with the names of two zones, the one
    that is asked for and the connection's, and returns a `ClockChange`, or `None` where the
    originals are to be called.
    """

def create_pattern_function(
    connection: Connection,
    original: Callable[..., Any],
    pattern_of: Callable[[str], Pattern | None],
    /,
    *,
    searches_integers: bool,
) -> None:
    """Creates `REGEXP` with the original behind it. `pattern_of` is called with a pattern in
    Python's language, and returns a `Pattern`, or `None` where the original is to be
    called. With `searches_integers` an integer is searched as the text that it is written
    as.
    """

@final
class NativeConverter:
    """A converter for `register_converter`: of `bool`, `date`, `time` or `datetime`, as `kind`
    says.

    A `bool` is whether the bytes are `1`. Of the others they are `2026-11-26`, `01:02:03`
    with up to six digits after a point, or both with a space between them; `original` is
    called with all else.

    Raises `ValueError` for any other kind.
    """
    def __new__(cls, kind: str, original: Callable[[bytes], object], /) -> Self: ...
    def __call__(self, stored: bytes, /) -> object:
        """What the original makes of the bytes."""

@final
class Pattern:
    """A regular expression in the language of Rust's `regex`; `ValueError` for one that is
    wrong or too large. With `is_of_ascii` it is said of texts in ASCII alone.
    """
    def __new__(cls, expression: str, is_of_ascii: bool, ignores_case: bool, /) -> Self: ...
    def is_in(self, text: bytes, /) -> bool | None:
        """Whether a text has a match; `None` where that is not certainly known."""

def create_statistic_functions(
    connection: Connection, originals: Mapping[str, Callable[[], Any]], /
) -> None:
    """Creates those of the statistical aggregates that `originals` has, by their names in SQL,
    each with its original behind it: a class of `create_aggregate`.
    """

def create_any_value_function(connection: Connection, original: Callable[[], Any], /) -> None:
    """Creates `ANY_VALUE` with the original behind it: a class of `create_aggregate` whose
    result is the first value.
    """

def create_copy_functions(connection: Connection, /) -> None:
    """Creates `oxlite_copy_text(text)`: a text as a column of a line of PostgreSQL's COPY, or
    NULL for one with a NUL in it, for one that is no UTF-8, and for what is no text; and
    `oxlite_copy_row(kinds, column, …)` and `oxlite_compared_row(kinds, column, …)`: a line,
    and what stands for a row where it is compared, or NULL where a value does not certainly
    fit. `kinds` has a letter for each column.
    """

def create_small_functions(
    connection: Connection, originals: Mapping[str, Callable[..., Any]], /
) -> None:
    """Creates those of the small functions that `originals` has, by their names in SQL, each
    with its original behind it: `BITXOR`, `LPAD`, `REPEAT`, `REVERSE`, `RPAD` and `SIGN`.
    """

@final
class Seals:
    """Seals what a cache keeps, and opens it again: with the first of its keys of 16 bytes,
    and with all of them.
    """
    def __new__(cls, keys: Sequence[bytes], /) -> Self: ...
    def seal(self, kind: int, key: str, expires_at: int, content: bytes, /) -> bytes:
        """What is stored of a value of that kind."""
    def open(self, key: str, expires_at: int, value: bytes, /) -> tuple[int, bytes] | None:
        """The kind and content of a value that is stored; `None` if it is not what was sealed
        for that key and expiry.
        """

def cache_number(key: str, /) -> int:
    """The number of 64 bits under which a cache looks for a key. `ValueError` for text that is
    no valid Unicode.
    """

def prepare_notifications(connection: Connection) -> None:
    """Makes the table of notifications if it is not there, in the transaction that is open or
    in one of its own.
    """

@final
class Writer:
    """The writing connection of a database, lent to one thread at a time."""
    def __new__(
        cls, open: Callable[[], Connection], timeout: float, batch_limit: int, profile: str
    ) -> Self: ...
    def take(self, loan: Loan, timeout: float | None = None) -> None:
        """Borrows the connection, waiting for `timeout` seconds if that is given. What is left
        of the writer's own timeout is what the connection waits for locks, until it is
        given back or `wait_at_most` says otherwise. `WriterInUse` if it has not come back
        in time.
        """
    def execute(
        self,
        sql: str,
        parameters: object,
        is_many: bool,
        announcement: Announcement | None = None,
    ) -> tuple[int, int | None, list[Any]] | None:
        """Runs one writing statement, perhaps in one transaction with those of other threads:
        row count, row id and rows. When it has been committed it is announced. `None`, with
        nothing done, if it can only be run alone. `WriterInUse` if it has not come back in
        time.
        """
    def close(self, timeout: float) -> bool:
        """Lends nothing any more. The connection, if it is open and has come back in `timeout`
        seconds, is closed; whether it has come back.
        """
    @property
    def connection(self) -> Connection | None:
        """The connection, if it is open; only to look at."""
    def holder(self) -> tuple[int, float] | None:
        """The thread that has it, and for how many seconds."""
    def statistics(self) -> tuple[int, int, int]:
        """How many threads wait, how many batches there were, and how many requests in them."""

class Setting(NamedTuple):
    """What became of a pragma on opening: its name, the value requested, the effective value,
    and why it was skipped (None if it was not).
    """

    name: str
    requested: str
    effective: str
    skipped: str | None

class Warning(Exception):
    """Not raised by Oxlite; PEP 249 asks for it."""

_Warning: TypeAlias = Warning

class Error(Exception):
    """The base of every error of this module."""

    sqlite_errorcode: int
    """SQLite's extended result code; only on what SQLite has raised."""
    sqlite_errorname: str
    """Its name, such as `SQLITE_BUSY`."""

class InterfaceError(Error):
    """The interface to SQLite was misused."""

class DatabaseError(Error):
    """An error of the database; the base of the more specific ones."""

class InternalError(DatabaseError):
    """SQLite met an inconsistency of its own."""

class OperationalError(DatabaseError):
    """An error of the database's operation: a lock, the disk, the SQL."""

@type_check_only
class _StatementActivity(TypedDict):
    sql: str
    longest_us: int
    waited_us: int
    count: int
    ago_ms: int

@type_check_only
class _ReadingActivity(TypedDict):
    thread_id: int
    held_ms: int
    sql: str | None

@type_check_only
class _ProcessActivity(TypedDict):
    process_id: int
    pid_namespace: Literal["own", "another", "unknown"]
    told_ms: int
    counters: dict[str, int]
    slowest: list[_StatementActivity]
    readings: list[_ReadingActivity]

@type_check_only
class _HolderActivity(TypedDict):
    process_id: int
    pid_namespace: Literal["own", "another", "unknown"]
    thread_id: int
    held_ms: int
    sql: str

@type_check_only
class _WalStatistics(TypedDict):
    frames: int
    commits: int
    checkpoints: int
    checkpoints_incomplete: int
    checkpoint_waits: int
    checkpoint_errors: int
    last_error: str | None
    readers_named: int

@type_check_only
class _QueueStatistics(TypedDict):
    waiting: int
    admissions: int
    thread_waits: int
    process_waits: int
    turns: int
    queue_skips: int
    process_queue_unavailable: str | None

@type_check_only
class _SharedCommitStatistics(TypedDict):
    shared_commit_unavailable: str | None
    commits: int
    syncs_led: int
    syncs_beside: int
    answered_by_others: int
    commits_of_all: int
    leaders_lost: int
    poisoned: str | None

@type_check_only
class _SharedCommitGroup(TypedDict):
    members: int | None
    commits: int
    commits_durable: int
    syncs_led: int
    leaders_lost: int
    poisoned: str | None

@type_check_only
class _LockHolder(TypedDict):
    process_id: int
    pid_namespace: Literal["own", "another", "unknown"]
    thread_id: int
    held_for_seconds: float
    statement: str

class LockedError(OperationalError):
    """Somebody else has had the lock for as long as the connection waits (`timeout`). `holder`
    tells who, as a dict with `process_id`, `thread_id`, `held_for_seconds` and `statement`,
    if it is a connection of Oxlite's that waits by `busy="gate"`, as this one does; else it
    is None.
    """

    holder: _LockHolder | None

class WriterInUse(LockedError):
    """The writer of a `Database` was in use for as long as one waits for it. `Database` says
    by whom.
    """

class CommitOutcomeUnknown(OperationalError):
    """COMMIT has failed (an error of the disk, mostly of its sync) so that nobody can tell
    whether the transaction will be there after a crash: read what there is before you do it
    again.
    """

class NotificationsLost(OperationalError):
    """Notifications are not there any more that a listener would have been given: they were
    too old or too many, or the database was replaced. Read the state that they tell of
    anew; `resume_from` is the position from which on all are kept, for `listen(since=…)`.
    """

    resume_from: str

class PoolTimeout(OperationalError):
    """All readers of a `Database` were in use for as long as one waits for one (`timeout`)."""

class StaleSnapshotError(OperationalError):
    """A transaction that has read would write, but others have written since. Nothing has been
    changed: roll back and run it again, or begin with BEGIN IMMEDIATE.
    """

class SyncFailedError(OperationalError):
    """A sync of the database has failed, in this process or in another one with which it
    shares its syncs (`durable_commit="shared"`): what was written before may be lost, so
    nothing is committed any more, by nobody. Stop all processes that use the database; the
    first one to open it again checks it.
    """

class StatementTimeout(OperationalError):
    """A statement has used up its time (`statement_timeout`) and was interrupted."""

class ProgrammingError(DatabaseError):
    """The program is wrong: a closed connection, the wrong number of parameters."""

class IntegrityError(DatabaseError):
    """A constraint would be violated."""

class DataError(DatabaseError):
    """A datum is out of range."""

class NotSupportedError(DatabaseError):
    """Something that is not supported was asked for."""
