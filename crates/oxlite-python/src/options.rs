//! The arguments of `connect`, from Python's types to the core's options.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxlite_core::{BusyHandler, BusyPolicy, OpenOptions, PragmaValue, Profile};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString};

use crate::aio::is_given_up;
use crate::error::from_core;
use crate::gil::is_signalled;

/// What `Connection.__init__` takes beyond the standard library's arguments.
pub(crate) struct Extras<'a, 'py> {
    pub(crate) profile: &'a str,
    pub(crate) pragmas: Option<&'a Bound<'py, PyDict>>,
    pub(crate) journal: &'a str,
    pub(crate) durable_commit: &'a str,
    pub(crate) busy: Option<&'a str>,
    pub(crate) busy_handler: Option<BusyHandler>,
    pub(crate) allow_no_locking: bool,
}

/// Set by `enable_shared_cache`.
static SHARES_CACHE: AtomicBool = AtomicBool::new(false);

/// Let connections opened from now on share one page cache for each database, or (the default) not.
///
/// SQLite discourages it (<https://sqlite.org/sharedcache.html>), and Python has removed it in 3.12;
/// where it must be, open one database with `file:…?cache=shared` and `uri=True`.
#[pyfunction]
#[pyo3(signature = (do_enable))]
pub(crate) fn enable_shared_cache(do_enable: bool) {
    SHARES_CACHE.store(do_enable, Ordering::Relaxed);
}

/// Where converters are looked for: the `detect_types` argument.
#[derive(Clone, Copy, Default)]
pub(crate) struct DetectTypes {
    /// By the first word of the type a column is declared with.
    pub(crate) by_declaration: bool,
    /// By what stands in brackets in a column's name.
    pub(crate) by_name: bool,
}

impl DetectTypes {
    pub(crate) const PARSE_DECLTYPES: i32 = 1;
    pub(crate) const PARSE_COLNAMES: i32 = 2;

    pub(crate) fn from_flags(flags: i32) -> Self {
        Self {
            by_declaration: flags & Self::PARSE_DECLTYPES != 0,
            by_name: flags & Self::PARSE_COLNAMES != 0,
        }
    }

    /// Whether they are looked for at all.
    pub(crate) fn is_on(self) -> bool {
        self.by_declaration || self.by_name
    }
}

/// The `statement_timeout` argument.
pub(crate) fn statement_timeout(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    seconds
        .map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "statement_timeout must be a positive number of seconds or None, not {seconds}"
                    ))
                })
        })
        .transpose()
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
    extras: Extras<'_, '_>,
) -> PyResult<OpenOptions> {
    let py = database.py();
    if extras.busy.is_some() && extras.busy_handler.is_some() {
        return Err(PyValueError::new_err(
            "busy and busy_handler exclude one another: a handler is a policy of its own",
        ));
    }
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
    let options = move || -> oxlite_core::Result<OpenOptions> {
        let mut options = OpenOptions::new(name, profile)?
            .with_uri(uri, extras.allow_no_locking)?
            .with_pragmas(&pragmas)?
            .with_journal(extras.journal)?
            .with_durable_commit(extras.durable_commit)?
            .with_timeout(timeout_seconds)?
            .with_cached_statements(usize::try_from(cached_statements).unwrap_or(0))
            .with_shared_cache(SHARES_CACHE.load(Ordering::Relaxed))
            .with_cancellation(|| is_signalled() || is_given_up());
        if let Some(busy) = busy.or(extras.busy_handler.map(BusyPolicy::Handler)) {
            options = options.with_busy(busy);
        }
        Ok(options)
    };
    options().map_err(|error| from_core(py, error))
}

/// `os.fspath`, which is there also when modules are not any more.
pub(crate) fn file_system_path<'py>(path: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the GIL is held; NULL (with an exception set) becomes an error.
    unsafe { Bound::from_owned_ptr_or_err(path.py(), ffi::PyOS_FSPath(path.as_ptr())) }
}

/// The bytes of a path given as `str`, `bytes` or `os.PathLike`.
fn database_name(database: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let path = file_system_path(database)?;
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
