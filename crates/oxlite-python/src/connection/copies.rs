//! The content of a connection's databases, copied and opened: backup, serialize, iterdump, blobs.

use std::time::Duration;

use oxlite_sqlite::codes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::{Connection, c_name};
use crate::backup::{self, Pace};
use crate::blob::Blob;
use crate::buffers::bytes_like;
use crate::error::from_sqlite;
use crate::exceptions::OperationalError;
use crate::gil::detached;
use crate::lock::lock;
use crate::options::Truth;
use crate::signature::wrong_type;
use crate::type_names::is_of_class;
use crate::values::filled_bytes;

#[pymethods]
impl Connection {
    /// Copies the database `name` over the main database of `target`, while both may be in use.
    ///
    /// `pages` are copied at a time (all at once if 0 or less); after each step `progress` is called
    /// with SQLite's code, the pages that remain and the pages in all. A step that meets a lock is
    /// tried again after `sleep` seconds.
    #[pyo3(signature = (target, *, pages = -1, progress = None, name = "main", sleep = 0.25))]
    fn backup(
        slf: &Bound<'_, Self>,
        target: &Bound<'_, PyAny>,
        pages: i32,
        progress: Option<&Bound<'_, PyAny>>,
        name: &str,
        sleep: f64,
    ) -> PyResult<()> {
        let py = slf.py();
        // Not the target's thread: as in the standard library.
        slf.get().check_thread()?;
        let target = target.cast::<Self>().map_err(|_| not_a_target(target))?;
        if slf.is(target) {
            return Err(PyValueError::new_err(
                "target cannot be the same connection instance",
            ));
        }
        if let Some(progress) = progress
            && !progress.is_callable()
        {
            return Err(PyTypeError::new_err("progress argument must be a callable"));
        }
        let pause = Duration::try_from_secs_f64(sleep.max(0.0))
            .map_err(|error| PyValueError::new_err(format!("sleep: {error}")))?;
        let pace = Pace {
            pages: if pages == 0 { -1 } else { pages },
            progress,
            pause,
        };
        let (source, target) = (slf.get().core()?, target.get().core()?);
        backup::back_up(py, source, target, &c_name(name)?, &pace)
    }

    /// The content of the database `name`, as its file would be.
    #[pyo3(signature = (*, name = "main"))]
    fn serialize<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let schema = c_name(name)?;
        self.on_locked(py, |_, locked| {
            // What stands in memory in one piece is copied once.
            if let Some(length) = locked.serialized_length(&schema)
                && let Ok(content) = filled_bytes(py, length, |buffer| {
                    locked.copy_serialized(&schema, buffer).ok_or(())
                })?
            {
                return Ok(content);
            }
            let content = detached(py, locked, |locked| locked.serialize(&schema));
            match content {
                Ok(content) if !content.is_empty() => Ok(PyBytes::new(py, &content)),
                // Memory and the disk have classes and codes of their own.
                Err(error) if error.code() != codes::SQLITE_ERROR => Err(from_sqlite(py, &error)),
                // A schema that does not exist, or a database without a page.
                _ => Err(OperationalError::new_err(format!(
                    "unable to serialize '{name}'"
                ))),
            }
        })
    }

    /// Replaces the database `name` by one in memory with this content.
    #[pyo3(signature = (data, /, *, name = "main"))]
    fn deserialize(&self, py: Python<'_>, data: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
        let schema = c_name(name)?;
        let content = match data.cast::<PyString>() {
            // The standard library takes a str for its UTF-8.
            Ok(text) => PyBytes::new(py, text.to_str()?.as_bytes()),
            Err(_) => bytes_like(data)?,
        };
        let content = content.as_bytes();
        self.on_locked(py, |core, locked| {
            core.note_change();
            detached(py, locked, |locked| locked.deserialize(&schema, content))
                .map_err(|error| from_sqlite(py, &error))
        })
    }

    /// Opens the BLOB or TEXT value in `column` of the row `row` of `table` for reading and, unless
    /// `readonly`, writing in place.
    #[pyo3(signature = (table, column, row, /, *, readonly = Truth(false), name = "main"))]
    fn blobopen<'py>(
        slf: &Bound<'py, Self>,
        table: &str,
        column: &str,
        row: i64,
        readonly: Truth,
        name: &str,
    ) -> PyResult<Bound<'py, Blob>> {
        let py = slf.py();
        let connection = slf.get();
        connection.check_thread()?;
        let (schema, table, column) = (c_name(name)?, c_name(table)?, c_name(column)?);
        let core = connection.core()?;
        let blob = {
            let locked = lock(py, core)?;
            detached(py, &locked, |locked| {
                locked.open_blob(&schema, &table, &column, row, readonly.0)
            })
            .map_err(|error| from_sqlite(py, &error))?
        };
        Bound::new(py, Blob::new(slf.clone().unbind(), core.clone(), blob))
    }

    /// An iterator over the SQL text that makes the database anew, statement by statement.
    ///
    /// `filter` is a LIKE pattern for the names of the objects to dump; `None` means all.
    #[pyo3(signature = (*, filter = None))]
    fn iterdump<'py>(
        slf: &Bound<'py, Self>,
        filter: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        slf.get().check_open(py)?;
        let arguments = PyDict::new(py);
        arguments.set_item("filter", filter)?;
        py.import("oxlite.sqlite3.dump")?
            .call_method("_iterdump", (slf,), Some(&arguments))
    }
}

/// The error for a target that is no connection, or one of another SQLite.
fn not_a_target(target: &Bound<'_, PyAny>) -> PyErr {
    let wanted = match is_of_class(target, "sqlite3.Connection") {
        true => "oxlite.sqlite3.Connection (open the target with oxlite.sqlite3.connect)",
        false => "oxlite.sqlite3.Connection",
    };
    wrong_type("backup() argument 'target'", wanted, target)
}
