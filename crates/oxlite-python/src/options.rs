//! The arguments of `connect`, from Python's types to the core's options.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxlite_core::{
    BusyHandler, BusyPolicy, DROP_IN_PROFILE, Door, Kind, OpenOptions, OptionValue, PragmaValue,
    Profile, SlowStatements, options, slow_statement, statement_timeout, unexpected,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyMapping, PyString, PyTuple};

use crate::aio::is_given_up;
use crate::error::from_core;
use crate::gil::is_signalled;
use crate::notices;

/// What `Connection.__init__` takes beyond the standard library's arguments; nothing where the default
/// of [`OpenOptions`] is meant.
#[derive(Default)]
pub(crate) struct Extras<'py> {
    profile: Option<String>,
    pragmas: Option<Bound<'py, PyAny>>,
    journal: Option<String>,
    durable_commit: Option<String>,
    busy: Option<String>,
    pub(crate) busy_handler: Option<Py<PyAny>>,
    pub(crate) statement_timeout: Option<Duration>,
    slow_statement: Option<Duration>,
    pub(crate) extensions: Option<Bound<'py, PyAny>>,
    allow_no_locking: bool,
}

impl<'py> Extras<'py> {
    /// Reads what was given by name. Names are looked up among the options, types are checked here,
    /// and values where they are used.
    pub(crate) fn named(py: Python<'py>, keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        let mut extras = Self::default();
        for (name, value) in keywords.into_iter().flatten() {
            let name = name.cast::<PyString>()?.to_str()?;
            match name {
                "profile" => extras.profile = Some(argument(name, &value)?),
                "pragmas" => extras.pragmas = argument(name, &value)?,
                "journal" => extras.journal = Some(argument(name, &value)?),
                "durable_commit" => extras.durable_commit = Some(argument(name, &value)?),
                "busy" => extras.busy = argument(name, &value)?,
                "busy_handler" => extras.busy_handler = handler(&value)?,
                "statement_timeout" => {
                    let timeout = statement_timeout(argument(name, &value)?);
                    extras.statement_timeout = timeout.map_err(|error| from_core(py, error))?;
                }
                "slow_statement" => {
                    let over = slow_statement(argument(name, &value)?);
                    extras.slow_statement = over.map_err(|error| from_core(py, error))?;
                }
                "extensions" => extras.extensions = argument(name, &value)?,
                "allow_no_locking" => extras.allow_no_locking = argument(name, &value)?,
                _ => return Err(from_core(py, unexpected(Door::DropIn, name))),
            }
        }
        if extras.busy.is_some() && extras.busy_handler.is_some() {
            return Err(PyValueError::new_err(
                "busy and busy_handler exclude one another: a handler is a policy of its own",
            ));
        }
        Ok(extras)
    }
}

/// The value of an argument that was given by name.
fn argument<'py, T>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: FromPyObjectOwned<'py>,
{
    value.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        PyTypeError::new_err(format!("argument '{name}': {}", error.value(value.py())))
    })
}

fn handler(value: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    if value.is_none() || value.is_callable() {
        return Ok((!value.is_none()).then(|| value.clone().unbind()));
    }
    Err(PyTypeError::new_err(
        "busy_handler must be callable or None",
    ))
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
    extras: Extras<'_>,
    busy_handler: Option<BusyHandler>,
) -> PyResult<OpenOptions> {
    let py = database.py();
    let name = extras.profile.as_deref().unwrap_or(DROP_IN_PROFILE);
    let checked = || -> oxlite_core::Result<_> {
        let busy = extras.busy.as_deref().map(BusyPolicy::named).transpose()?;
        Ok((Profile::named(name)?, busy))
    };
    let (profile, busy) = checked().map_err(|error| from_core(py, error))?;
    let name = database_name(database)?;
    let pragmas = match extras.pragmas {
        Some(pragmas) => pragma_values(&pragmas)?,
        None => Vec::new(),
    };
    let slow_statements = extras.slow_statement.map(|over| SlowStatements {
        over,
        tell: notices::tell_of_slow_statement,
    });
    let options = move || -> oxlite_core::Result<OpenOptions> {
        let mut options = OpenOptions::new(name, profile)?
            .with_uri(uri, extras.allow_no_locking)?
            .with_pragmas(&pragmas)?
            .with_timeout(timeout_seconds)?
            .with_cached_statements(cached_statements)
            .with_shared_cache(SHARES_CACHE.load(Ordering::Relaxed))
            .with_slow_statements(slow_statements)
            .with_cancellation(|| is_signalled() || is_given_up());
        if let Some(journal) = &extras.journal {
            options = options.with_journal(journal)?;
        }
        if let Some(durable_commit) = &extras.durable_commit {
            options = options.with_durable_commit(durable_commit)?;
        }
        if let Some(busy) = busy.or(busy_handler.map(BusyPolicy::Handler)) {
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

fn pragma_values(pragmas: &Bound<'_, PyAny>) -> PyResult<Vec<(String, PragmaValue)>> {
    let pragmas = match pragmas.cast::<PyDict>() {
        Ok(pragmas) => pragmas.clone(),
        Err(_) => {
            let copy = PyDict::new(pragmas.py());
            copy.update(pragmas.cast::<PyMapping>()?)?;
            copy
        }
    };
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

/// The declared options of a door, for Python.
pub(crate) fn declared<'py>(py: Python<'py>, door: &str) -> PyResult<Bound<'py, PyTuple>> {
    const DOORS: [(&str, Door); 3] = [
        ("connect", Door::Connect),
        ("sqlite3.connect", Door::DropIn),
        ("Database", Door::Database),
    ];
    let Some((_, door)) = DOORS.iter().find(|(name, _)| *name == door) else {
        return Err(PyValueError::new_err(format!(
            "there are the options of {}, not of {door:?}",
            DOORS.map(|(name, _)| name).join(", ")
        )));
    };
    let all = options(*door).map(|option| {
        let default = match option.default(*door).unwrap_or(OptionValue::None) {
            OptionValue::None => py.None().into_bound(py),
            OptionValue::Boolean(value) => PyBool::new(py, value).to_owned().into_any(),
            OptionValue::Integer(value) => value.into_pyobject(py)?.into_any(),
            OptionValue::Number(value) => value.into_pyobject(py)?.into_any(),
            OptionValue::Text(value) => value.into_pyobject(py)?.into_any(),
        };
        let choices = option
            .choices()
            .map(|all| PyTuple::new(py, all))
            .transpose()?;
        (
            option.name,
            kind(option.kind),
            option.takes(),
            default,
            option.is_optional,
            choices,
            option.at_least,
            option.more_than,
            option.description,
        )
            .into_pyobject(py)
    });
    PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Boolean => "boolean",
        Kind::Integer(_) => "integer",
        Kind::Number(_) => "number",
        Kind::Choice(_) => "choice",
        Kind::Autocommit => "autocommit",
        Kind::Mapping => "mapping",
        Kind::List => "list",
        Kind::Function => "function",
        Kind::Class => "class",
    }
}
