//! Calls as CPython's own classes take them, and what is said of one that does not fit.
//!
//! Python 3.13 and 3.14 deprecate signatures in part: some parameters become positional- or keyword-only
//! in 3.15. There the same calls warn with the same words, and since 3.15 they are refused.
//!
//! Whether an argument came by position or by name is not seen behind a full signature. So such a
//! method takes everything, warns or refuses, and hands on to a function that has the full signature.

use std::ffi::CString;

use pyo3::exceptions::{PyAttributeError, PyDeprecationWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::type_names::type_name;
use crate::version;

/// What `connect` takes by position after the database.
const CONNECT: [&str; 7] = [
    "timeout",
    "detect_types",
    "isolation_level",
    "check_same_thread",
    "factory",
    "cached_statements",
    "uri",
];

/// Calls a `#[pyfunction]` with a method's object and all its arguments.
macro_rules! hand_on {
    ($function:ident, $object:expr, $arguments:expr, $keywords:expr) => {{
        static FUNCTION: $crate::gil_once::GilOnce<::pyo3::Py<::pyo3::PyAny>> =
            $crate::gil_once::GilOnce::new();
        let object = $object;
        let py = object.py();
        let function = FUNCTION.get_or_try_make(py, || {
            ::pyo3::wrap_pyfunction!($function, py).map(|function| function.into_any().unbind())
        })?;
        let arguments = $crate::signature::with_object(object, $arguments)?;
        function.bind(py).call(arguments, $keywords)
    }};
}

pub(crate) use hand_on;

/// The positional arguments with a method's object in front.
pub(crate) fn with_object<'py, T>(
    object: &Bound<'py, T>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut all = vec![object.clone().into_any()];
    all.extend(arguments.iter());
    PyTuple::new(object.py(), all)
}

/// Refuses to delete a factory, where this version of Python does.
pub(crate) fn refuse_to_delete(factory: &str) -> PyResult<()> {
    match version::KEEPS_FACTORIES {
        true => Err(PyAttributeError::new_err(format!(
            "cannot delete {factory} attribute"
        ))),
        false => Ok(()),
    }
}

/// Warns if one of a method's `parameters`, its first, came by name; refuses it where they are
/// positional-only.
pub(crate) fn check_names(
    method: &str,
    parameters: &[&str],
    arguments: &Bound<'_, PyTuple>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let py = arguments.py();
    let (count, supplied) = (parameters.len(), arguments.len());
    if version::HAS_STRICT_SIGNATURES && supplied < count {
        // `n` of this one may come in both ways.
        let how_many = match method {
            "set_progress_handler" => "at least",
            _ => "exactly",
        };
        let plural = if count > 1 { "s" } else { "" };
        return Err(PyTypeError::new_err(format!(
            "{method}() takes {how_many} {count} positional argument{plural} ({supplied} given)"
        )));
    }
    let Some(keywords) = keywords else {
        return Ok(());
    };
    let mut came_by_name = false;
    for parameter in parameters {
        came_by_name |= keywords.contains(parameter)?;
    }
    if !came_by_name {
        return Ok(());
    }
    let plural = if parameters.len() > 1 { "s" } else { "" };
    let names = enumerated(parameters);
    warn(
        py,
        format!(
            "Passing keyword argument{plural} {names} to _sqlite3.Connection.{method}() is \
             deprecated. Parameter{plural} {names} will become positional-only in Python 3.15."
        ),
    )
}

/// Warns if more than the database came by position to `connect`, or refuses it.
pub(crate) fn check_positions_of_connect(py: Python<'_>, positions: usize) -> PyResult<()> {
    if positions > 1 && version::HAS_STRICT_SIGNATURES {
        return Err(PyTypeError::new_err(format!(
            "connect() takes at most 1 positional arguments ({positions} given)"
        )));
    }
    warn_of_positions(py, "sqlite3.connect", positions)
}

/// Warns if more than the database came by position.
pub(crate) fn warn_of_positions(py: Python<'_>, callable: &str, positions: usize) -> PyResult<()> {
    if positions <= 1 {
        return Ok(());
    }
    let names = enumerated(&CONNECT);
    warn(
        py,
        format!(
            "Passing more than 1 positional argument to {callable}() is deprecated. Parameters \
             {names} will become keyword-only parameters in Python 3.15."
        ),
    )
}

/// The error for an `argument` of the wrong type, in CPython's words.
pub(crate) fn wrong_type(argument: &str, wanted: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let given = match given.is_none() {
        true => "None".to_owned(),
        false => type_name(given),
    };
    PyTypeError::new_err(format!("{argument} must be {wanted}, not {given}"))
}

/// Refuses a call without its first argument, or with more by position than there are, in CPython's words.
pub(crate) fn check_database(
    callable: &str,
    arguments: &Bound<'_, PyTuple>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    const DATABASE: &str = "database";
    let at_most = CONNECT.len() + 1;
    let supplied = arguments.len();
    if supplied > 1 && version::HAS_STRICT_SIGNATURES {
        return Err(PyTypeError::new_err(format!(
            "{callable}() takes exactly 1 positional argument ({supplied} given)"
        )));
    }
    if supplied > at_most {
        return Err(PyTypeError::new_err(format!(
            "{callable}() takes at most {at_most} positional arguments ({supplied} given)"
        )));
    }
    let by_name = keywords.map_or(Ok(false), |keywords| keywords.contains(DATABASE))?;
    if supplied == 0 && !by_name {
        return Err(PyTypeError::new_err(format!(
            "{callable}() missing required argument '{DATABASE}' (pos 1)"
        )));
    }
    Ok(())
}

/// Names in quotes, the last after an "and".
fn enumerated(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        quoted => quoted.concat(),
    }
}

fn warn(py: Python<'_>, text: String) -> PyResult<()> {
    if !version::DEPRECATES_PARTS_OF_SIGNATURES {
        return Ok(());
    }
    let category = PyType::new::<PyDeprecationWarning>(py);
    PyErr::warn(py, &category, &CString::new(text)?, 1)
}
