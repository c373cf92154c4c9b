//! Loadable extensions: found by name or path, loaded with the door open for as long as that takes.

use std::ffi::CString;

use oxlite_core::Connection as Core;
use oxlite_sqlite::{Locked, codes};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::from_sqlite;
use crate::gil::detached;
use crate::lock::lock;
use crate::options::file_system_path;

/// A shared library to load into a connection.
pub(crate) struct Extension {
    /// As it was asked for.
    name: String,
    path: CString,
    entry_point: Option<CString>,
}

impl Extension {
    /// The one at a path, with or without the suffix that the platform gives to libraries.
    pub(crate) fn at(path: &str, entry_point: Option<&str>) -> PyResult<Self> {
        let c_text = |text: &str| {
            CString::new(text).map_err(|_| PyValueError::new_err("embedded null character"))
        };
        Ok(Self {
            name: path.to_owned(),
            path: c_text(path)?,
            entry_point: entry_point.map(c_text).transpose()?,
        })
    }

    /// Loads it; the door must be open.
    pub(crate) fn load(&self, py: Python<'_>, locked: &Locked<'_>) -> oxlite_sqlite::Result<()> {
        detached(py, locked, |locked| {
            locked.load_extension(&self.path, self.entry_point.as_deref())
        })
    }
}

/// The extensions of the `extensions` argument of `connect`.
///
/// Each is a path, or a name: of a Python package that has a function `loadable_path()`, as packages
/// of SQLite extensions do, or else of a library that the system's loader finds.
pub(crate) fn named(
    py: Python<'_>,
    extensions: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Extension>> {
    let Some(extensions) = extensions else {
        return Ok(Vec::new());
    };
    if extensions.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "extensions takes a list of names and paths, not one string",
        ));
    }
    extensions
        .try_iter()?
        .map(|extension| resolve(py, &extension?))
        .collect()
}

fn resolve(py: Python<'_>, extension: &Bound<'_, PyAny>) -> PyResult<Extension> {
    let path: String = file_system_path(extension)?.extract()?;
    let names_package = extension.is_instance_of::<PyString>()
        && path.split('.').all(|part| {
            let mut characters = part.chars();
            characters
                .next()
                .is_some_and(|c| c.is_alphabetic() || c == '_')
                && characters.all(|c| c.is_alphanumeric() || c == '_')
        });
    if names_package {
        let found = py
            .import("importlib.util")?
            .call_method1("find_spec", (path.split('.').next(),));
        let is_found = match found {
            Ok(spec) => !spec.is_none(),
            // A module that is imported and has no specification: a script's `__main__`.
            Err(error) if error.is_instance_of::<PyValueError>(py) => false,
            Err(error) => return Err(error),
        };
        if is_found {
            let package = py.import(path.as_str())?;
            if package.hasattr("loadable_path")? {
                let location: String = package.call_method0("loadable_path")?.extract()?;
                let mut extension = Extension::at(&location, None)?;
                extension.name = path;
                return Ok(extension);
            }
        }
    }
    Extension::at(&path, None)
}

/// What to write in place of a name, to be put after what the loader says; empty where nothing is near.
fn hint(py: Python<'_>, name: &str) -> String {
    // Whatever is wrong with a hint, the error is told.
    py.import("oxlite.sqlite3.extensions")
        .and_then(|module| module.call_method1("near_package", (name,)))
        .and_then(|near| near.extract::<Option<String>>())
        .ok()
        .flatten()
        .map_or_else(String::new, |near| {
            format!("; did you mean extensions=['{near}']?")
        })
}

/// Loads them one after the other, then closes the door again.
pub(crate) fn load_all(py: Python<'_>, core: &Core, extensions: &[Extension]) -> PyResult<()> {
    if extensions.is_empty() {
        return Ok(());
    }
    let locked = lock(py, core)?;
    let set_door = |open: bool| {
        let switch = codes::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION;
        locked
            .config(switch, Some(open))
            .map(drop)
            .map_err(|error| from_sqlite(py, &error))
    };
    set_door(true)?;
    let outcome = extensions.iter().try_for_each(|extension| {
        extension.load(py, &locked).map_err(|error| {
            let message = format!(
                "the extension '{}' could not be loaded: {}{}",
                extension.name,
                error.message(),
                hint(py, &extension.name)
            );
            from_sqlite(py, &oxlite_sqlite::Error::new(error.code(), message))
        })
    });
    set_door(false)?;
    outcome
}
