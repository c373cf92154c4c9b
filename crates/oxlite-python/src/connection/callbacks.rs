//! What a connection calls back while it works: authorizer, progress handler, trace, hooks.
//!
//! SQLite forbids all of them but the WAL hook to use the connection that calls them; one that tries
//! gets a `ProgrammingError`.

use oxlite_sqlite::Locked;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Connection;
use crate::callback::{self, Callable, Kind};
use crate::error::from_sqlite;
use crate::exceptions::OperationalError;
use crate::signature::{check_names, hand_on};

/// How many pages in the WAL make a commit run a checkpoint, unless said otherwise
/// (<https://sqlite.org/c3ref/wal_autocheckpoint.html>).
const AUTOCHECKPOINT: &str = "PRAGMA wal_autocheckpoint = 1000";

impl Connection {
    /// Puts a callback in place by `set`, and lets go of the one before, with nothing locked.
    fn set_callback(
        &self,
        py: Python<'_>,
        kind: Kind,
        callable: Option<Py<PyAny>>,
        set: impl FnOnce(&Locked<'_>, Option<Callable>) -> PyResult<()>,
    ) -> PyResult<()> {
        let callable = callable.map(Callable::new);
        self.on_locked(py, |core, locked| {
            core.note_callback();
            set(locked, callable.clone())
        })?;
        let replaced = {
            let mut attributes = self.attributes.get_mut(py);
            attributes.callables.replace(kind, callable)
        };
        drop(replaced);
        Ok(())
    }
}

#[pymethods]
impl Connection {
    /// Asks `authorizer_callback` about every access while a statement is prepared: it is called
    /// with an action code, two arguments that depend on it, the schema, and the trigger or view
    /// responsible; it answers `SQLITE_OK`, `SQLITE_DENY` or `SQLITE_IGNORE`. `None` removes it.
    #[pyo3(
        signature = (*arguments, **keywords),
        text_signature = "($self, authorizer_callback)"
    )]
    fn set_authorizer<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = ["authorizer_callback"];
        check_names("set_authorizer", &names, arguments, keywords)?;
        hand_on!(set_authorizer, slf, arguments, keywords)
    }

    /// Calls `progress_handler` about every `n` instructions of SQLite's virtual machine; a true
    /// answer interrupts the statement. `None` removes it.
    #[pyo3(
        signature = (*arguments, **keywords),
        text_signature = "($self, progress_handler, n)"
    )]
    fn set_progress_handler<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = ["progress_handler"];
        check_names("set_progress_handler", &names, arguments, keywords)?;
        hand_on!(set_progress_handler, slf, arguments, keywords)
    }

    /// Calls `trace_callback` with the text, parameters filled in, of each statement that begins
    /// to run; `None` removes it.
    #[pyo3(
        signature = (*arguments, **keywords),
        text_signature = "($self, trace_callback)"
    )]
    fn set_trace_callback<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = ["trace_callback"];
        check_names("set_trace_callback", &names, arguments, keywords)?;
        hand_on!(set_trace_callback, slf, arguments, keywords)
    }

    /// Calls `update_hook` for each row that a statement inserts, updates or deletes, with
    /// `SQLITE_INSERT`, `SQLITE_UPDATE` or `SQLITE_DELETE`, the schema, the table and the row id;
    /// `None` removes it. Tables WITHOUT ROWID do not call it
    /// (<https://sqlite.org/c3ref/update_hook.html>).
    #[pyo3(signature = (update_hook, /))]
    fn set_update_hook(&self, py: Python<'_>, update_hook: Option<Py<PyAny>>) -> PyResult<()> {
        self.set_callback(py, Kind::Update, update_hook, |locked, callable| {
            locked.set_update_hook(callable.map(callback::update_hook));
            Ok(())
        })
    }

    /// Calls `preupdate_hook` before each row that a statement inserts, updates or deletes, with
    /// `SQLITE_INSERT`, `SQLITE_UPDATE` or `SQLITE_DELETE`, the schema, the table, the row id before
    /// and after, and the row before and after, as tuples; `None` stands for what there is not: the
    /// row before an insert, the row after a delete. `None` removes it.
    ///
    /// A write through a `Blob` is an update whose new row is `None`, since it is not known. TEXT that
    /// is not UTF-8 comes as `str` with surrogate escapes. The row ids of a table WITHOUT ROWID mean
    /// nothing. The hook can neither change nor prevent anything, and cannot use the connection; a
    /// connection with a `Session` cannot have one
    /// (<https://sqlite.org/c3ref/preupdate_blobwrite.html>).
    #[pyo3(signature = (preupdate_hook, /))]
    fn set_preupdate_hook(
        &self,
        py: Python<'_>,
        preupdate_hook: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        self.set_callback(py, Kind::Preupdate, preupdate_hook, |locked, callable| {
            locked
                .set_preupdate_hook(callable.map(callback::preupdate_hook))
                .map_err(|error| from_sqlite(py, &error))
        })
    }

    /// Asks `commit_hook` before each commit; a true answer, or an exception, turns the commit into
    /// a rollback. `None` removes it (<https://sqlite.org/c3ref/commit_hook.html>).
    #[pyo3(signature = (commit_hook, /))]
    fn set_commit_hook(&self, py: Python<'_>, commit_hook: Option<Py<PyAny>>) -> PyResult<()> {
        self.set_callback(py, Kind::Commit, commit_hook, |locked, callable| {
            locked.set_commit_hook(callable.map(callback::commit_hook));
            Ok(())
        })
    }

    /// Calls `rollback_hook` after each rollback; `None` removes it.
    #[pyo3(signature = (rollback_hook, /))]
    fn set_rollback_hook(&self, py: Python<'_>, rollback_hook: Option<Py<PyAny>>) -> PyResult<()> {
        self.set_callback(py, Kind::Rollback, rollback_hook, |locked, callable| {
            locked.set_rollback_hook(callable.map(callback::rollback_hook));
            Ok(())
        })
    }

    /// Calls `wal_hook` after each commit in WAL mode with the schema and the number of pages in the
    /// WAL. It takes the place of automatic checkpoints: run `PRAGMA wal_checkpoint` in it, on this
    /// connection, when the number is high. `None` removes it; checkpoints are automatic again, as
    /// the profile has them (<https://sqlite.org/c3ref/wal_hook.html>).
    #[pyo3(signature = (wal_hook, /))]
    fn set_wal_hook(&self, py: Python<'_>, wal_hook: Option<Py<PyAny>>) -> PyResult<()> {
        self.set_callback(py, Kind::Wal, wal_hook, |locked, callable| match callable {
            Some(callable) => {
                locked.set_wal_hook(Some(callback::wal_hook(callable)));
                Ok(())
            }
            // A production profile's own policy.
            None if locked.restore_log_keeper() => Ok(()),
            None => {
                locked.set_wal_hook(None);
                locked
                    .execute_batch(AUTOCHECKPOINT)
                    .map_err(|error| from_sqlite(py, &error))
            }
        })
    }
}

#[pyfunction]
#[pyo3(signature = (connection, authorizer_callback))]
fn set_authorizer(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    authorizer_callback: Option<Py<PyAny>>,
) -> PyResult<()> {
    let connection = connection.get();
    connection.set_callback(
        py,
        Kind::Authorizer,
        authorizer_callback,
        |locked, callable| {
            locked
                .set_authorizer(callable.map(callback::authorizer))
                .map_err(|_| OperationalError::new_err("Error setting authorizer callback"))
        },
    )
}

#[pyfunction]
#[pyo3(signature = (connection, progress_handler, n))]
fn set_progress_handler(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    progress_handler: Option<Py<PyAny>>,
    n: i32,
) -> PyResult<()> {
    let connection = connection.get();
    let core = connection.core()?;
    // As in SQLite, fewer than one instruction means none.
    let progress_handler = progress_handler.filter(|_| n > 0);
    connection.set_callback(py, Kind::Progress, progress_handler, |locked, callable| {
        let (operations, handler) = callback::progress_handler(core.deadline(), callable, n);
        locked.set_progress_handler(operations, Some(handler));
        Ok(())
    })
}

#[pyfunction]
#[pyo3(signature = (connection, trace_callback))]
fn set_trace_callback(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    trace_callback: Option<Py<PyAny>>,
) -> PyResult<()> {
    let connection = connection.get();
    connection.set_callback(py, Kind::Trace, trace_callback, |locked, callable| {
        locked
            .set_trace(callable.map(callback::tracer))
            .map_err(|error| from_sqlite(py, &error))
    })
}
