//! What one sets of a whole connection beside its pragmas: limits, switches, extensions.

use std::ffi::{CStr, c_int};
use std::ptr;

use libsqlite3_sys as ffi;

use super::Locked;
use crate::error::{Error, Result};

impl Locked<'_> {
    /// The value of a run-time limit (<https://sqlite.org/c3ref/limit.html>); `None` for a category
    /// that does not exist.
    pub fn limit(&self, category: i32) -> Option<i32> {
        self.exchange_limit(category, -1)
    }

    /// Sets a run-time limit, at most to its compiled-in bound, and returns the one before; a
    /// negative value changes nothing.
    pub fn set_limit(&self, category: i32, value: i32) -> Option<i32> {
        self.exchange_limit(category, value)
    }

    fn exchange_limit(&self, category: i32, value: i32) -> Option<i32> {
        // SAFETY: open and locked by this guard; an unknown category gives -1.
        let before = unsafe { ffi::sqlite3_limit(self.database(), category, value) };
        (before >= 0).then_some(before)
    }

    /// Sets one of the boolean switches of `sqlite3_db_config`
    /// (<https://sqlite.org/c3ref/c_dbconfig_defensive.html>), or only asks with `None`; returns
    /// the value in force afterwards.
    pub fn config(&self, switch: i32, enabled: Option<bool>) -> Result<bool> {
        // All that take `(int, int*)`. The others take other arguments: passing these would be
        // undefined behaviour.
        let takes_booleans = (ffi::SQLITE_DBCONFIG_ENABLE_FKEY
            ..=ffi::SQLITE_DBCONFIG_ENABLE_COMMENTS)
            .contains(&switch);
        if !takes_booleans {
            return Err(Error::new(ffi::SQLITE_MISUSE, "unknown config option"));
        }
        if switch == ffi::SQLITE_DBCONFIG_RESET_DATABASE && enabled == Some(true) {
            self.callbacks().check_may_write()?;
        }
        let mut effective: c_int = -1;
        // SAFETY: open and locked by this guard; the switch takes an int and an int*.
        let code = unsafe {
            ffi::sqlite3_db_config(
                self.database(),
                switch,
                enabled.map_or(-1, c_int::from),
                &raw mut effective,
            )
        };
        self.check(code)?;
        Ok(effective == 1)
    }

    /// Lets extensions be loaded, by this interface and by the SQL function `load_extension()`
    /// (<https://sqlite.org/c3ref/enable_load_extension.html>), or not.
    pub fn enable_load_extension(&self, enable: bool) -> Result<()> {
        // SAFETY: open and locked by this guard.
        self.check(unsafe {
            ffi::sqlite3_enable_load_extension(self.database(), c_int::from(enable))
        })
    }

    /// Loads an extension (<https://sqlite.org/c3ref/load_extension.html>): foreign native code.
    /// The door must be open: [`codes::DBCONFIG_ENABLE_LOAD_EXTENSION`](crate::codes).
    pub fn load_extension(&self, path: &CStr, entry_point: Option<&CStr>) -> Result<()> {
        let mut message = ptr::null_mut();
        // SAFETY: open and locked by this guard; NUL-terminated names; the message is ours to free.
        let code = unsafe {
            ffi::sqlite3_load_extension(
                self.database(),
                path.as_ptr(),
                entry_point.map_or(ptr::null(), CStr::as_ptr),
                &raw mut message,
            )
        };
        if code == ffi::SQLITE_OK {
            return Ok(());
        }
        if message.is_null() {
            return self.check(code);
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
