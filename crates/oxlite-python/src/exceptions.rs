//! The exceptions of PEP 249, and which errors of SQLite become which (`error` maps them).
//!
//! ```text
//! Exception
//! ├── Warning
//! └── Error
//!     ├── InterfaceError          SQLITE_MISUSE, SQLITE_RANGE
//!     └── DatabaseError           SQLITE_CORRUPT, SQLITE_NOTADB and what is not named here
//!         ├── InternalError       SQLITE_INTERNAL, SQLITE_NOTFOUND
//!         ├── OperationalError    SQLITE_ERROR, SQLITE_BUSY, SQLITE_IOERR, SQLITE_FULL, …
//!         │   ├── CommitOutcomeUnknown  SQLITE_IOERR and the like while committing; in `oxlite`, as
//!         │   │                         are the next six
//!         │   ├── LockedError         SQLITE_BUSY
//!         │   ├── NotificationsLost   a listener's place is not kept any more
//!         │   ├── PoolTimeout         no connection of a `Database` came back in time
//!         │   ├── StaleSnapshotError  SQLITE_BUSY_SNAPSHOT
//!         │   ├── SyncFailedError     SQLITE_IOERR_FSYNC where syncs are shared
//!         │   └── StatementTimeout    SQLITE_INTERRUPT by statement_timeout
//!         ├── ProgrammingError    misuse that never reaches SQLite
//!         ├── IntegrityError      SQLITE_CONSTRAINT, SQLITE_MISMATCH
//!         ├── DataError           SQLITE_TOOBIG
//!         └── NotSupportedError
//! ```
//!
//! The classes are those of the standard library's `sqlite3`; so are the attributes
//! `sqlite_errorcode` (the extended code) and `sqlite_errorname`. `__module__` is `oxlite.sqlite3`,
//! where the classes are found again when one is unpickled.

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    oxlite.sqlite3,
    Warning,
    PyException,
    "Not raised by Oxlite; PEP 249 asks for it."
);
create_exception!(
    oxlite.sqlite3,
    Error,
    PyException,
    "The base of every error of this module."
);
create_exception!(
    oxlite.sqlite3,
    InterfaceError,
    Error,
    "The interface to SQLite was misused."
);
create_exception!(
    oxlite.sqlite3,
    DatabaseError,
    Error,
    "An error of the database; the base of the more specific ones."
);
create_exception!(
    oxlite.sqlite3,
    InternalError,
    DatabaseError,
    "SQLite met an inconsistency of its own."
);
create_exception!(
    oxlite.sqlite3,
    OperationalError,
    DatabaseError,
    "An error of the database's operation: a lock, the disk, the SQL."
);
create_exception!(
    oxlite,
    CommitOutcomeUnknown,
    OperationalError,
    "COMMIT has failed (an error of the disk, mostly of its sync) so that nobody can tell whether the \
     transaction will be there after a crash: read what there is before you do it again."
);
create_exception!(
    oxlite,
    LockedError,
    OperationalError,
    "Somebody else has had the lock for as long as the connection waits (`timeout`). `holder` tells who, \
     as a dict with `process_id`, `thread_id`, `held_for_seconds` and `statement`, if it is a connection \
     of Oxlite's that waits by `busy=\"gate\"`, as this one does; else it is None."
);
create_exception!(
    oxlite,
    NotificationsLost,
    OperationalError,
    "Notifications are not there any more that a listener would have been given: they were too old or too \
     many, or the database was replaced. Read the state that they tell of anew; `resume_from` is the \
     position from which on all are kept, for `listen(since=…)`."
);
create_exception!(
    oxlite,
    PoolTimeout,
    OperationalError,
    "All readers of a `Database` were in use for as long as one waits for one (`timeout`)."
);
create_exception!(
    oxlite._native,
    WriterInUse,
    LockedError,
    "The writer of a `Database` was in use for as long as one waits for it. `Database` says by whom."
);
create_exception!(
    oxlite,
    StaleSnapshotError,
    OperationalError,
    "A transaction that has read would write, but others have written since. Nothing has been changed: \
     roll back and run it again, or begin with BEGIN IMMEDIATE."
);
create_exception!(
    oxlite,
    SyncFailedError,
    OperationalError,
    "A sync of the database has failed, in this process or in another one with which it shares its syncs \
     (`durable_commit=\"shared\"`): what was written before may be lost, so nothing is committed any more, \
     by nobody. Stop all processes that use the database; the first one to open it again checks it."
);
create_exception!(
    oxlite,
    StatementTimeout,
    OperationalError,
    "A statement has used up its time (`statement_timeout`) and was interrupted."
);
create_exception!(
    oxlite.sqlite3,
    ProgrammingError,
    DatabaseError,
    "The program is wrong: a closed connection, the wrong number of parameters."
);
create_exception!(
    oxlite.sqlite3,
    IntegrityError,
    DatabaseError,
    "A constraint would be violated."
);
create_exception!(
    oxlite.sqlite3,
    DataError,
    DatabaseError,
    "A datum is out of range."
);
create_exception!(
    oxlite.sqlite3,
    NotSupportedError,
    DatabaseError,
    "Something that is not supported was asked for."
);

/// The names of all of them.
pub(crate) const NAMES: [&str; 10] = [
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "InternalError",
    "OperationalError",
    "ProgrammingError",
    "IntegrityError",
    "DataError",
    "NotSupportedError",
];
