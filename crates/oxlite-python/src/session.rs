//! `Session`: what records the changes of rows.
//!
//! Invariants:
//! - A session keeps its connection object, so this is closed after it, or by `close()`, which ends
//!   its sessions.
//! - Whoever uses the session shares it, so that `close()` never waits for a use of it by another
//!   thread; `oxlite-sqlite` deletes it when nobody records any more.

use std::sync::Arc;

use oxlite_core::Connection as Core;
use oxlite_sqlite::Locked;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::connection::{Connection, c_name};
use crate::error::from_sqlite;
use crate::exceptions::ProgrammingError;
use crate::gil::{at_the_end, without};
use crate::gil_cell::GilCell;
use crate::options::Truth;

/// Records the changes of rows, made by `Connection.create_session`.
///
/// Only tables with a declared primary key are recorded, and only rows whose key has no NULL. What
/// is rolled back leaves no change (<https://sqlite.org/sessionintro.html>).
#[pyclass(module = "oxlite", frozen, weakref)]
pub(crate) struct Session {
    connection: Py<Connection>,
    /// `None` once closed.
    open: GilCell<Option<Arc<oxlite_sqlite::Session>>>,
}

impl Session {
    pub(crate) fn new(connection: Py<Connection>, session: oxlite_sqlite::Session) -> Self {
        Self {
            connection,
            open: GilCell::new(Some(Arc::new(session))),
        }
    }

    /// Checks, locks, and works with the open session.
    fn on_open<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Core, &Locked<'_>, &oxlite_sqlite::Session) -> PyResult<T>,
    ) -> PyResult<T> {
        self.connection.get().on_locked(py, |core, locked| {
            let open = self.open.get(py).clone();
            let session = open
                .ok_or_else(|| ProgrammingError::new_err("Cannot operate on a closed session."))?;
            work(core, locked, &session)
        })
    }

    /// Asks for, or sets, something that is at hand.
    fn at_once<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&oxlite_sqlite::Session, &Locked<'_>) -> oxlite_sqlite::Result<T>,
    ) -> PyResult<T> {
        self.on_open(py, |_, locked, session| {
            work(session, locked).map_err(|error| from_sqlite(py, &error))
        })
    }

    /// Does what reads the database.
    fn reading<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&oxlite_sqlite::Session, &Locked<'_>) -> oxlite_sqlite::Result<T> + Send,
    ) -> PyResult<T> {
        self.on_open(py, |core, locked, session| {
            self.connection
                .get()
                .read_in_time(py, core, locked, |locked| work(session, locked))
        })
    }

    /// Takes the session away; it goes without the GIL, since with it may go the last of a database
    /// that its connection has left for another.
    fn end(&self, py: Python<'_>) {
        let open = self.open.get_mut(py).take();
        without(py, || drop(open));
    }
}

#[pymethods]
impl Session {
    /// Records the changes of `table` from now on; `None`: of every table, also of those made later.
    /// The table need not exist yet.
    #[pyo3(signature = (table = None))]
    fn attach(&self, py: Python<'_>, table: Option<&str>) -> PyResult<()> {
        let table = table.map(c_name).transpose()?;
        self.at_once(py, |session, locked| {
            session.attach(locked, table.as_deref())
        })
    }

    /// Whether changes are recorded. Setting it to `False` stops that until it is `True` again.
    #[getter]
    fn enabled(&self, py: Python<'_>) -> PyResult<bool> {
        self.at_once(py, oxlite_sqlite::Session::is_enabled)
    }

    #[setter]
    fn set_enabled(&self, py: Python<'_>, enabled: Truth) -> PyResult<()> {
        self.at_once(py, |session, locked| session.set_enabled(locked, enabled.0))
    }

    /// Whether every change is marked as indirect from now on; if not, those only that triggers and
    /// foreign key actions make.
    #[getter]
    fn indirect(&self, py: Python<'_>) -> PyResult<bool> {
        self.at_once(py, oxlite_sqlite::Session::is_indirect)
    }

    #[setter]
    fn set_indirect(&self, py: Python<'_>, indirect: Truth) -> PyResult<()> {
        self.at_once(py, |session, locked| {
            session.set_indirect(locked, indirect.0)
        })
    }

    /// Whether nothing has been recorded. Changes that cancel each other out count as recorded, but
    /// the changeset is then empty.
    #[getter]
    fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        self.at_once(py, oxlite_sqlite::Session::is_empty)
    }

    /// The memory that the recorded changes take, in bytes.
    #[getter]
    fn memory_used_bytes(&self, py: Python<'_>) -> PyResult<i64> {
        self.at_once(py, oxlite_sqlite::Session::memory_used)
    }

    /// What has changed since the tables were attached: one change for each row, from what it was then
    /// to what it is now. Recording goes on; for changes from now on only, create another session.
    fn changeset<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let changeset = self.reading(py, oxlite_sqlite::Session::changeset)?;
        Ok(PyBytes::new(py, &changeset))
    }

    /// Like `changeset()`, smaller: without the old values other than the primary key. So it finds
    /// fewer conflicts, and cannot be inverted.
    fn patchset<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let patchset = self.reading(py, oxlite_sqlite::Session::patchset)?;
        Ok(PyBytes::new(py, &patchset))
    }

    /// Records what would turn `table` of the attached database `from_name` into the same table of the
    /// session's database, and attaches the table. A table without a primary key, or in neither of
    /// them, is passed over.
    #[pyo3(signature = (table, *, from_name))]
    fn diff(&self, py: Python<'_>, table: &str, from_name: &str) -> PyResult<()> {
        let (table, from) = (c_name(table)?, c_name(from_name)?);
        self.reading(py, |session, locked| session.diff(locked, &from, &table))
    }

    /// Ends the recording; what has been recorded is gone. Closing twice is allowed, and after the
    /// connection.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.connection.get().check_thread()?;
        self.end(py);
        Ok(())
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().on_open(slf.py(), |_, _, _| Ok(()))?;
        Ok(slf.clone())
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    // A cycle through a session goes through its connection, which breaks it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.connection)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut open = self.open.inner_mut().take();
        if open.is_some() {
            at_the_end(|py| without(py, || drop(open.take())));
        }
    }
}
