//! Cursors of a connection, and the shortcuts that make one on the way.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::Connection;
use crate::cursor::Cursor;
use crate::error::from_core;
use crate::gil::detached;
use crate::parameters::Argument;
use crate::statement::Statement;

impl Connection {
    /// A cursor for one of the shortcuts, which honour a subclass's own `cursor()`.
    fn shortcut_cursor<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get_type().is(PyType::new::<Self>(slf.py())) {
            slf.get().check_thread()?;
            return Ok(Cursor::create(slf)?.into_any());
        }
        slf.call_method0("cursor")
    }
}

#[pymethods]
impl Connection {
    /// A new cursor; `factory` is called with the connection and must return a `Cursor`.
    #[pyo3(signature = (factory = Argument::Absent))]
    fn cursor<'py>(slf: &Bound<'py, Self>, factory: Argument<'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let connection = slf.get();
        connection.check_open(py)?;
        let Argument::Given(factory) = factory else {
            return Ok(Cursor::create(slf)?.into_any());
        };
        let cursor = factory.call1((slf,))?;
        if !cursor.is_instance_of::<Cursor>() {
            return Err(PyTypeError::new_err(format!(
                "factory must return a cursor, not {}",
                cursor.get_type().name()?
            )));
        }
        if let Some(row_factory) = connection.row_factory_object(py) {
            cursor.setattr("row_factory", row_factory)?;
        }
        Ok(cursor)
    }

    /// Makes a cursor, executes on it and returns it.
    #[pyo3(signature = (sql, parameters = Argument::Absent, /))]
    fn execute<'py>(
        slf: &Bound<'py, Self>,
        sql: &Bound<'py, PyAny>,
        parameters: Argument<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let cursor = Self::shortcut_cursor(slf)?;
        if let (Ok(plain), Ok(sql)) = (cursor.cast_exact::<Cursor>(), sql.cast::<PyString>()) {
            plain.get().execute_sql(slf.py(), sql, &parameters)?;
            return Ok(cursor);
        }
        match parameters {
            Argument::Given(parameters) => cursor.call_method1("execute", (sql, parameters)),
            Argument::Absent => cursor.call_method1("execute", (sql,)),
        }
    }

    /// Makes a cursor, executes on it with each set of parameters and returns it.
    #[pyo3(signature = (sql, parameters, /))]
    fn executemany<'py>(
        slf: &Bound<'py, Self>,
        sql: &Bound<'py, PyAny>,
        parameters: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::shortcut_cursor(slf)?.call_method1("executemany", (sql, parameters))
    }

    /// Makes a cursor, executes a script on it and returns it.
    #[pyo3(signature = (sql_script, /))]
    fn executescript<'py>(
        slf: &Bound<'py, Self>,
        sql_script: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::shortcut_cursor(slf)?.call_method1("executescript", (sql_script,))
    }

    /// Prepares one statement, as a check of its SQL: the result can only be let go.
    ///
    /// It becomes `__call__` (see `lib.rs`): a slot of that name could not show its signature.
    #[pyo3(signature = (sql = Argument::Absent, /), text_signature = "($self, sql, /)")]
    fn _call(&self, py: Python<'_>, sql: Argument<'_>) -> PyResult<Statement> {
        self.check_open(py)?;
        let Argument::Given(sql) = sql else {
            return Err(PyTypeError::new_err(
                "a connection is called with one argument, the SQL of a statement",
            ));
        };
        let sql = sql.cast::<PyString>()?.to_str()?;
        self.on_locked(py, |core, locked| {
            let prepared = detached(py, locked, |locked| core.statement(locked, sql));
            prepared
                .map(Statement::new)
                .map_err(|error| from_core(py, error))
        })
    }
}
