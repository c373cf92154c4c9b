//! `Pool`: objects that are lent one at a time each. What a database's connections wait in.

use std::time::Instant;

use oxlite_core::{Pool as Core, PoolError, timeout_from_seconds};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::{ProgrammingError, from_core};
use crate::gil::{is_signalled, patience, raise_kept, without};

/// A fixed number of objects to lend; those who wait for one are served in order.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Pool {
    core: Core<Py<PyAny>>,
}

#[pymethods]
impl Pool {
    #[new]
    fn new(objects: Vec<Py<PyAny>>) -> Self {
        Self {
            core: Core::new(objects),
        }
    }

    /// Borrows an object, that which came back last; waits for one for `timeout` seconds. How long that has
    /// taken, in seconds, 0 if one was idle; `None` if none came back. It is put into the list `lent`, so
    /// that Ctrl-C between the end of this call and an assignment does not lose it.
    fn take(&self, lent: &Bound<'_, PyList>, timeout: f64) -> PyResult<Option<f64>> {
        let py = lent.py();
        let timeout = timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?;
        let mut waited = 0.0;
        let taken = match self.core.try_take() {
            Ok(Some(object)) => Ok(object),
            Ok(None) => {
                let began = Instant::now();
                let timeout = patience(py, timeout);
                let taken = without(py, || self.core.take(timeout, || !is_signalled()));
                waited = began.elapsed().as_secs_f64();
                taken
            }
            Err(error) => Err(error),
        };
        match taken {
            Ok(object) => match lent.append(&object) {
                Ok(()) => Ok(Some(waited)),
                Err(error) => {
                    self.core.give(object);
                    Err(error)
                }
            },
            Err(PoolError::TimedOut) => Ok(None),
            Err(PoolError::Cancelled) => raise_kept().map(|()| None),
            Err(PoolError::Closed) => Err(ProgrammingError::new_err("The pool is closed.")),
        }
    }

    /// Gives an object back. `False` if the pool has been closed: then the caller disposes of it.
    fn give(&self, object: Py<PyAny>) -> bool {
        self.core.give(object).is_none()
    }

    /// Lends nothing any more; the objects that are idle, of which the caller disposes.
    fn close(&self) -> Vec<Py<PyAny>> {
        self.core.close()
    }

    /// Waits for `timeout` seconds until all that is lent has come back to the closed pool; whether it
    /// has.
    fn wait_for_all(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = timeout_from_seconds(timeout).map_err(|error| from_core(py, error))?;
        let timeout = patience(py, timeout);
        let have_all = without(py, || self.core.wait_for_all(timeout, || !is_signalled()));
        raise_kept()?;
        Ok(have_all)
    }

    /// How many objects are idle and how many lent, and how many threads wait for one.
    fn statistics(&self) -> (usize, usize, usize) {
        let statistics = self.core.statistics();
        (statistics.idle, statistics.lent, statistics.waiting)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut outcome = Ok(());
        self.core.look(|object| {
            if outcome.is_ok() {
                outcome = visit.call(object);
            }
        });
        outcome
    }
}
