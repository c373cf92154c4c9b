//! What one asks of a whole connection: its transaction, its latest changes, its files.
//!
//! Invariant: nothing here runs a statement or waits. But for `end_reads` and the row id that can be set,
//! nothing is changed.

use std::ffi::CStr;
use std::path::PathBuf;
use std::ptr::{self, NonNull};

use libsqlite3_sys as ffi;

use super::{Locked, TransactionState};

impl Locked<'_> {
    /// Whether a statement of ours is in the middle of its rows, or a blob is open.
    pub fn is_in_use(&self) -> bool {
        let statements = self.state.statements.borrow();
        // SAFETY: live statements of this open connection, whose lock we hold.
        let is_running = |raw: &NonNull<_>| unsafe { ffi::sqlite3_stmt_busy(raw.as_ptr()) != 0 };
        statements.iter().any(is_running) || !self.state.blobs.borrow().is_empty()
    }

    /// Whether no transaction is open (<https://sqlite.org/c3ref/get_autocommit.html>).
    #[inline]
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: open and locked by this guard.
        unsafe { ffi::sqlite3_get_autocommit(self.database()) != 0 }
    }

    /// How far the open transaction has gone, over all attached databases.
    #[inline]
    pub fn transaction_state(&self) -> TransactionState {
        // SAFETY: open and locked by this guard; NULL asks for the highest of all schemas.
        TransactionState::of(unsafe { ffi::sqlite3_txn_state(self.database(), ptr::null()) })
    }

    /// The row id of the latest insert (<https://sqlite.org/c3ref/last_insert_rowid.html>).
    pub fn last_insert_rowid(&self) -> i64 {
        // SAFETY: open and locked by this guard.
        unsafe { ffi::sqlite3_last_insert_rowid(self.database()) }
    }

    /// Sets what [`last_insert_rowid`](Self::last_insert_rowid) answers, until the next insert.
    pub fn set_last_insert_rowid(&self, rowid: i64) {
        // SAFETY: open and locked by this guard.
        unsafe { ffi::sqlite3_set_last_insert_rowid(self.database(), rowid) };
    }

    /// Whether the open transaction has violated foreign keys in a way that only its COMMIT reports
    /// (<https://sqlite.org/foreignkeys.html#fk_deferred>).
    pub fn has_unresolved_foreign_keys(&self) -> bool {
        let (mut unresolved, mut unused) = (0, 0);
        // SAFETY: open and locked by this guard; two places for two numbers.
        let code = unsafe {
            ffi::sqlite3_db_status(
                self.database(),
                ffi::SQLITE_DBSTATUS_DEFERRED_FKS,
                &raw mut unresolved,
                &raw mut unused,
                0,
            )
        };
        code == ffi::SQLITE_OK && unresolved != 0
    }

    /// Rows changed by the latest completed INSERT, UPDATE or DELETE.
    pub fn changes(&self) -> i64 {
        // SAFETY: open and locked by this guard.
        unsafe { ffi::sqlite3_changes64(self.database()) }
    }

    pub(crate) fn total_changes(&self) -> i64 {
        // SAFETY: open and locked by this guard.
        unsafe { ffi::sqlite3_total_changes64(self.database()) }
    }

    /// Stops the reads that are in the middle of their rows, whoever has them, so that they keep no
    /// snapshot; the next row of one is an error. Whether nothing is in the middle of its work then.
    ///
    /// With the guard go the rows that borrow it, and there must be no other one on this thread.
    pub fn end_reads(self) -> bool {
        self.state.depth.get() == 1 && self.callbacks().end_reads()
    }

    /// Whether what runs on the connection, if anything, has been interrupted
    /// (<https://sqlite.org/c3ref/interrupt.html>).
    pub fn is_interrupted(&self) -> bool {
        // SAFETY: open and locked by this guard.
        unsafe { ffi::sqlite3_is_interrupted(self.database()) != 0 }
    }

    /// Whether the main database cannot be written through this connection.
    pub fn is_read_only(&self) -> bool {
        // SAFETY: open and locked by this guard; "main" always exists.
        unsafe { ffi::sqlite3_db_readonly(self.database(), c"main".as_ptr()) == 1 }
    }

    /// The absolute path of the main database file; empty for in-memory and temporary databases.
    pub fn filename(&self) -> Vec<u8> {
        self.filename_of(c"main")
    }

    pub(crate) fn filename_of(&self, schema: &CStr) -> Vec<u8> {
        // SAFETY: open and locked by this guard; a name that is unknown gives NULL.
        let name = unsafe { ffi::sqlite3_db_filename(self.database(), schema.as_ptr()) };
        if name.is_null() {
            return Vec::new();
        }
        // SAFETY: NUL-terminated, owned by the connection; copied before the guard is released.
        unsafe { CStr::from_ptr(name) }.to_bytes().to_vec()
    }

    /// The main database's file; `None` if it is not in one.
    pub fn path(&self) -> Option<PathBuf> {
        self.path_of(c"main")
    }

    /// Whether it has databases attached.
    pub fn has_attached(&self) -> bool {
        // Behind main and temp.
        // SAFETY: open and locked by this guard; an index out of range gives NULL.
        unsafe { !ffi::sqlite3_db_name(self.database(), 2).is_null() }
    }

    /// The file of an attached database; `None` if it is not in one.
    pub fn path_of(&self, schema: &CStr) -> Option<PathBuf> {
        let name = self.filename_of(schema);
        if name.is_empty() {
            return None;
        }
        #[cfg(unix)]
        let name: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(name);
        #[cfg(not(unix))]
        let name: std::ffi::OsString = String::from_utf8(name).ok()?.into();
        Some(PathBuf::from(name))
    }
}
