"""The native module's declarations; tests hold them against the built module."""

from asyncio import Future
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import (
    Any,
    ClassVar,
    Literal,
    NoReturn,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

from typing_extensions import Buffer, disjoint_base

__all__ = [
    "ABSENT",
    "LEGACY_TRANSACTION_CONTROL",
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
    "Blob",
    "Change",
    "CommitOutcomeUnknown",
    "Conflict",
    "Connection",
    "Connections",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Job",
    "Loan",
    "LockedError",
    "Mailbox",
    "NotSupportedError",
    "OperationalError",
    "Pool",
    "PoolTimeout",
    "PrepareProtocol",
    "ProgrammingError",
    "Row",
    "Session",
    "StaleSnapshotError",
    "Statement",
    "StatementTimeout",
    "SyncFailedError",
    "Turns",
    "Warning",
    "Writer",
    "WriterInUse",
    "__version__",
    "adapt",
    "adapters",
    "close_to_threads",
    "complete_statement",
    "concat_changesets",
    "confine",
    "connect",
    "converters",
    "enable_callback_tracebacks",
    "enable_shared_cache",
    "forget_rowid",
    "harmless",
    "invert_changeset",
    "latest_rowid",
    "only_read",
    "open_to_threads",
    "profiles",
    "read_changeset",
    "register_adapter",
    "register_converter",
    "shared_commit_group",
    "sqlite_source_id",
    "sqlite_threadsafe",
    "sqlite_version",
    "wait_at_most",
]

__version__: str
sqlite_version: str
sqlite_source_id: str

ABSENT: Absent
LEGACY_TRANSACTION_CONTROL: Literal[-1]
PARSE_COLNAMES: int
PARSE_DECLTYPES: int
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

adapters: dict[tuple[type, type], Callable[[Any], Any]]
converters: dict[str, Callable[[bytes], Any]]

_IsolationLevel: TypeAlias = Literal["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"]
_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
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

def adapt(obj: Any, proto: Any = None, alt: Any = ..., /) -> Any: ...
def complete_statement(statement: str) -> bool: ...
def concat_changesets(first: Buffer, second: Buffer, /) -> bytes: ...
def enable_callback_tracebacks(enable: object, /) -> None: ...
def enable_shared_cache(do_enable: bool) -> None: ...
def close_to_threads() -> None: ...
def open_to_threads() -> None: ...
def confine(connection: Connection, to_this_thread: bool) -> None: ...
def forget_rowid(connection: Connection) -> None: ...
def wait_at_most(connection: Connection, seconds: float | None) -> None: ...
def harmless(text: str) -> str: ...
def latest_rowid(connection: Connection) -> int | None: ...
def only_read(connection: Connection) -> None: ...
def invert_changeset(changeset: Buffer, /) -> bytes: ...
def read_changeset(changeset: Buffer, /) -> Iterator[Change]: ...
def register_adapter(type: type[Any], adapter: _Adapter, /) -> None: ...
def register_converter(typename: str, converter: Callable[[bytes], Any], /) -> None: ...
def shared_commit_group(database: _PathOrName) -> _SharedCommitGroup | None: ...
def profiles() -> dict[str, dict[str, int | str]]: ...
def sqlite_threadsafe() -> int: ...
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
    profile: str = "stock",
    pragmas: dict[str, bool | int | str] | None = None,
    journal: Literal["profile", "keep"] = "profile",
    busy: Literal["none", "backoff", "fair", "gate"] | None = None,
    busy_handler: Callable[[int], object] | None = None,
    statement_timeout: float | None = None,
    extensions: Iterable[_PathOrName] | None = None,
    allow_no_locking: bool = False,
    durable_commit: Literal["each", "shared"] = "each",
) -> Connection: ...

@disjoint_base
class Connection:
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
    isolation_level: _IsolationLevel | None
    row_factory: Callable[[Cursor, tuple[Any, ...]], object] | None
    statement_timeout: float | None
    text_factory: Callable[[bytes], Any]
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
        profile: str = "stock",
        pragmas: dict[str, bool | int | str] | None = None,
        journal: str = "profile",
        busy: str | None = None,
        busy_handler: Callable[[int], object] | None = None,
        statement_timeout: float | None = None,
        extensions: Iterable[_PathOrName] | None = None,
        allow_no_locking: bool = False,
        durable_commit: Literal["each", "shared"] = "each",
    ) -> None: ...
    def queue_statistics(self) -> _QueueStatistics | None: ...
    def shared_commit_statistics(self) -> _SharedCommitStatistics | None: ...
    def checkpoint(
        self,
        mode: Literal["passive", "full", "restart", "truncate"] = "passive",
        *,
        timeout: float = 1.0,
        name: str = "main",
    ) -> tuple[bool, int, int]: ...
    def wal_statistics(self) -> _WalStatistics | None: ...
    @property
    def busy(self) -> Literal["none", "backoff", "fair", "gate", "handler"]: ...
    @property
    def in_transaction(self) -> bool: ...
    @property
    def profile(self) -> str: ...
    @property
    def settings(self) -> tuple[tuple[str, str, str, str | None], ...]: ...
    @property
    def timeout(self) -> float: ...
    @property
    def total_changes(self) -> int: ...
    def apply_changeset(
        self,
        changeset: Buffer,
        *,
        filter: Callable[[str], object] | None = None,
        on_conflict: Callable[[Conflict], _ConflictAction] | _ConflictAction | None = None,
    ) -> None: ...
    def backup(
        self,
        target: Connection,
        *,
        pages: int = ...,
        progress: Callable[[int, int, int], object] | None = None,
        name: str = "main",
        sleep: float = 0.25,
    ) -> None: ...
    def blobopen(
        self,
        table: str,
        column: str,
        row: int,
        /,
        *,
        readonly: bool = ...,
        name: str = "main",
    ) -> Blob: ...
    def close(self) -> None: ...
    def end_reads(self) -> bool: ...
    def commit(self) -> None: ...
    def create_aggregate(
        self, name: str, n_arg: int, aggregate_class: Callable[[], Any] | None
    ) -> None: ...
    def create_collation(
        self, name: str, callback: Callable[[str, str], SupportsIndex] | None, /
    ) -> None: ...
    def create_function(
        self,
        name: str,
        narg: int,
        func: Callable[..., Any] | None,
        *,
        deterministic: bool = False,
    ) -> None: ...
    def create_session(
        self, *, name: str = "main", tables: Iterable[str] | None = None
    ) -> Session: ...
    def create_window_function(
        self, name: str, num_params: int, aggregate_class: Callable[[], Any] | None, /
    ) -> None: ...
    @overload
    def cursor(self) -> Cursor: ...
    @overload
    def cursor(self, factory: Callable[[Connection], _CursorT]) -> _CursorT: ...
    def deserialize(self, data: Buffer, /, *, name: str = "main") -> None: ...
    def enable_load_extension(self, enable: bool, /) -> None: ...
    def execute(self, sql: str, parameters: _Parameters = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[_Parameters], /) -> Cursor: ...
    def executescript(self, sql_script: str, /) -> Cursor: ...
    def getconfig(self, op: int, /) -> bool: ...
    def getlimit(self, category: int, /) -> int: ...
    def interrupt(self) -> None: ...
    def iterdump(self, *, filter: str | None = None) -> Iterator[str]: ...
    def load_extension(self, name: str, /, *, entrypoint: str | None = None) -> None: ...
    def rollback(self) -> None: ...
    def serialize(self, *, name: str = "main") -> bytes: ...
    def set_authorizer(
        self,
        authorizer_callback: Callable[[int, str | None, str | None, str | None, str | None], int]
        | None,
    ) -> None: ...
    def set_commit_hook(self, commit_hook: Callable[[], object] | None, /) -> None: ...
    def set_preupdate_hook(self, preupdate_hook: _PreupdateHook | None, /) -> None: ...
    def set_progress_handler(
        self, progress_handler: Callable[[], object] | None, n: int
    ) -> None: ...
    def set_rollback_hook(self, rollback_hook: Callable[[], object] | None, /) -> None: ...
    def set_trace_callback(self, trace_callback: Callable[[str], object] | None) -> None: ...
    def set_update_hook(
        self, update_hook: Callable[[int, str, str, int], object] | None, /
    ) -> None: ...
    def set_wal_hook(self, wal_hook: Callable[[str, int], object] | None, /) -> None: ...
    def setconfig(self, op: int, enable: bool = ..., /) -> None: ...
    def setlimit(self, category: int, limit: int, /) -> int: ...
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
    enabled: bool
    indirect: bool
    @property
    def is_empty(self) -> bool: ...
    @property
    def memory_used_bytes(self) -> int: ...
    def attach(self, table: str | None = None) -> None: ...
    def changeset(self) -> bytes: ...
    def close(self) -> None: ...
    def diff(self, table: str, *, from_name: str) -> None: ...
    def patchset(self) -> bytes: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _exception_type: type[BaseException] | None,
        _exception: BaseException | None,
        _traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Absent:
    def __reduce__(self) -> str: ...

@final
class Change:
    __match_args__: ClassVar[tuple[str, str, str, str]]
    @property
    def is_indirect(self) -> bool: ...
    @property
    def key(self) -> tuple[Any, ...]: ...
    @property
    def new(self) -> tuple[Any, ...]: ...
    @property
    def old(self) -> tuple[Any, ...]: ...
    @property
    def operation(self) -> Literal["insert", "update", "delete"]: ...
    @property
    def primary_key(self) -> tuple[bool, ...]: ...
    @property
    def table(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Conflict:
    @property
    def change(self) -> Change | None: ...
    @property
    def kind(
        self,
    ) -> Literal["data", "not_found", "conflict", "constraint", "foreign_key"]: ...
    @property
    def row(self) -> tuple[Any, ...] | None: ...
    @property
    def violations(self) -> int | None: ...

@final
class Statement: ...

@final
class PrepareProtocol:
    def __new__(cls, *_args: object, **_kwargs: object) -> Self: ...

@final
class Blob:
    def close(self) -> None: ...
    def read(self, length: int = ..., /) -> bytes: ...
    def seek(self, offset: int, origin: int = 0, /) -> None: ...
    def tell(self) -> int: ...
    def write(self, data: Buffer, /) -> None: ...
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
    arraysize: int
    row_factory: Callable[[Cursor, tuple[Any, ...]], object] | None
    def __init__(self, connection: Connection) -> None: ...
    @property
    def connection(self) -> Connection: ...
    @property
    def description(
        self,
    ) -> tuple[tuple[str, None, None, None, None, None, None], ...] | None: ...
    @property
    def lastrowid(self) -> int | None: ...
    @property
    def rowcount(self) -> int: ...
    def close(self) -> None: ...
    def execute(self, sql: str, parameters: _Parameters = ..., /) -> Self: ...
    def executemany(self, sql: str, seq_of_parameters: Iterable[_Parameters], /) -> Self: ...
    def executescript(self, sql_script: str, /) -> Self: ...
    def fetchall(self) -> list[Any]: ...
    def fetchmany(self, size: int = 1) -> list[Any]: ...
    def fetchone(self) -> Any: ...
    def setinputsizes(self, sizes: object, /) -> None: ...
    def setoutputsize(self, size: object, column: object = None, /) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

@disjoint_base
class Row(Sequence[Any]):
    def __new__(cls, cursor: Cursor, data: tuple[Any, ...]) -> Self: ...
    def keys(self) -> list[str]: ...
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
    connection: Connection | None
    def __new__(cls) -> Self: ...
    def give_back(self, is_usable: bool) -> None: ...

@final
class Pool:
    def __new__(cls, count: int) -> Self: ...
    def take(self, loan: Loan, timeout: float) -> float | None: ...
    def holders(self) -> list[tuple[int, float]]: ...
    def lends_to_this_thread(self) -> bool: ...
    def lent(self) -> list[Connection]: ...
    def close(self) -> list[Connection]: ...
    def wait_for_all(self, timeout: float) -> bool: ...
    def statistics(self) -> tuple[int, int, int]: ...

@final
class Mailbox:
    def __new__(cls) -> Self: ...
    def fileno(self) -> int: ...
    def collect(self) -> None: ...
    def close(self) -> None: ...

@final
class Job:
    def cancel(self) -> bool: ...

@final
class Turns:
    def __new__(cls) -> Self: ...
    def call(
        self,
        mailbox: Mailbox,
        future: Future[Any],
        function: Callable[..., object],
        arguments: tuple[Any, ...],
        connection: Connection | None = None,
    ) -> Job: ...
    def fetch(
        self,
        mailbox: Mailbox,
        future: Future[Any],
        connection: Connection,
        function: Callable[[str, Any], object],
        sql: str,
        parameters: object,
    ) -> Job: ...
    def call_unheard(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> None: ...

@final
class Connections:
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
    ) -> Job | None: ...
    def write(
        self, mailbox: Mailbox, future: Future[Any], sql: str, parameters: object, is_many: bool
    ) -> Job | None: ...
    def take(self, mailbox: Mailbox, future: Future[Any]) -> Job: ...
    def give(self, connection: Connection | None) -> bool: ...
    def expire(
        self, timeout: float, explain: Callable[[], str], is_writer: bool
    ) -> float | None: ...
    def interrupt_reads(self) -> None: ...
    def end(self) -> None: ...
    def close(self, timeout: float) -> tuple[list[Connection], bool]: ...
    def statistics(self) -> tuple[int, int, int, int, int, int, int]: ...

@final
class Writer:
    def __new__(
        cls, open: Callable[[], Connection], timeout: float, batch_limit: int, profile: str
    ) -> Self: ...
    def take(self, loan: Loan, timeout: float | None = None) -> None: ...
    def execute(
        self, sql: str, parameters: object, is_many: bool
    ) -> tuple[int, int | None, list[Any]] | None: ...
    def close(self, timeout: float) -> bool: ...
    @property
    def connection(self) -> Connection | None: ...
    def holder(self) -> tuple[int, float] | None: ...
    def statistics(self) -> tuple[int, int, int]: ...

class Warning(Exception): ...

_Warning: TypeAlias = Warning

class Error(Exception):
    sqlite_errorcode: int
    sqlite_errorname: str

class InterfaceError(Error): ...
class DatabaseError(Error): ...
class InternalError(DatabaseError): ...
class OperationalError(DatabaseError): ...

@type_check_only
class _WalStatistics(TypedDict):
    frames: int
    checkpoints: int
    checkpoints_incomplete: int
    checkpoint_errors: int
    last_error: str | None
    readers_named: int

@type_check_only
class _QueueStatistics(TypedDict):
    waiting: int
    passes: int
    lane_waits: int
    gate_waits: int
    bypasses: int
    no_gate: str | None

@type_check_only
class _SharedCommitStatistics(TypedDict):
    no_sharing: str | None
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
    holder: _LockHolder | None

class WriterInUse(LockedError): ...
class CommitOutcomeUnknown(OperationalError): ...
class PoolTimeout(OperationalError): ...
class StaleSnapshotError(OperationalError): ...
class SyncFailedError(OperationalError): ...
class StatementTimeout(OperationalError): ...
class ProgrammingError(DatabaseError): ...
class IntegrityError(DatabaseError): ...
class DataError(DatabaseError): ...
class NotSupportedError(DatabaseError): ...
