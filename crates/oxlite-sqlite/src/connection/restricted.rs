//! Guards of a connection that allow less than [`Locked`]: to look at it, or to go on with a backup.

use std::sync::Arc;

use libsqlite3_sys as ffi;

use super::handle::{Availability, Handle, State};
use super::{LockError, Locked, TransactionState};
use crate::mutex::ReentrantMutexGuard;

/// The right to look at what SQLite keeps in the connection itself, on this thread, until dropped.
/// Nothing that it allows calls back, takes a lock or changes anything.
pub struct Glance<'c>(Locked<'c>);

impl<'c> Glance<'c> {
    pub(super) fn new(
        handle: &'c Arc<Handle>,
        state: ReentrantMutexGuard<'c, State>,
    ) -> Result<Self, LockError> {
        let state = unless_closed(state)?;
        Ok(Self(Locked::counted(handle, state)))
    }

    /// Whether no transaction is open (<https://sqlite.org/c3ref/get_autocommit.html>).
    pub fn is_autocommit(&self) -> bool {
        self.0.is_autocommit()
    }

    /// Rows changed since the connection was opened.
    pub fn total_changes(&self) -> i64 {
        self.0.total_changes()
    }

    /// Whether it has a snapshot of its main database, or the write lock.
    pub(crate) fn is_reading(&self) -> bool {
        self.0.callbacks().main_transaction_state() != TransactionState::None
    }

    /// The text of a statement that is in the middle of its rows.
    pub(crate) fn running_statement(&self) -> Option<String> {
        let sql = self.0.callbacks().running_statement()?;
        Some(sql.to_string_lossy().into_owned())
    }
}

/// The right to go on with a backup, in its target, on this thread, until dropped.
pub struct BackupTarget<'c>(Locked<'c>);

impl<'c> BackupTarget<'c> {
    pub(super) fn new(
        handle: &'c Arc<Handle>,
        state: ReentrantMutexGuard<'c, State>,
    ) -> Result<Self, LockError> {
        let state = unless_closed(state)?;
        Locked::guarding(handle, state).map(Self)
    }

    #[inline]
    pub(crate) fn database(&self) -> *mut ffi::sqlite3 {
        self.0.database()
    }

    #[inline]
    pub(crate) fn handle(&self) -> &'c Arc<Handle> {
        self.0.handle
    }

    /// Gives the connection back to everybody, the backup being finished.
    pub(crate) fn release(&self) {
        self.0.count_backups(-1);
        self.0.state.availability.set(Availability::Open);
    }
}

/// The state of a connection that is there, also of a backup's target, which is open to these guards alone.
fn unless_closed(
    state: ReentrantMutexGuard<'_, State>,
) -> Result<ReentrantMutexGuard<'_, State>, LockError> {
    match state.availability.get() {
        Availability::Closed => Err(LockError::Closed),
        Availability::Open | Availability::BackupTarget => Ok(state),
    }
}
