//! The exceptions of PEP 249 and the one mapping of errors to them.
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
//!         │   │                         are the next five
//!         │   ├── LockedError         SQLITE_BUSY
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
//! The classes and the mapping are those of the standard library's `sqlite3`; so are the attributes
//! `sqlite_errorcode` (the extended code) and `sqlite_errorname`. `__module__` is `oxlite.sqlite3`,
//! where the classes are found again when one is unpickled.

use oxlite_core::{Holder, LockError, PidNamespace};
use oxlite_sqlite::codes;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::gil::{is_in_signal_handler, take_kept};

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

/// The exception for an error of SQLite; if a signal handler or a callback has raised one that is to
/// end more than the statement, that one.
pub(crate) fn from_sqlite(py: Python<'_>, error: &oxlite_sqlite::Error) -> PyErr {
    if let Some(raised) = take_kept() {
        return raised;
    }
    let message = error.message().to_owned();
    let exception = match error.primary_code() {
        codes::SQLITE_NOMEM => return PyMemoryError::new_err(()),
        codes::SQLITE_INTERNAL | codes::SQLITE_NOTFOUND => InternalError::new_err(message),
        codes::SQLITE_ERROR
        | codes::SQLITE_PERM
        | codes::SQLITE_ABORT
        | codes::SQLITE_BUSY
        | codes::SQLITE_LOCKED
        | codes::SQLITE_READONLY
        | codes::SQLITE_INTERRUPT
        | codes::SQLITE_IOERR
        | codes::SQLITE_FULL
        | codes::SQLITE_CANTOPEN
        | codes::SQLITE_PROTOCOL
        | codes::SQLITE_EMPTY
        | codes::SQLITE_SCHEMA => OperationalError::new_err(message),
        codes::SQLITE_TOOBIG => DataError::new_err(message),
        codes::SQLITE_CONSTRAINT | codes::SQLITE_MISMATCH => IntegrityError::new_err(message),
        codes::SQLITE_MISUSE | codes::SQLITE_RANGE => InterfaceError::new_err(message),
        _ => DatabaseError::new_err(message),
    };
    with_code(py, exception, error)
}

/// The exception with the extended result code and its name.
fn with_code(py: Python<'_>, exception: PyErr, error: &oxlite_sqlite::Error) -> PyErr {
    let value = exception.value(py);
    let attributes = value
        .setattr("sqlite_errorcode", error.code())
        .and_then(|()| value.setattr("sqlite_errorname", error.name()));
    match attributes {
        Ok(()) => exception,
        Err(failure) => failure,
    }
}

fn set_holder(py: Python<'_>, exception: &PyErr, holder: Option<Holder>) -> PyResult<()> {
    let holder = match holder {
        None => None,
        Some(holder) => {
            let dict = PyDict::new(py);
            dict.set_item("process_id", holder.process_id)?;
            dict.set_item(
                "pid_namespace",
                match holder.pid_namespace {
                    PidNamespace::Own => "own",
                    PidNamespace::Another => "another",
                    PidNamespace::Unknown => "unknown",
                },
            )?;
            dict.set_item("thread_id", holder.thread_id)?;
            dict.set_item("held_for_seconds", holder.held_for.as_secs_f64())?;
            dict.set_item("statement", holder.statement)?;
            Some(dict)
        }
    };
    exception.value(py).setattr("holder", holder)
}

/// The exception for an error of the core.
pub(crate) fn from_core(py: Python<'_>, error: oxlite_core::Error) -> PyErr {
    match error {
        oxlite_core::Error::Sqlite(error) => from_sqlite(py, &error),
        oxlite_core::Error::StatementTimeout(error) => with_code(
            py,
            StatementTimeout::new_err(error.message().to_owned()),
            &error,
        ),
        oxlite_core::Error::Locked { error, holder } => {
            if let Some(raised) = take_kept() {
                return raised;
            }
            let exception = LockedError::new_err(error.message().to_owned());
            match set_holder(py, &exception, holder) {
                Ok(()) => with_code(py, exception, &error),
                Err(failure) => failure,
            }
        }
        oxlite_core::Error::StaleSnapshot(error) => with_code(
            py,
            StaleSnapshotError::new_err(format!(
                "{}: others have written since this transaction began to read; roll back and run it \
                 again, or begin it with BEGIN IMMEDIATE",
                error.message()
            )),
            &error,
        ),
        oxlite_core::Error::CommitOutcomeUnknown(error) => with_code(
            py,
            CommitOutcomeUnknown::new_err(format!(
                "{}, while committing: whether the transaction has been committed is unknown; look \
                 before you repeat it",
                error.message()
            )),
            &error,
        ),
        oxlite_core::Error::SyncFailed(error) => with_code(
            py,
            SyncFailedError::new_err(error.message().to_owned()),
            &error,
        ),
        oxlite_core::Error::Value(message) => PyValueError::new_err(message),
        oxlite_core::Error::Type(message) => PyTypeError::new_err(message),
        oxlite_core::Error::Programming(message) => ProgrammingError::new_err(message),
        oxlite_core::Error::Data(message) => DataError::new_err(message),
        ineffective @ oxlite_core::Error::PragmaIneffective { .. } => {
            OperationalError::new_err(ineffective.to_string())
        }
    }
}

/// The exception for a connection that could not be locked.
pub(crate) fn lock_failed(error: LockError) -> PyErr {
    ProgrammingError::new_err(match error {
        // It passes, as a lock does.
        LockError::BackupTarget => {
            return OperationalError::new_err(
                "This connection is the target of a backup, and cannot be used before that is \
                 finished.",
            );
        }
        LockError::Closed => "Cannot operate on a closed database.",
        LockError::InCallback if is_in_signal_handler() => {
            "A signal handler that runs in the middle of a statement cannot use the connection of \
             the statement."
        }
        LockError::InCallback => "A callback of this kind cannot use the connection that calls it.",
        LockError::Forked => {
            "This connection was opened before a fork, in the parent process; it cannot be used here. \
             Open a new one in this process."
        }
    })
}
