//! SQL functions, aggregates, window functions and collations of a connection.

use oxlite_sqlite::{Locked, codes};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{Connection, c_name};
use crate::buffers::SingleValues;
use crate::error::from_sqlite;
use crate::exceptions::{OperationalError, ProgrammingError};
use crate::function::{self, PythonAggregate};
use crate::options::Truth;
use crate::signature::{check_names, hand_on};
use crate::version;

impl Connection {
    /// Refuses a `count` of arguments that no function can have, where this version of Python looks at it.
    fn check_count(&self, py: Python<'_>, name: &str, count: i32) -> PyResult<()> {
        if !version::CHECKS_ARGUMENT_COUNTS {
            return Ok(());
        }
        self.on_locked(py, |_, locked| {
            match locked.limit(codes::SQLITE_LIMIT_FUNCTION_ARG) {
                Some(at_most) if !(-1..=at_most).contains(&count) => {
                    Err(ProgrammingError::new_err(format!(
                        "'{name}' must be between -1 and {at_most}, not {count}"
                    )))
                }
                _ => Ok(()),
            }
        })
    }

    /// Defines something on the locked connection; an error is an `OperationalError` of this text,
    /// unless memory has run out.
    pub(crate) fn define(
        &self,
        py: Python<'_>,
        failure: &'static str,
        define: impl FnOnce(&Locked<'_>) -> oxlite_sqlite::Result<()>,
    ) -> PyResult<()> {
        self.on_locked(py, |core, locked| {
            core.note_callback();
            define(locked).map_err(|error| match error.primary_code() {
                codes::SQLITE_NOMEM => from_sqlite(py, &error),
                _ => OperationalError::new_err(failure),
            })
        })
    }
}

#[pymethods]
impl Connection {
    /// Creates an SQL function of `narg` arguments (-1: any number); `None` removes it.
    ///
    /// A `deterministic` function lets SQLite reuse its results and use it in indexes.
    #[pyo3(
        signature = (*arguments, **keywords),
        text_signature = "($self, name, narg, func, *, deterministic=False)"
    )]
    fn create_function<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = ["name", "narg", "func"];
        check_names("create_function", &names, arguments, keywords)?;
        hand_on!(create_function, slf, arguments, keywords)
    }

    /// Creates an aggregate from a class whose instances have `step(*args)` and `finalize()`;
    /// `None` removes it.
    #[pyo3(
        signature = (*arguments, **keywords),
        text_signature = "($self, name, n_arg, aggregate_class)"
    )]
    fn create_aggregate<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = ["name", "n_arg", "aggregate_class"];
        check_names("create_aggregate", &names, arguments, keywords)?;
        hand_on!(create_aggregate, slf, arguments, keywords)
    }

    /// Creates an aggregate window function from a class whose instances have `step(*args)`,
    /// `inverse(*args)`, `value()` and `finalize()`; `None` removes it.
    #[pyo3(signature = (name, num_params, aggregate_class, /))]
    fn create_window_function(
        &self,
        py: Python<'_>,
        name: &str,
        num_params: i32,
        aggregate_class: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let name = c_name(name)?;
        self.check_count(py, "num_params", num_params)?;
        self.on_locked(py, |core, locked| {
            let single_values = SingleValues::of(core);
            let aggregate = aggregate_class.map(|class| PythonAggregate::new(class, single_values));
            core.note_callback();
            locked
                .create_window_function(&name, num_params, aggregate)
                // The standard library's class for wrong arguments here, unlike for the others.
                .map_err(|error| match error.primary_code() {
                    codes::SQLITE_NOMEM => from_sqlite(py, &error),
                    _ => ProgrammingError::new_err(error.message().to_owned()),
                })
        })
    }

    /// Creates a collation from a function that compares two `str` and returns a negative number,
    /// zero or a positive one; `None` removes it.
    #[pyo3(signature = (name, callback, /))]
    fn create_collation(
        &self,
        py: Python<'_>,
        name: &str,
        callback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let name = c_name(name)?;
        if let Some(callback) = &callback
            && !callback.bind(py).is_callable()
        {
            return Err(PyTypeError::new_err("parameter must be callable"));
        }
        let collation = callback.map(function::collation);
        self.on_locked(py, |core, locked| {
            core.note_callback();
            locked
                .create_collation(&name, collation)
                .map_err(|error| from_sqlite(py, &error))
        })
    }
}

#[pyfunction]
#[pyo3(signature = (connection, name, narg, func, *, deterministic = Truth(false)))]
fn create_function(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    name: &str,
    narg: i32,
    func: Option<Py<PyAny>>,
    deterministic: Truth,
) -> PyResult<()> {
    let name = c_name(name)?;
    let connection = connection.get();
    connection.check_count(py, "narg", narg)?;
    let single_values = SingleValues::of(connection.core()?);
    let function = func.map(|function| function::scalar(function, single_values));
    connection.define(py, "Error creating function", move |locked| {
        locked.create_function(&name, narg, deterministic.0, function)
    })
}

#[pyfunction]
fn create_aggregate(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    name: &str,
    n_arg: i32,
    aggregate_class: Option<Py<PyAny>>,
) -> PyResult<()> {
    let name = c_name(name)?;
    let connection = connection.get();
    connection.check_count(py, "n_arg", n_arg)?;
    let single_values = SingleValues::of(connection.core()?);
    let aggregate = aggregate_class.map(|class| PythonAggregate::new(class, single_values));
    connection.define(py, "Error creating aggregate", move |locked| {
        locked.create_aggregate(&name, n_arg, aggregate)
    })
}
