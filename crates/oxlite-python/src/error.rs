//! The one mapping of errors to exceptions: those of SQLite, of the core, and of a connection that cannot be
//! locked. As in the standard library's `sqlite3`, what is SQLite's carries its code and the code's name.
//!
//! Invariant: what a signal handler or a callback has raised in mid-statement goes before the statement's own
//! error.

use oxlite_core::{Holder, LockError, PidNamespace};
use oxlite_sqlite::codes;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::exceptions::{
    CommitOutcomeUnknown, DataError, DatabaseError, IntegrityError, InterfaceError, InternalError,
    LockedError, OperationalError, ProgrammingError, StaleSnapshotError, StatementTimeout,
    SyncFailedError,
};
use crate::gil::{is_in_signal_handler, take_kept};

/// The exception for an error of SQLite; if a signal handler or a callback has raised one that is to
/// end more than the statement, that one.
pub(crate) fn from_sqlite(py: Python<'_>, error: &oxlite_sqlite::Error) -> PyErr {
    if let Some(raised) = take_kept() {
        return raised;
    }
    let message = error.message().to_owned();
    let exception = match error.primary_code() {
        // As the standard library has it, where nothing more is known.
        codes::SQLITE_NOMEM if message == "out of memory" => return PyMemoryError::new_err(()),
        codes::SQLITE_NOMEM => return PyMemoryError::new_err(message),
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
        ineffective @ (oxlite_core::Error::PragmaIneffective { .. }
        | oxlite_core::Error::PrecautionIneffective { .. }) => {
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
