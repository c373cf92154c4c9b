//! The online backup: pages of one database copied over another while both are in use.

use std::ffi::CStr;
use std::time::Duration;

use oxlite_core::Connection as Core;
use oxlite_sqlite::{Backup, BackupStep, Locked, codes};
use pyo3::prelude::*;

use crate::connection::lock;
use crate::error::from_sqlite;
use crate::gil::{detached_pair, without};

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
    let mut backup = with_both(py, source, target, |source, target| {
        Backup::begin(target, source, name)
    })?;
    let outcome = copy_all(py, source, target, &mut backup, pace);
    let finished = with_both(py, source, target, |source, target| {
        backup.finish(target, source)
    });
    outcome.and(finished)
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
        let stepped = both(py, source, target, |source, target| {
            backup.step(target, source, pages_at_once)
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
            BackupStep::Locked(_) => without(py, || std::thread::sleep(pause)),
        }
    }
}

/// Locks both connections and works without the GIL.
///
/// They are locked in the order of their addresses, so two backups in opposite directions do not
/// wait for each other, and for one step only, so others can use them in between.
fn with_both<T: Send>(
    py: Python<'_>,
    source: &Core,
    target: &Core,
    work: impl FnOnce(&Locked<'_>, &Locked<'_>) -> oxlite_sqlite::Result<T> + Send,
) -> PyResult<T> {
    both(py, source, target, work)?.map_err(|error| from_sqlite(py, &error))
}

/// Like [`with_both`], with SQLite's error for the caller to look at.
fn both<T: Send>(
    py: Python<'_>,
    source: &Core,
    target: &Core,
    work: impl FnOnce(&Locked<'_>, &Locked<'_>) -> T + Send,
) -> PyResult<T> {
    Ok(if std::ptr::from_ref(source) < std::ptr::from_ref(target) {
        let source = lock(py, source)?;
        let target = lock(py, target)?;
        detached_pair(py, &source, &target, work)
    } else {
        let target = lock(py, target)?;
        let source = lock(py, source)?;
        detached_pair(py, &source, &target, work)
    })
}
