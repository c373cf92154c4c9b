//! Limits and switches of a connection, and the door for extensions.

use oxlite_sqlite::codes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{Connection, audit};
use crate::error::from_sqlite;
use crate::exceptions::{OperationalError, ProgrammingError};
use crate::extension;
use crate::options::Truth;

impl Connection {
    fn config(&self, py: Python<'_>, switch: i32, enabled: Option<bool>) -> PyResult<bool> {
        self.on_locked(py, |_, locked| {
            locked.config(switch, enabled).map_err(|error| {
                if error.code() == codes::SQLITE_MISUSE {
                    return PyValueError::new_err(format!("unknown config 'op': {switch}"));
                }
                from_sqlite(py, &error)
            })
        })
    }
}

#[pymethods]
impl Connection {
    /// The value of a run-time limit: `category` is one of the `SQLITE_LIMIT_` constants.
    #[pyo3(signature = (category, /))]
    fn getlimit(&self, py: Python<'_>, category: i32) -> PyResult<i32> {
        self.setlimit(py, category, -1)
    }

    /// Sets a run-time limit, at most to the bound it was compiled with, and returns the one
    /// before; a negative `limit` changes nothing.
    #[pyo3(signature = (category, limit, /))]
    fn setlimit(&self, py: Python<'_>, category: i32, limit: i32) -> PyResult<i32> {
        self.on_locked(py, |core, locked| {
            if limit >= 0 {
                core.note_change();
            }
            locked
                .set_limit(category, limit)
                .ok_or_else(|| ProgrammingError::new_err("'category' is out of bounds"))
        })
    }

    /// Whether one of SQLite's switches is on: `op` is one of the `SQLITE_DBCONFIG_` constants.
    #[pyo3(signature = (op, /))]
    fn getconfig(&self, py: Python<'_>, op: i32) -> PyResult<bool> {
        self.config(py, op, None)
    }

    /// Turns one of SQLite's switches on or off.
    #[pyo3(signature = (op, enable = Truth(true), /))]
    fn setconfig(&self, py: Python<'_>, op: i32, enable: Truth) -> PyResult<()> {
        self.core()?.note_change();
        if self.config(py, op, Some(enable.0))? == enable.0 {
            return Ok(());
        }
        Err(OperationalError::new_err("Unable to set config"))
    }

    /// Lets this connection load extensions, by `load_extension` and by the SQL function of that
    /// name, or (as it is at first) not.
    ///
    /// An extension is native code with all the rights of this process. To load one when the
    /// connection is opened, and no other after it, `oxlite.connect(extensions=[…])` is safer.
    #[pyo3(signature = (enable, /))]
    fn enable_load_extension(slf: &Bound<'_, Self>, enable: Truth) -> PyResult<()> {
        let py = slf.py();
        slf.get().check_open(py)?;
        audit(py, ("sqlite3.enable_load_extension", slf, enable.0))?;
        slf.get().on_locked(py, |core, locked| {
            core.note_change();
            locked
                .enable_load_extension(enable.0)
                .map_err(|_| OperationalError::new_err("Error enabling load extension"))
        })
    }

    /// Loads an extension from a shared library, whose entry point SQLite guesses from the name
    /// unless `entrypoint` says it. `enable_load_extension(True)` comes first.
    #[pyo3(signature = (name, /, *, entrypoint = None))]
    fn load_extension(slf: &Bound<'_, Self>, name: &str, entrypoint: Option<&str>) -> PyResult<()> {
        let py = slf.py();
        slf.get().check_open(py)?;
        audit(py, ("sqlite3.load_extension", slf, name))?;
        let extension = extension::Extension::at(name, entrypoint)?;
        slf.get().on_locked(py, |core, locked| {
            core.note_change();
            extension
                .load(py, locked)
                .map_err(|error| from_sqlite(py, &error))
        })
    }
}
