//! The arguments of `connect`, from Python's types to the core's options.

use std::ffi::OsString;

use oxlite_core::{BusyPolicy, OpenOptions, PragmaValue, Profile};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString};

use crate::error::from_core;

/// What `Connection.__init__` takes beyond the standard library's arguments.
pub(crate) struct Extras<'a, 'py> {
    pub(crate) profile: &'a str,
    pub(crate) pragmas: Option<&'a Bound<'py, PyDict>>,
    pub(crate) journal: &'a str,
    pub(crate) busy: Option<&'a str>,
    pub(crate) allow_no_locking: bool,
}

/// A truth value as Python sees it: the standard library takes 1 for `True`.
pub(crate) struct Truth(pub(crate) bool);

impl<'py> FromPyObject<'_, 'py> for Truth {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.is_truthy().map(Self)
    }
}

/// Checks every argument; no file is touched.
pub(crate) fn build(
    database: &Bound<'_, PyAny>,
    timeout_seconds: f64,
    cached_statements: i64,
    uri: bool,
    extras: &Extras<'_, '_>,
) -> PyResult<OpenOptions> {
    let py = database.py();
    let checked = || -> oxlite_core::Result<_> {
        let busy = extras.busy.map(BusyPolicy::named).transpose()?;
        Ok((Profile::named(extras.profile)?, busy))
    };
    let (profile, busy) = checked().map_err(|error| from_core(py, error))?;
    let name = database_name(database)?;
    let pragmas = match extras.pragmas {
        Some(pragmas) => pragma_values(pragmas)?,
        None => Vec::new(),
    };
    let options = || -> oxlite_core::Result<OpenOptions> {
        let mut options = OpenOptions::new(name, profile)?
            .with_uri(uri, extras.allow_no_locking)?
            .with_pragmas(&pragmas)?
            .with_journal(extras.journal)?
            .with_timeout(timeout_seconds)?
            .with_cached_statements(usize::try_from(cached_statements).unwrap_or(0));
        if let Some(busy) = busy {
            options = options.with_busy(busy);
        }
        Ok(options)
    };
    options().map_err(|error| from_core(py, error))
}

/// The bytes of a path given as `str`, `bytes` or `os.PathLike`.
fn database_name(database: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let path = database
        .py()
        .import("os")?
        .call_method1("fspath", (database,))?;
    if let Ok(bytes) = path.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    // By the file system's encoding, so that undecodable names (PEP 383) come through.
    Ok(path.extract::<OsString>()?.into_encoded_bytes())
}

fn pragma_values(pragmas: &Bound<'_, PyDict>) -> PyResult<Vec<(String, PragmaValue)>> {
    pragmas
        .iter()
        .map(|(name, value)| {
            let name: String = name
                .extract()
                .map_err(|_| PyTypeError::new_err("the names of pragmas are strings"))?;
            let value = if let Ok(boolean) = value.cast::<PyBool>() {
                PragmaValue::Boolean(boolean.is_true())
            } else if value.is_instance_of::<PyInt>() {
                let number = value.extract().map_err(|_| {
                    PyValueError::new_err(format!(
                        "PRAGMA {name} takes a 64-bit integer, not {value}"
                    ))
                })?;
                PragmaValue::Integer(number)
            } else if let Ok(text) = value.cast::<PyString>() {
                PragmaValue::Text(text.to_str()?.to_owned())
            } else {
                return Err(PyTypeError::new_err(format!(
                    "PRAGMA {name} takes a bool, an int or a str, not {}",
                    value.get_type().qualname()?
                )));
            };
            Ok((name, value))
        })
        .collect()
}
