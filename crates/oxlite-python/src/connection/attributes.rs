//! What users set on a connection, and what it tells of itself.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::Connection;
use crate::error::lock_failed;
use crate::options;
use crate::row::refuse_other_rows;

#[pymethods]
impl Connection {
    /// The row factory that new cursors get; `None` for tuples.
    #[getter]
    fn row_factory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.row_factory_object(py)
    }

    #[setter]
    fn set_row_factory(&self, py: Python<'_>, factory: Option<Py<PyAny>>) -> PyResult<()> {
        refuse_other_rows(factory.as_ref().map(|factory| factory.bind(py)))?;
        let replaced = std::mem::replace(&mut self.attributes.get_mut(py).row_factory, factory);
        drop(replaced);
        Ok(())
    }

    #[deleter]
    fn delete_row_factory(&self, py: Python<'_>) -> PyResult<()> {
        self.set_row_factory(py, None)
    }

    /// Called with the bytes of each TEXT value; `str` by default.
    #[getter]
    fn text_factory(&self, py: Python<'_>) -> Py<PyAny> {
        match &self.attributes.get(py).text_factory {
            Some(factory) => factory.clone_ref(py),
            None => PyType::new::<PyString>(py).into_any().unbind(),
        }
    }

    #[setter]
    fn set_text_factory(&self, factory: &Bound<'_, PyAny>) {
        let py = factory.py();
        let is_str = factory.is(PyType::new::<PyString>(py));
        let factory = (!is_str).then(|| factory.clone().unbind());
        let replaced = std::mem::replace(&mut self.attributes.get_mut(py).text_factory, factory);
        drop(replaced);
    }

    #[deleter]
    fn delete_text_factory(&self, py: Python<'_>) {
        let replaced = self.attributes.get_mut(py).text_factory.take();
        drop(replaced);
    }

    /// How long a statement may work, in seconds, before it is interrupted with
    /// `oxlite.StatementTimeout`; `None` for as long as it takes. The application's own time between
    /// two fetches does not count; waiting for a lock does.
    #[getter]
    fn statement_timeout(&self, py: Python<'_>) -> Option<f64> {
        let timeout = self.attributes.get(py).statement_timeout;
        timeout.map(|timeout| timeout.as_secs_f64())
    }

    #[setter]
    fn set_statement_timeout(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        self.attributes.get_mut(py).statement_timeout = options::statement_timeout(timeout)?;
        Ok(())
    }

    /// How many rows have been changed since the connection was opened; while another thread uses it, as
    /// it was before that.
    #[getter]
    fn total_changes(&self) -> PyResult<i64> {
        let core = self.core()?;
        Ok(match core.try_glance() {
            Some(locked) => locked.map_err(lock_failed)?.total_changes(),
            None => core.changes_so_far(),
        })
    }

    /// The name of the profile the connection was opened with.
    #[getter]
    fn profile(&self) -> PyResult<&'static str> {
        Ok(self.core()?.profile().name)
    }

    /// What the queue of writers has done in this process, for all connections to the database
    /// together: a dict with `waiting` (connections in line now), `passes` (let through to the lock),
    /// `lane_waits` (for another connection of this process), `gate_waits` (for other processes),
    /// `bypasses` (went ahead of a queue that did not move) and `no_gate` (why processes do not queue;
    /// `None` if they do). `None` for a connection that does not wait in one.
    fn queue_statistics<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(statistics) = self.core()?.queue_statistics() else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("waiting", statistics.waiting)?;
        dict.set_item("passes", statistics.passes)?;
        dict.set_item("lane_waits", statistics.lane_waits)?;
        dict.set_item("gate_waits", statistics.gate_waits)?;
        dict.set_item("bypasses", statistics.bypasses)?;
        dict.set_item("no_gate", statistics.no_gate)?;
        Ok(Some(dict))
    }

    /// What the commits to the main database have come to in this process, by all its connections with
    /// `durable_commit="shared"` together: a dict with `no_sharing` (why each is synced by itself; `None`
    /// if they share syncs), `commits`, `syncs_led` (made for all), `syncs_beside` (beside a leader that did
    /// not go on), `answered_by_others` (commits that another one's sync has made durable), `commits_of_all`
    /// (of all processes, since the first of those that are there), `leaders_lost` (processes that have died
    /// in a sync for all, since then) and `poisoned` (why nothing is committed any more; `None` if all is
    /// well). `None` for a connection without that.
    fn shared_commit_statistics<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(statistics) = self.core()?.shared_commit_statistics() else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("no_sharing", statistics.no_sharing)?;
        dict.set_item("commits", statistics.commits)?;
        dict.set_item("syncs_led", statistics.syncs_led)?;
        dict.set_item("syncs_beside", statistics.syncs_beside)?;
        dict.set_item("answered_by_others", statistics.answered_by_others)?;
        dict.set_item("commits_of_all", statistics.commits_of_all)?;
        dict.set_item("leaders_lost", statistics.leaders_lost)?;
        dict.set_item("poisoned", statistics.poisoned)?;
        Ok(Some(dict))
    }

    /// How the connection waits for locks: `"gate"`, `"fair"`, `"backoff"`, `"none"`, or `"handler"` for a
    /// `busy_handler` of its own.
    #[getter]
    fn busy(&self) -> PyResult<&'static str> {
        Ok(self.core()?.busy().name())
    }

    /// For how long at most it waits for a lock, in seconds.
    #[getter]
    fn timeout(&self) -> PyResult<f64> {
        Ok(self.core()?.timeout().as_secs_f64())
    }

    /// What became of each pragma on opening: tuples of its name, the value asked for, the value in
    /// force, and the reason why it could not be applied (`None` if it was).
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let core = self.core()?;
        let settings = core.settings().iter().map(|setting| {
            (
                setting.name,
                setting.requested.as_str(),
                setting.effective.as_str(),
                setting.skipped,
            )
        });
        PyTuple::new(py, settings.collect::<Vec<_>>())
    }
}
