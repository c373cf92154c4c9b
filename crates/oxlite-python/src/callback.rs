//! Callbacks of a connection written in Python (authorizer, progress and busy handlers, trace,
//! hooks), and what becomes of an exception that no caller can receive.
//!
//! A callable is held by its connection object, where the cycle collector sees it; the closure that
//! SQLite calls shares it. So whoever replaces or removes one drops the old one itself, with no lock
//! held: its finaliser may be code of the user's.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use oxlite_core::Mutex;
use oxlite_core::{BusyHandler, Deadline};
use oxlite_sqlite::{
    Authorization, Authorizer, CommitHook, Preupdate, PreupdateHook, ProgressHandler, RollbackHook,
    RowChange, Traced, Tracer, UpdateHook, ValueRef, WalHook, codes,
};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyException;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};

use crate::changeset::{decoded, object_of_stored};
use crate::error::from_sqlite;
use crate::exceptions::DataError;
use crate::gil::{PROGRESS_OPERATIONS, attached, keep_for_caller, on_progress};

/// Set by `enable_callback_tracebacks`.
static SHOWS_TRACEBACKS: AtomicBool = AtomicBool::new(false);

/// Show the exceptions of callbacks by `sys.unraisablehook`, or (the default) drop them.
#[pyfunction]
#[pyo3(signature = (enable, /))]
pub(crate) fn enable_callback_tracebacks(enable: &Bound<'_, PyAny>) -> PyResult<()> {
    SHOWS_TRACEBACKS.store(enable.is_truthy()?, Ordering::Relaxed);
    Ok(())
}

/// Shows an exception of `callable`, if that is asked for. What is no `Exception` (`KeyboardInterrupt`,
/// `SystemExit`) is for whoever runs the statement instead.
pub(crate) fn report(py: Python<'_>, error: PyErr, callable: &Bound<'_, PyAny>) {
    if !error.is_instance_of::<PyException>(py) {
        keep_for_caller(error);
    } else if SHOWS_TRACEBACKS.load(Ordering::Relaxed) {
        write_unraisable(py, error, callable);
    }
}

#[cfg(not(Py_3_14))]
fn write_unraisable(py: Python<'_>, error: PyErr, callable: &Bound<'_, PyAny>) {
    error.write_unraisable(py, Some(callable));
}

/// The callable is named in the message since Python 3.14, and not handed to the hook.
#[cfg(Py_3_14)]
fn write_unraisable(py: Python<'_>, error: PyErr, callable: &Bound<'_, PyAny>) {
    // SAFETY: the declaration is CPython's.
    unsafe extern "C" {
        /// Python's own, since 3.13, with the arguments that its format asks for.
        fn PyErr_FormatUnraisable(format: *const std::ffi::c_char, ...);
    }
    error.restore(py);
    // SAFETY: the GIL is held, an exception is set; `%R` takes one object, which lives during the call.
    unsafe {
        PyErr_FormatUnraisable(
            c"Exception ignored on sqlite3 callback %R".as_ptr(),
            callable.as_ptr(),
        );
    }
}

/// What a callable is for.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Authorizer,
    Busy,
    Commit,
    Preupdate,
    Progress,
    Rollback,
    Trace,
    Update,
    Wal,
}

/// How many kinds there are.
const KINDS: usize = Kind::Wal as usize + 1;

/// A callable of the user's, shared by the connection object and the closure that SQLite calls.
#[derive(Clone)]
pub(crate) struct Callable(Arc<Mutex<Option<Py<PyAny>>>>);

impl Callable {
    pub(crate) fn new(callable: Py<PyAny>) -> Self {
        Self(Arc::new(Mutex::new(Some(callable))))
    }

    /// Runs `work` with the callable and the GIL; `otherwise` if the cycle collector has taken it.
    fn with<T>(&self, otherwise: T, work: impl FnOnce(&Bound<'_, PyAny>) -> T) -> T {
        attached(|py| {
            let callable = self
                .0
                .lock()
                .as_ref()
                .map(|callable| callable.clone_ref(py));
            match callable {
                Some(callable) => work(callable.bind(py)),
                None => otherwise,
            }
        })
    }
}

/// The callables of one connection, by kind.
#[derive(Default)]
pub(crate) struct Callables([Option<Callable>; KINDS]);

impl Callables {
    /// Puts one in place; the one before is returned, to be dropped where code of the user's may run.
    #[must_use]
    pub(crate) fn replace(&mut self, kind: Kind, callable: Option<Callable>) -> Option<Callable> {
        std::mem::replace(&mut self.0[kind as usize], callable)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for callable in self.0.iter().flatten() {
            // The lock is free whenever the collector runs: nobody calls Python with it held.
            if let Some(callable) = callable.0.try_lock() {
                visit.call(&*callable)?;
            }
        }
        Ok(())
    }

    /// Takes them all, to break a cycle: the closures find nothing to call.
    pub(crate) fn take_all(&mut self) -> Vec<Py<PyAny>> {
        let callables = self.0.iter().flatten();
        callables
            .filter_map(|callable| callable.0.try_lock()?.take())
            .collect()
    }
}

/// The closure behind `set_authorizer`. Whatever is not clearly allowed is denied.
pub(crate) fn authorizer(callable: Callable) -> Box<Authorizer> {
    Box::new(move |authorization: &Authorization<'_>| {
        callable.with(codes::SQLITE_DENY, |callable| {
            let py = callable.py();
            let answer = || -> PyResult<i32> {
                let [first, second] = authorization.arguments;
                let answer = callable.call1((
                    authorization.action,
                    text(py, first),
                    text(py, second),
                    text(py, authorization.database),
                    text(py, authorization.source),
                ))?;
                match answer.cast::<PyInt>() {
                    Ok(answer) => answer.extract(),
                    Err(_) => Ok(codes::SQLITE_DENY),
                }
            };
            answer().unwrap_or_else(|error| {
                report(callable.py(), error, callable);
                codes::SQLITE_DENY
            })
        })
    })
}

/// The handler behind `busy_handler`. An exception ends the wait.
pub(crate) fn busy_handler(callable: Callable) -> BusyHandler {
    BusyHandler::new(move |calls| {
        callable.with(false, |callable| {
            let again = callable
                .call1((calls,))
                .and_then(|answer| answer.is_truthy());
            again.unwrap_or_else(|error| {
                report(callable.py(), error, callable);
                false
            })
        })
    })
}

/// SQLite's one progress handler, which lets the GIL go and ends statements in time, with the user's
/// behind it; and how often to call it.
pub(crate) fn progress_handler(
    deadline: &Arc<Deadline>,
    callable: Option<Callable>,
    operations: i32,
) -> (i32, Box<ProgressHandler>) {
    let deadline = Arc::clone(deadline);
    let Some(callable) = callable else {
        let handler = Box::new(move || {
            on_progress();
            deadline.is_over()
        });
        return (PROGRESS_OPERATIONS, handler);
    };
    let stride = operations.clamp(1, PROGRESS_OPERATIONS);
    let passed = AtomicI32::new(0);
    let handler = Box::new(move || {
        on_progress();
        if deadline.is_over() {
            return true;
        }
        // Only the thread that holds the connection's lock gets here.
        let passed_now = passed.load(Ordering::Relaxed).saturating_add(stride);
        if passed_now < operations {
            passed.store(passed_now, Ordering::Relaxed);
            return false;
        }
        passed.store(0, Ordering::Relaxed);
        callable.with(false, |callable| {
            let stop = callable.call0().and_then(|answer| answer.is_truthy());
            // An exception stops the statement, as in the standard library.
            stop.unwrap_or_else(|error| {
                report(callable.py(), error, callable);
                true
            })
        })
    });
    (stride, handler)
}

/// The closure behind `set_trace_callback`.
pub(crate) fn tracer(callable: Callable) -> Box<Tracer> {
    Box::new(move |traced: Traced<'_>| {
        callable.with((), |callable| {
            let py = callable.py();
            if traced.expanded.is_none() {
                let error =
                    DataError::new_err("Expanded SQL string exceeds the maximum string length");
                report(py, error, callable);
            }
            let sql = traced.expanded.unwrap_or(traced.sql);
            let outcome =
                PyString::from_bytes(py, sql.to_bytes()).and_then(|sql| callable.call1((sql,)));
            if let Err(error) = outcome {
                report(py, error, callable);
            }
        });
    })
}

/// The closure behind `set_update_hook`.
pub(crate) fn update_hook(callable: Callable) -> Box<UpdateHook> {
    Box::new(move |change: &RowChange<'_>| {
        callable.with((), |callable| {
            let py = callable.py();
            let outcome = callable.call1((
                change.operation,
                text(py, Some(change.database)),
                text(py, Some(change.table)),
                change.rowid,
            ));
            if let Err(error) = outcome {
                report(callable.py(), error, callable);
            }
        });
    })
}

/// The closure behind `set_preupdate_hook`.
pub(crate) fn preupdate_hook(callable: Callable) -> Box<PreupdateHook> {
    Box::new(move |change: &Preupdate<'_>| {
        callable.with((), |callable| {
            if let Err(error) = call_preupdate_hook(callable, change) {
                report(callable.py(), error, callable);
            }
        });
    })
}

fn call_preupdate_hook(callable: &Bound<'_, PyAny>, change: &Preupdate<'_>) -> PyResult<()> {
    let py = callable.py();
    // SQLite calls it a delete, as it does not know what a blob is about to hold.
    let is_blob_write = change.blob_column().is_some();
    let has_old = change.operation != codes::SQLITE_INSERT;
    let has_new = change.operation != codes::SQLITE_DELETE;
    let operation = match is_blob_write {
        true => codes::SQLITE_UPDATE,
        false => change.operation,
    };
    let columns = change.column_count();
    let old = |column: usize| change.old_value(column);
    let new = |column: usize| change.new_value(column);
    let arguments = (
        operation,
        decoded(py, change.database.to_bytes())?,
        decoded(py, change.table.to_bytes())?,
        has_old.then_some(change.old_rowid),
        (has_new || is_blob_write).then_some(change.new_rowid),
        has_old.then(|| row(py, columns, old)).transpose()?,
        has_new.then(|| row(py, columns, new)).transpose()?,
    );
    callable.call1(arguments).map(drop)
}

/// The values of a row that a hook is told of.
fn row<'py, 'v>(
    py: Python<'py>,
    columns: usize,
    value: impl Fn(usize) -> oxlite_sqlite::Result<ValueRef<'v>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let object = |column| {
        let value = value(column).map_err(|error| from_sqlite(py, &error))?;
        object_of_stored(py, value)
    };
    PyTuple::new(py, (0..columns).map(object).collect::<PyResult<Vec<_>>>()?)
}

/// The closure behind `set_commit_hook`. An exception turns the commit into a rollback.
pub(crate) fn commit_hook(callable: Callable) -> Box<CommitHook> {
    Box::new(move || {
        callable.with(false, |callable| {
            let refused = callable.call0().and_then(|answer| answer.is_truthy());
            refused.unwrap_or_else(|error| {
                report(callable.py(), error, callable);
                true
            })
        })
    })
}

/// The closure behind `set_rollback_hook`.
pub(crate) fn rollback_hook(callable: Callable) -> Box<RollbackHook> {
    Box::new(move || {
        callable.with((), |callable| {
            if let Err(error) = callable.call0() {
                report(callable.py(), error, callable);
            }
        });
    })
}

/// The closure behind `set_wal_hook`. The transaction is committed already, so nothing the callable
/// does makes the statement fail.
pub(crate) fn wal_hook(callable: Callable) -> Box<WalHook> {
    Box::new(move |schema, pages| {
        callable.with((), |callable| {
            if let Err(error) = callable.call1((schema, pages)) {
                report(callable.py(), error, callable);
            }
        });
        codes::SQLITE_OK
    })
}

/// A name of SQLite's as `str`.
fn text<'py>(py: Python<'py>, text: Option<&CStr>) -> Option<Bound<'py, PyString>> {
    text.map(|text| PyString::new(py, &text.to_string_lossy()))
}
