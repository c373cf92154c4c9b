//! What users set on a connection, and what it tells of itself.

use oxlite_core::statement_timeout;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::Connection;
use crate::error::{from_core, lock_failed};
use crate::gil_once::GilOnce;
use crate::row::refuse_other_rows;
use crate::signature::refuse_to_delete;

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
        refuse_to_delete("row_factory")?;
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
    fn delete_text_factory(&self, py: Python<'_>) -> PyResult<()> {
        refuse_to_delete("text_factory")?;
        let replaced = self.attributes.get_mut(py).text_factory.take();
        drop(replaced);
        Ok(())
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
        let timeout = statement_timeout(timeout).map_err(|error| from_core(py, error))?;
        self.attributes.get_mut(py).statement_timeout = timeout;
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
    /// together: a dict with `waiting` (connections in line now), `admissions` (let through to the lock),
    /// `thread_waits` (for another connection of this process), `process_waits` (for other processes),
    /// `turns` (of the process among others), `queue_skips` (went ahead of a queue that did not move) and `process_queue_unavailable` (why processes do not queue;
    /// `None` if they do). `None` for a connection that does not wait in one.
    fn queue_statistics<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(statistics) = self.core()?.queue_statistics() else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("waiting", statistics.waiting)?;
        dict.set_item("admissions", statistics.admissions)?;
        dict.set_item("thread_waits", statistics.thread_waits)?;
        dict.set_item("process_waits", statistics.process_waits)?;
        dict.set_item("turns", statistics.turns)?;
        dict.set_item("queue_skips", statistics.queue_skips)?;
        dict.set_item(
            "process_queue_unavailable",
            statistics.process_queue_unavailable,
        )?;
        Ok(Some(dict))
    }

    /// What the commits to the main database have come to in this process, by all its connections with
    /// `durable_commit="shared"` together: a dict with `shared_commit_unavailable` (why each is synced by itself; `None`
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
        dict.set_item(
            "shared_commit_unavailable",
            statistics.shared_commit_unavailable,
        )?;
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

    /// What became of each pragma on opening: `oxlite.Setting`s, of its name, the value asked for, the value
    /// in force, and the reason why it could not be applied (`None` if it was).
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let class = setting_class(py)?;
        let settings = self.core()?.settings().iter().map(|setting| {
            class.call1((
                setting.name,
                setting.requested.as_str(),
                setting.effective.as_str(),
                setting.skipped,
            ))
        });
        PyTuple::new(py, settings.collect::<PyResult<Vec<_>>>()?)
    }
}

/// `oxlite.Setting`, a named tuple.
pub(crate) fn setting_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: GilOnce<Py<PyAny>> = GilOnce::new();
    let make = || -> PyResult<Py<PyAny>> {
        let fields = ("name", "requested", "effective", "skipped");
        let keywords = PyDict::new(py);
        keywords.set_item("module", "oxlite")?;
        let module = py.import("collections")?;
        let class = module.call_method("namedtuple", ("Setting", fields), Some(&keywords))?;
        class.setattr(
            "__doc__",
            "What became of a pragma on opening: its name, the value requested, the effective value, and why \
             it was skipped (None if it was not).",
        )?;
        Ok(class.unbind())
    };
    Ok(CLASS.get_or_try_make(py, make)?.bind(py))
}
