//! The owner of a `sqlite3_session*`, which records what changes in a database
//! (<https://sqlite.org/sessionintro.html>).
//!
//! Invariants:
//! - `Session::raw` is a live session of `Session::handle` for as long as that connection is open.
//!   Closing the connection deletes it, as SQLite demands; then no guard exists and no method can be
//!   called.
//! - Every method takes the guard of *its own* connection; another one's is refused as misuse.
//! - A session is deleted only when nobody on its thread is inside SQLite (`connection.rs` sees to
//!   it), never under the hook that is recording a change.
//! - While a session reads the database itself, the connection cannot be locked by a function or a
//!   collation: using the same session once more would pull its tables away from under it.
//! - A connection with sessions has no preupdate hook of its own; see `preupdate.rs`.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use libsqlite3_sys as ffi;

use crate::connection::{Handle, Locked};
use crate::error::{Error, Result};

/// Records the changes of rows, from when a table is attached. Deleted when dropped; under a guard
/// of the same thread, or while another thread has one, as soon as that is gone.
pub struct Session {
    raw: NonNull<ffi::sqlite3_session>,
    handle: Arc<Handle>,
}

// SAFETY: a session has no thread affinity, and every use of it holds the lock of its connection.
unsafe impl Send for Session {}
// SAFETY: as above; a shared reference allows nothing without that lock either.
unsafe impl Sync for Session {}

impl Locked<'_> {
    /// Creates a session for the database `schema` (<https://sqlite.org/session/sqlite3session_create.html>).
    ///
    /// It is refused while the connection has a preupdate hook.
    pub fn create_session(&self, schema: &CStr) -> Result<Session> {
        if self.has_preupdate_hook() {
            return Err(Error::new(
                ffi::SQLITE_MISUSE,
                "a connection with a preupdate hook cannot have sessions, which need the hook for \
                 themselves: remove the hook first",
            ));
        }
        // SQLite takes any name, and such a session would never record anything.
        // SAFETY: open and locked; a NUL-terminated name.
        if unsafe { ffi::sqlite3_txn_state(self.database(), schema.as_ptr()) } < 0 {
            return Err(Error::new(
                ffi::SQLITE_ERROR,
                format!("unknown database {}", schema.to_string_lossy()),
            ));
        }
        let is_first = !self.has_sessions();
        let mut raw = ptr::null_mut();
        // SAFETY: open and locked; a NUL-terminated name, a place for the session. What SQLite has
        // as preupdate hook is nothing, or the sessions there are.
        let code =
            unsafe { ffi::sqlite3session_create(self.database(), schema.as_ptr(), &raw mut raw) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::from_code(code));
        };
        self.adopt_session(raw);
        if is_first {
            // A `DELETE` of all rows compiled without a hook does not look at the rows.
            self.expire_statements();
        }
        Ok(Session {
            raw,
            handle: Arc::clone(self.handle()),
        })
    }
}

impl Session {
    /// The session, if `locked` is the guard of its connection.
    fn raw(&self, locked: &Locked<'_>) -> Result<*mut ffi::sqlite3_session> {
        if Arc::ptr_eq(&self.handle, locked.handle()) {
            return Ok(self.raw.as_ptr());
        }
        Err(Error::new(
            ffi::SQLITE_MISUSE,
            "the session belongs to another connection",
        ))
    }

    /// Records the changes of `table` from now on, or of all tables
    /// (<https://sqlite.org/session/sqlite3session_attach.html>). The table need not exist yet; one
    /// without a declared primary key is never recorded, nor are rows whose key contains NULL.
    pub fn attach(&self, locked: &Locked<'_>, table: Option<&CStr>) -> Result<()> {
        let table = table.map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: a live session under its lock; NULL or a NUL-terminated name, which is copied.
        ok(unsafe { ffi::sqlite3session_attach(self.raw(locked)?, table) })
    }

    /// Whether changes are recorded.
    pub fn is_enabled(&self, locked: &Locked<'_>) -> Result<bool> {
        // SAFETY: a live session under its lock; -1 asks.
        Ok(unsafe { ffi::sqlite3session_enable(self.raw(locked)?, -1) } != 0)
    }

    /// Stops recording or goes on (<https://sqlite.org/session/sqlite3session_enable.html>).
    pub fn set_enabled(&self, locked: &Locked<'_>, enabled: bool) -> Result<()> {
        // SAFETY: a live session under its lock.
        unsafe { ffi::sqlite3session_enable(self.raw(locked)?, c_int::from(enabled)) };
        Ok(())
    }

    /// Whether every change is marked as indirect.
    pub fn is_indirect(&self, locked: &Locked<'_>) -> Result<bool> {
        // SAFETY: a live session under its lock; -1 asks.
        Ok(unsafe { ffi::sqlite3session_indirect(self.raw(locked)?, -1) } != 0)
    }

    /// Marks every change from now on as indirect, or only those that triggers and foreign key
    /// actions make (<https://sqlite.org/session/sqlite3session_indirect.html>).
    pub fn set_indirect(&self, locked: &Locked<'_>, indirect: bool) -> Result<()> {
        // SAFETY: a live session under its lock.
        unsafe { ffi::sqlite3session_indirect(self.raw(locked)?, c_int::from(indirect)) };
        Ok(())
    }

    /// Whether nothing has been recorded. Changes that cancel each other count as recorded, although
    /// the changeset is empty.
    pub fn is_empty(&self, locked: &Locked<'_>) -> Result<bool> {
        // SAFETY: a live session under its lock.
        Ok(unsafe { ffi::sqlite3session_isempty(self.raw(locked)?) } != 0)
    }

    /// The memory that the recorded changes take, in bytes.
    pub fn memory_used(&self, locked: &Locked<'_>) -> Result<i64> {
        // SAFETY: a live session under its lock.
        Ok(unsafe { ffi::sqlite3session_memory_used(self.raw(locked)?) })
    }

    /// What has changed since the tables were attached, one change for each row, with the old values
    /// (<https://sqlite.org/session/sqlite3session_changeset.html>). Recording goes on.
    ///
    /// It reads the rows as they are now, so it may wait for a lock or the disk.
    pub fn changeset(&self, locked: &Locked<'_>) -> Result<Vec<u8>> {
        self.generate(locked, ffi::sqlite3session_changeset)
    }

    /// Like [`changeset`](Self::changeset) without the old values that only serve to find conflicts
    /// (<https://sqlite.org/session/sqlite3session_patchset.html>).
    pub fn patchset(&self, locked: &Locked<'_>) -> Result<Vec<u8>> {
        self.generate(locked, ffi::sqlite3session_patchset)
    }

    fn generate(
        &self,
        locked: &Locked<'_>,
        generate: unsafe extern "C" fn(
            *mut ffi::sqlite3_session,
            *mut c_int,
            *mut *mut c_void,
        ) -> c_int,
    ) -> Result<Vec<u8>> {
        let raw = self.raw(locked)?;
        let mut length = 0;
        let mut bytes = ptr::null_mut();
        // SAFETY: a live session under its lock, with places for the result.
        let code = locked.undisturbed(|| unsafe { generate(raw, &raw mut length, &raw mut bytes) });
        // SAFETY: what the call has just left there for us.
        let bytes = unsafe { take_bytes(bytes, length) };
        ok(code).map(|()| bytes)
    }

    /// Records what would turn `table` of the database `from_schema` into the same table of the
    /// session's database (<https://sqlite.org/session/sqlite3session_diff.html>), and attaches it. A
    /// table without a primary key is passed over.
    pub fn diff(&self, locked: &Locked<'_>, from_schema: &CStr, table: &CStr) -> Result<()> {
        let raw = self.raw(locked)?;
        let mut message = ptr::null_mut();
        // SAFETY: a live session under its lock; NUL-terminated names, a place for the message.
        let code = locked.undisturbed(|| unsafe {
            ffi::sqlite3session_diff(raw, from_schema.as_ptr(), table.as_ptr(), &raw mut message)
        });
        if message.is_null() {
            return ok(code);
        }
        // SAFETY: NUL-terminated, allocated by SQLite for us, freed once below.
        let text = unsafe { CStr::from_ptr(message) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: as above; not used after this line.
        unsafe { ffi::sqlite3_free(message.cast()) };
        Err(Error::new(code, text))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.handle.leak_inherited() {
            self.handle.delete_session(self.raw);
        }
    }
}

/// The session functions leave no message with the connection.
fn ok(code: c_int) -> Result<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        ffi::SQLITE_SCHEMA => Err(Error::new(
            code,
            "the schema of a table of the session has changed",
        )),
        _ => Err(Error::from_code(code)),
    }
}

/// A copy of a buffer that SQLite has made for us; frees the buffer.
///
/// # Safety
///
/// `bytes` is NULL, or was allocated by SQLite, holds `length` bytes and is not used any more.
pub(crate) unsafe fn take_bytes(bytes: *mut c_void, length: c_int) -> Vec<u8> {
    if bytes.is_null() {
        return Vec::new();
    }
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: see this function's contract.
    let copy = unsafe { slice::from_raw_parts(bytes.cast::<u8>(), length) }.to_vec();
    // SAFETY: as above; not used after this line.
    unsafe { ffi::sqlite3_free(bytes) };
    copy
}
