//! How a connection is locked by a thread of Python's: at once if it is free, else without the GIL.

use oxlite_core::{Connection as Core, LockError};
use oxlite_sqlite::{BackupTarget, Glance, Locked};
use pyo3::prelude::*;

use crate::error::lock_failed;
use crate::gil::{wait_for, wait_for_target, wait_to_glance};

/// Locks the connection; while another thread has it, waits without the GIL.
#[inline]
pub(crate) fn lock<'c>(py: Python<'_>, core: &'c Core) -> PyResult<Locked<'c>> {
    match core.try_lock() {
        Some(Ok(locked)) => Ok(locked),
        other => lock_unless(other, py, core),
    }
}

#[cold]
fn lock_unless<'c>(
    tried: Option<Result<Locked<'c>, LockError>>,
    py: Python<'_>,
    core: &'c Core,
) -> PyResult<Locked<'c>> {
    let locked = match tried {
        Some(locked) => locked,
        None => wait_for(py, core)?,
    };
    locked.map_err(lock_failed)
}

/// Locks the connection only to look at it, which is allowed in every callback of it.
pub(crate) fn glance<'c>(py: Python<'_>, core: &'c Core) -> PyResult<Glance<'c>> {
    let locked = match core.try_glance() {
        Some(locked) => locked,
        None => wait_to_glance(py, core)?,
    };
    locked.map_err(lock_failed)
}

/// Locks the target of a backup for a step of it; waits in the same way.
pub(crate) fn lock_target<'c>(py: Python<'_>, core: &'c Core) -> PyResult<BackupTarget<'c>> {
    let locked = match core.try_lock_as_backup_target() {
        Some(locked) => locked,
        None => wait_for_target(py, core)?,
    };
    locked.map_err(lock_failed)
}

/// Locks the connection, with the error as it is.
pub(crate) fn try_to_lock<'c>(
    py: Python<'_>,
    core: &'c Core,
) -> PyResult<Result<Locked<'c>, LockError>> {
    match core.try_lock() {
        Some(locked) => Ok(locked),
        None => wait_for(py, core),
    }
}
