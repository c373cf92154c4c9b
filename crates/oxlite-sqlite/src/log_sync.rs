//! A sync of the write-ahead log by SQLite's own file object.
//!
//! Not by a descriptor of ours: opening and closing one beside SQLite's takes nothing from SQLite here,
//! but SQLite's object also syncs the folder at its first sync, knows our VFS, and *is* the log that the
//! connection has open. For as long as it has, nobody removes the log: that needs an exclusive lock on
//! the database, and whoever is in WAL mode holds a shared one (`sqlite3WalClose`).

use std::ffi::c_void;
use std::ptr;

use libsqlite3_sys as ffi;

use crate::connection::Locked;
use crate::error::{Error, Result};
use crate::vfs;

impl Locked<'_> {
    /// Syncs the log of the main database, which is open once the connection has read in WAL mode.
    /// Without one, and through a VFS that is not ours, it is misuse.
    pub fn sync_log(&self) -> Result<()> {
        let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
        // SAFETY: open and locked by this guard; this operation takes a place for a pointer.
        let code = unsafe {
            ffi::sqlite3_file_control(
                self.database(),
                c"main".as_ptr(),
                ffi::SQLITE_FCNTL_JOURNAL_POINTER as _,
                (&raw mut file).cast::<c_void>(),
            )
        };
        self.check(code)?;
        // SAFETY: NULL, or a file of this open connection: the log, or else the rollback journal, whose
        // methods may be NULL.
        let sync = unsafe { vfs::sync_of_log(file) }.ok_or_else(|| {
            Error::new(
                ffi::SQLITE_MISUSE,
                "there is no write-ahead log to be synced",
            )
        })?;
        // SAFETY: its own method, called with the connection locked, so that nobody closes the file; the
        // flag is what SQLite passes for a log.
        match unsafe { sync(file, ffi::SQLITE_SYNC_NORMAL as _) } {
            ffi::SQLITE_OK => Ok(()),
            code => Err(Error::from_code(code)),
        }
    }
}
