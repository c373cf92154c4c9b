//! Cursors of a connection, and the shortcuts that make one on the way.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::Connection;
use crate::argument::Argument;
use crate::cursor::{Cursor, sql_text};
use crate::error::from_core;
use crate::gil::detached;
use crate::statement::Statement;

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
    ) -> PyResult<Bound<'py, Cursor>> {
        let cursor = Cursor::create(slf)?;
        let sql = sql_text(sql, "execute() argument 1")?;
        cursor.get().execute_sql(slf.py(), sql, &parameters)?;
        Ok(cursor)
    }

    /// Makes a cursor, executes on it with each set of parameters and returns it.
    #[pyo3(signature = (sql, parameters, /))]
    fn executemany<'py>(
        slf: &Bound<'py, Self>,
        sql: &Bound<'py, PyAny>,
        parameters: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Cursor>> {
        let cursor = Cursor::create(slf)?;
        let sql = sql_text(sql, "executemany() argument 1")?;
        cursor.get().execute_many_sql(slf.py(), sql, parameters)?;
        Ok(cursor)
    }

    /// Makes a cursor, executes a script on it and returns it.
    #[pyo3(signature = (sql_script, /))]
    fn executescript<'py>(
        slf: &Bound<'py, Self>,
        sql_script: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Cursor>> {
        let cursor = Cursor::create(slf)?;
        let script = sql_text(sql_script, "executescript() argument")?;
        cursor.get().execute_script_sql(slf.py(), script)?;
        Ok(cursor)
    }

    /// Prepares one statement, as a check of its SQL: the result can only be let go.
    ///
    /// It becomes `__call__` (see `lib.rs`): a slot of that name could not show its signature.
    #[pyo3(signature = (*arguments), text_signature = "($self, sql, /)")]
    fn _call(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<Statement> {
        self.check_open(py)?;
        let [sql] = arguments.as_slice() else {
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
