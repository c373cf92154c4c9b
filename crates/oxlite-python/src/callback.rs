//! Callbacks of a connection written in Python: authorizer, progress handler, trace; and what
//! becomes of an exception that no caller can receive.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use oxlite_sqlite::{Authorization, Authorizer, ProgressHandler, Traced, Tracer, codes};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::error::DataError;
use crate::gil::{PROGRESS_OPERATIONS, attached, on_progress};

/// Set by `enable_callback_tracebacks`.
static SHOWS_TRACEBACKS: AtomicBool = AtomicBool::new(false);

/// Show the exceptions of callbacks by `sys.unraisablehook`, or (the default) drop them.
#[pyfunction]
#[pyo3(signature = (enable, /))]
pub(crate) fn enable_callback_tracebacks(enable: &Bound<'_, PyAny>) -> PyResult<()> {
    SHOWS_TRACEBACKS.store(enable.is_truthy()?, Ordering::Relaxed);
    Ok(())
}

/// Shows an exception of `callable`, if that is asked for.
pub(crate) fn report(py: Python<'_>, error: PyErr, callable: &Bound<'_, PyAny>) {
    if SHOWS_TRACEBACKS.load(Ordering::Relaxed) {
        error.write_unraisable(py, Some(callable));
    }
}

/// The closure behind `set_authorizer`. Whatever is not clearly allowed is denied.
pub(crate) fn authorizer(callable: Py<PyAny>) -> Box<Authorizer> {
    Box::new(move |authorization: &Authorization<'_>| {
        attached(|py| {
            let callable = callable.bind(py);
            let answer = || -> PyResult<i32> {
                let [first, second] = authorization.arguments;
                let answer = callable.call1((
                    authorization.action,
                    text(first),
                    text(second),
                    text(authorization.database),
                    text(authorization.source),
                ))?;
                match answer.cast::<PyInt>() {
                    Ok(answer) => answer.extract(),
                    Err(_) => Ok(codes::SQLITE_DENY),
                }
            };
            answer().unwrap_or_else(|error| {
                report(py, error, callable);
                codes::SQLITE_DENY
            })
        })
    })
}

/// SQLite's one progress handler, which lets the GIL go, with the user's behind it; and how often
/// to call it.
pub(crate) fn progress_handler(
    callable: Option<Py<PyAny>>,
    operations: i32,
) -> (i32, Box<ProgressHandler>) {
    let Some(callable) = callable else {
        return (PROGRESS_OPERATIONS, Box::new(on_progress));
    };
    let stride = operations.clamp(1, PROGRESS_OPERATIONS);
    let passed = AtomicI32::new(0);
    let handler = Box::new(move || {
        on_progress();
        // Only the thread that holds the connection's lock gets here.
        let passed_now = passed.load(Ordering::Relaxed).saturating_add(stride);
        if passed_now < operations {
            passed.store(passed_now, Ordering::Relaxed);
            return false;
        }
        passed.store(0, Ordering::Relaxed);
        attached(|py| {
            let callable = callable.bind(py);
            let stop = callable.call0().and_then(|answer| answer.is_truthy());
            // An exception stops the statement, as in the standard library.
            stop.unwrap_or_else(|error| {
                report(py, error, callable);
                true
            })
        })
    });
    (stride, handler)
}

/// The closure behind `set_trace_callback`.
pub(crate) fn tracer(callable: Py<PyAny>) -> Box<Tracer> {
    Box::new(move |traced: Traced<'_>| {
        attached(|py| {
            let callable = callable.bind(py);
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

fn text(text: Option<&CStr>) -> Option<String> {
    text.map(|text| text.to_string_lossy().into_owned())
}
