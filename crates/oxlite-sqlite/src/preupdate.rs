//! The hook that is told of each row before it changes, with its values
//! (<https://sqlite.org/c3ref/preupdate_blobwrite.html>).
//!
//! Invariants:
//! - Those of `callbacks.rs`, by whose rules the hook is kept and called.
//! - A [`Preupdate`] and its values live for the length of one call. The connection cannot be locked
//!   meanwhile, so the row they describe stays under SQLite's cursor.
//! - A connection never has both a hook and sessions: the session extension is itself such a hook,
//!   and takes the argument of the one before it for a session.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use libsqlite3_sys as ffi;

use crate::callbacks::{call, callbacks, registration, text};
use crate::connection::Locked;
use crate::error::{Error, Result};
use crate::value::ValueRef;

/// Told of each row that is about to change.
pub type PreupdateHook = dyn Fn(&Preupdate<'_>) + Send;

/// A row that is about to be inserted, updated or deleted.
pub struct Preupdate<'a> {
    /// `SQLITE_INSERT`, `SQLITE_UPDATE` or `SQLITE_DELETE`.
    pub operation: i32,
    /// The schema.
    pub database: &'a CStr,
    /// The table.
    pub table: &'a CStr,
    /// The row before an update or delete; without meaning for an insert or a `WITHOUT ROWID` table.
    pub old_rowid: i64,
    /// The row after an insert or update; without meaning for a delete or a `WITHOUT ROWID` table.
    pub new_rowid: i64,
    raw: NonNull<ffi::sqlite3>,
    /// Bound to the thread of the call.
    _not_send: PhantomData<*const ()>,
}

impl Preupdate<'_> {
    /// How many columns the row has.
    pub fn column_count(&self) -> usize {
        // SAFETY: the connection is calling the hook, so it is open, and locked by this thread.
        usize::try_from(unsafe { ffi::sqlite3_preupdate_count(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// How many triggers and foreign key actions the change comes through: 0 for one that a
    /// statement makes directly.
    pub fn depth(&self) -> usize {
        // SAFETY: as in `column_count`.
        usize::try_from(unsafe { ffi::sqlite3_preupdate_depth(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// The column that [`Blob::write`](crate::Blob::write) is about to change, if that is what
    /// happens. SQLite calls it a delete, since it does not know the new value.
    pub fn blob_column(&self) -> Option<usize> {
        // SAFETY: as in `column_count`.
        usize::try_from(unsafe { ffi::sqlite3_preupdate_blobwrite(self.raw.as_ptr()) }).ok()
    }

    /// The value of column `index` (from 0) before an update or delete.
    pub fn old_value(&self, index: usize) -> Result<ValueRef<'_>> {
        if self.operation == ffi::SQLITE_INSERT {
            let message = "a row that is inserted has no old values";
            return Err(Error::new(ffi::SQLITE_MISUSE, message));
        }
        self.value(index, ffi::sqlite3_preupdate_old)
    }

    /// The value of column `index` (from 0) after an insert or update.
    pub fn new_value(&self, index: usize) -> Result<ValueRef<'_>> {
        if self.operation == ffi::SQLITE_DELETE {
            let message = "a row that is deleted has no new values";
            return Err(Error::new(ffi::SQLITE_MISUSE, message));
        }
        self.value(index, ffi::sqlite3_preupdate_new)
    }

    fn value(
        &self,
        index: usize,
        read: unsafe extern "C" fn(*mut ffi::sqlite3, c_int, *mut *mut ffi::sqlite3_value) -> c_int,
    ) -> Result<ValueRef<'_>> {
        if index >= self.column_count() {
            return Err(Error::from_code(ffi::SQLITE_RANGE));
        }
        let mut value = ptr::null_mut();
        // SAFETY: as in `column_count`; the index is in range and the operation has such values.
        let code = unsafe { read(self.raw.as_ptr(), index as c_int, &raw mut value) };
        match NonNull::new(value) {
            // SAFETY: SQLite keeps the value until the hook returns, and whoever asks for it again
            // gets the same one, unchanged.
            Some(value) if code == ffi::SQLITE_OK => unsafe { ValueRef::from_c(value) },
            // SQLite reports success where it had no memory to fetch the row.
            _ if code == ffi::SQLITE_OK => Err(Error::from_code(ffi::SQLITE_NOMEM)),
            _ => Err(Error::from_code(code)),
        }
    }
}

impl Locked<'_> {
    /// Calls `hook` before each change of a row of an ordinary table; `None` removes it.
    ///
    /// It has nothing to answer, so a panic in it is forgotten. It is refused while the connection
    /// has sessions.
    pub fn set_preupdate_hook(&self, hook: Option<Box<PreupdateHook>>) -> Result<()> {
        if self.has_sessions() {
            if hook.is_none() {
                // There is none; SQLite's one place belongs to the sessions.
                return Ok(());
            }
            return Err(Error::new(
                ffi::SQLITE_MISUSE,
                "a connection with sessions cannot have a preupdate hook, which they need for \
                 themselves: drop the sessions first",
            ));
        }
        let (trampoline, argument) = registration!(self, hook.is_some(), call_preupdate);
        // SAFETY: open and locked by this guard; the argument is valid as `callbacks.rs` says, and
        // there is no session that would take it for one of its own.
        unsafe { ffi::sqlite3_preupdate_hook(self.database(), trampoline, argument) };
        // A `DELETE` of all rows compiled without a hook does not look at the rows.
        self.expire_statements();
        drop(self.callbacks().preupdate.replace(hook.map(Rc::from)));
        Ok(())
    }

    /// Whether there is a preupdate hook.
    pub(crate) fn has_preupdate_hook(&self) -> bool {
        self.callbacks().preupdate.borrow().is_some()
    }
}

unsafe extern "C" fn call_preupdate(
    argument: *mut c_void,
    database: *mut ffi::sqlite3,
    operation: c_int,
    schema: *const c_char,
    table: *const c_char,
    old_rowid: ffi::sqlite3_int64,
    new_rowid: ffi::sqlite3_int64,
) {
    // SAFETY: registered with this argument; the texts live for the length of this call.
    let (callbacks, schema, table) = unsafe { (callbacks(argument), text(schema), text(table)) };
    if let (Some(raw), Some(database), Some(table)) = (NonNull::new(database), schema, table) {
        let preupdate = Preupdate {
            operation,
            database,
            table,
            old_rowid,
            new_rowid,
            raw,
            _not_send: PhantomData,
        };
        call(callbacks, &callbacks.preupdate, (), |hook| hook(&preupdate));
    }
}
