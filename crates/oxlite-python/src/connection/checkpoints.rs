//! The write-ahead log of a connection: checkpoints on demand, and what has become of those that are made
//! by themselves.

use oxlite_core::{checkpoint_mode, timeout_from_seconds};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{Connection, c_name};
use crate::error::from_core;
use crate::gil::{attached, detached};

#[pymethods]
impl Connection {
    /// Makes a checkpoint of the database `name`: `"passive"` (as far as it comes without waiting),
    /// `"full"` (waits for the writer and for readers of older snapshots), `"restart"` (and for all
    /// readers, so that the log is begun anew) or `"truncate"` (and cuts its file to nothing).
    ///
    /// It stands in line for the write lock as every writer does, and then waits for others for `timeout`
    /// seconds at most, less if the connection's own is shorter. Nobody else can write meanwhile.
    ///
    /// Answers as `PRAGMA wal_checkpoint` does: whether somebody was in the way, the frames in the log,
    /// and how many of them are in the database; -1 where there is no log, or where another checkpoint
    /// is under way.
    #[pyo3(signature = (mode = "passive", *, timeout = 1.0, name = "main"))]
    fn checkpoint(
        &self,
        py: Python<'_>,
        mode: &str,
        timeout: f64,
        name: &str,
    ) -> PyResult<(bool, i64, i64)> {
        let from_core = |error| from_core(py, error);
        let mode = checkpoint_mode(mode).map_err(from_core)?;
        let patience = timeout_from_seconds(timeout).map_err(from_core)?;
        let schema = c_name(name)?;
        self.on_locked(py, |core, locked| {
            let checkpoint = detached(py, locked, |locked| {
                core.checkpoint(locked, &schema, mode, patience)
            })
            .map_err(from_core)?;
            let number = |frames: Option<u32>| frames.map_or(-1, i64::from);
            Ok((
                checkpoint.is_busy,
                number(checkpoint.frames),
                number(checkpoint.checkpointed),
            ))
        })
    }

    /// Runs `work` while this connection is at the head of the queue for the write lock, without taking the
    /// lock: so that a program which knows of no queue (Litestream) gets it beside writers that never pause.
    /// Answers with what `work` returns.
    ///
    /// Keep it short: others do not write meanwhile. `OperationalError` if it does not get there within the
    /// time that a statement would wait. Writers of other processes go past it when they have
    /// waited for 100 ms. `work` must not use this connection.
    fn give_way(&self, py: Python<'_>, work: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let work = work.clone().unbind();
        self.on_locked(py, |core, locked| {
            detached(py, locked, |locked| {
                core.give_way(locked, || attached(|py| work.call0(py)))
            })
            .map_err(|error| from_core(py, error))?
        })
    }

    /// What has become of the main database's write-ahead log, by all connections of this process
    /// together: a dict with `frames` (in the log after the latest commit of this process), `commits` (of
    /// this process, where it makes the checkpoints),
    /// `checkpoints` (that brought all of it into the database), `checkpoints_incomplete` (somebody was
    /// in the way), `checkpoint_waits` (for which nobody could write while readers were waited for),
    /// `checkpoint_errors`, `last_error` (its text, or `None`) and `readers_named` (how often a log
    /// beyond its limit was told of). `None` for a connection of the profile `stock`, or to a database
    /// that is not in a file.
    fn wal_statistics<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(statistics) = self.core()?.wal_statistics() else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("frames", statistics.frames)?;
        dict.set_item("commits", statistics.commits)?;
        dict.set_item("checkpoints", statistics.checkpoints)?;
        dict.set_item("checkpoints_incomplete", statistics.incomplete)?;
        dict.set_item("checkpoint_waits", statistics.waits)?;
        dict.set_item("checkpoint_errors", statistics.errors)?;
        dict.set_item("last_error", statistics.last_error)?;
        dict.set_item("readers_named", statistics.readers_named)?;
        Ok(Some(dict))
    }
}
