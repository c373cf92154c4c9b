//! The online backup: pages of one database copied over another while both are in use.

use std::ffi::CStr;
use std::time::Duration;

use oxlite_core::Connection as Core;
use oxlite_sqlite::{Backup, BackupStep, Locked, codes};
use pyo3::prelude::*;

use crate::error::from_sqlite;
use crate::gil::{ConnectionGuard, detached_pair, without};
use crate::lock::{lock, lock_target};

/// How a backup goes about it.
pub(crate) struct Pace<'a, 'py> {
    /// Pages for each step; all at once if negative.
    pub(crate) pages: i32,
    /// Called after each step with SQLite's code, the pages that remain and the pages in all.
    pub(crate) progress: Option<&'a Bound<'py, PyAny>>,
    /// The pause after a step that met a lock.
    pub(crate) pause: Duration,
}

/// Copies the database `name` of `source` over `main` of `target`, a different connection.
pub(crate) fn back_up(
    py: Python<'_>,
    source: &Core,
    target: &Core,
    name: &CStr,
    pace: &Pace<'_, '_>,
) -> PyResult<()> {
    let begun = both(py, source, target, lock, |source, target| {
        Backup::begin(target, &source, name)
    })?;
    let mut backup = begun.map_err(|error| from_sqlite(py, &error))?;
    let outcome = copy_all(py, source, target, &mut backup, pace);
    let finished = both(py, source, target, lock_target, |source, target| {
        backup.finish(&target, &source)
    })?;
    outcome.and(finished.map_err(|error| from_sqlite(py, &error)))
}

fn copy_all(
    py: Python<'_>,
    source: &Core,
    target: &Core,
    backup: &mut Backup,
    pace: &Pace<'_, '_>,
) -> PyResult<()> {
    let (pages_at_once, pause) = (pace.pages, pace.pause);
    loop {
        let stepped = both(py, source, target, lock_target, |source, target| {
            backup.step(&target, &source, pages_at_once)
        })?;
        let code = match &stepped {
            Ok(BackupStep::More) => codes::SQLITE_OK,
            Ok(BackupStep::Done) => codes::SQLITE_DONE,
            Ok(BackupStep::Locked(code)) => *code,
            Err(error) => error.code(),
        };
        if let Some(progress) = pace.progress {
            let (remaining, pages) = backup.progress();
            progress.call1((code, remaining, pages))?;
        }
        match stepped.map_err(|error| from_sqlite(py, &error))? {
            BackupStep::More => {}
            BackupStep::Done => return Ok(()),
            BackupStep::Locked(_) => {
                without(py, || std::thread::sleep(pause));
                // Ctrl-C ends what may never end: who has a write transaction open on the source.
                py.check_signals()?;
            }
        }
    }
}

/// Locks both connections and works without the GIL.
///
/// They are locked in the order of their addresses, so two backups in opposite directions do not
/// wait for each other, and for one step only, so others can use the source in between.
fn both<'c, Target: ConnectionGuard, T: Send>(
    py: Python<'_>,
    source: &'c Core,
    target: &'c Core,
    lock_target: impl FnOnce(Python<'_>, &'c Core) -> PyResult<Target>,
    work: impl FnOnce(Locked<'c>, Target) -> T + Send,
) -> PyResult<T> {
    let (source, target) = if std::ptr::from_ref(source) < std::ptr::from_ref(target) {
        let source = lock(py, source)?;
        (source, lock_target(py, target)?)
    } else {
        let target = lock_target(py, target)?;
        (lock(py, source)?, target)
    };
    Ok(detached_pair(py, source, target, work))
}
