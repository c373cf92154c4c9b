//! Whoever watches what is done with a database, for `oxlite top`.

use std::path::PathBuf;
use std::time::Duration;

use oxlite_core::{ActivityWatcher as Core, Holder, Mutex, PidNamespace, ProcessActivity};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Has the processes of Oxlite that use a database tell what they do, until it is closed.
///
/// It makes a file beside the database that whoever may write the database may read, and takes it away.
/// Processes hear of it within about a second, when they next use the database. Raises `OSError` where it
/// cannot be: on a network file system, or without the right to make files there.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct ActivityWatcher(Mutex<Option<Core>>);

#[pymethods]
impl ActivityWatcher {
    #[new]
    #[pyo3(signature = (database))]
    fn new(py: Python<'_>, database: PathBuf) -> PyResult<Self> {
        let watcher = py.detach(|| Core::new(&database))?;
        Ok(Self(Mutex::new(Some(watcher))))
    }

    /// What each process has told last: dicts with `process_id`, `pid_namespace` (`"own"`, `"another"` or
    /// `"unknown"`: where that is its number), `told_ms` (when, by `time.CLOCK_MONOTONIC`), `counters` (by
    /// name), `slowest` (dicts with `sql`, `longest_us`, `waited_us`, `count`, `ago_ms`: of the last minute)
    /// and `readings` (dicts with `thread_id`, `held_ms`, `sql`: connections with a snapshot).
    fn processes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let told = self.with(py, oxlite_core::ActivityWatcher::processes)??;
        told.iter().map(|process| described(py, process)).collect()
    }

    /// Who has the database's write lock, if that has told so (writes that are short do not): a dict with
    /// `process_id`, `pid_namespace`, `thread_id`, `held_ms` and `sql`, else `None`.
    fn holder<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(holder) = self.with(py, oxlite_core::ActivityWatcher::holder)? else {
            return Ok(None);
        };
        let Holder {
            process_id,
            pid_namespace,
            thread_id,
            held_for,
            statement,
        } = holder;
        let dict = PyDict::new(py);
        dict.set_item("process_id", process_id)?;
        dict.set_item("pid_namespace", namespace(pid_namespace))?;
        dict.set_item("thread_id", thread_id)?;
        dict.set_item("held_ms", milliseconds(held_for))?;
        dict.set_item("sql", statement)?;
        Ok(Some(dict))
    }

    /// Watches no longer. To be called again is fine.
    fn close(&self, py: Python<'_>) {
        let watcher = self.0.lock().take();
        py.detach(|| drop(watcher));
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

impl ActivityWatcher {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Core) -> T + Send) -> PyResult<T> {
        py.detach(|| self.0.lock().as_ref().map(work))
            .ok_or_else(|| PyValueError::new_err("the watcher has been closed"))
    }
}

fn described<'py>(py: Python<'py>, process: &ProcessActivity) -> PyResult<Bound<'py, PyDict>> {
    let now_ms = oxlite_sqlite::coarse_milliseconds();
    let counters = PyDict::new(py);
    for (name, count) in &process.counters {
        counters.set_item(name, count)?;
    }
    let slowest = process.slowest.iter().map(|slow| {
        let dict = PyDict::new(py);
        dict.set_item("sql", &slow.sql)?;
        dict.set_item("longest_us", slow.longest.as_micros())?;
        dict.set_item("waited_us", slow.waited.as_micros())?;
        dict.set_item("count", slow.count)?;
        dict.set_item("ago_ms", now_ms.saturating_sub(slow.last_ms))?;
        Ok(dict)
    });
    let readings = process.readings.iter().map(|reading| {
        let dict = PyDict::new(py);
        dict.set_item("thread_id", reading.thread_id)?;
        dict.set_item("held_ms", milliseconds(reading.held_for))?;
        dict.set_item("sql", &reading.sql)?;
        Ok(dict)
    });
    let dict = PyDict::new(py);
    dict.set_item("process_id", process.process_id)?;
    dict.set_item("pid_namespace", namespace(process.pid_namespace))?;
    dict.set_item("told_ms", process.told_ms)?;
    dict.set_item("counters", counters)?;
    dict.set_item("slowest", slowest.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("readings", readings.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}

fn namespace(namespace: PidNamespace) -> &'static str {
    match namespace {
        PidNamespace::Own => "own",
        PidNamespace::Another => "another",
        PidNamespace::Unknown => "unknown",
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
