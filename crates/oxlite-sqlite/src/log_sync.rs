//! A sync of the write-ahead log by SQLite's own file object, and its renewal; and who says that a commit is
//! about to be written to it.
//!
//! Not by a descriptor of ours: opening and closing one beside SQLite's takes nothing from SQLite here,
//! but SQLite's object also syncs the folder at its first sync, knows our VFS, and *is* the log that the
//! connection has open. For as long as it has, nobody removes the log: that needs an exclusive lock on
//! the database, and whoever is in WAL mode holds a shared one (`sqlite3WalClose`).
//!
//! Invariant: no call hands SQLite's methods more than [`MOST_BYTES`] at once.

use std::ffi::c_void;
use std::ptr;

use libsqlite3_sys as ffi;

use crate::callbacks::Callbacks;
use crate::connection::Locked;
use crate::error::{Error, Result};
use crate::gathered_frames::MOST_BYTES;
use crate::vfs;

/// How much of the log is written at once when it is renewed: as much as SQLite's largest page.
const PART_BYTES: usize = 64 * 1024;
const _: () = assert!(PART_BYTES <= MOST_BYTES);

/// The log that a connection has open. Used only while the connection is locked.
pub(crate) struct Log {
    file: *mut ffi::sqlite3_file,
    methods: &'static ffi::sqlite3_io_methods,
}

impl Locked<'_> {
    /// Syncs the log of the main database, which is open once the connection has read in WAL mode.
    /// Without one, and through a VFS that is not ours, it is misuse.
    pub fn sync_log(&self) -> Result<()> {
        self.log()?.sync()
    }

    /// Writes the log once more as it is, and syncs it: what a sync that failed has lost, though it can
    /// still be read, is on the disk then.
    ///
    /// Nobody else writes to the log meanwhile: it is done with the write lock, for which is waited as
    /// for any other. The connection must not be in a transaction.
    ///
    /// If it fails, the log reads as before, and how much of it is on the disk is as unknown as before.
    pub fn renew_log(&self) -> Result<()> {
        self.execute_batch("BEGIN IMMEDIATE")?;
        let outcome = self.log().and_then(|log| {
            log.write_again()?;
            log.sync()
        });
        // It has written nothing of its own.
        let ended = self.execute_batch("ROLLBACK");
        outcome.and(ended)
    }

    fn log(&self) -> Result<Log> {
        let log = self.callbacks().log_file();
        log.ok_or_else(|| {
            Error::new(
                ffi::SQLITE_MISUSE,
                "there is no write-ahead log to be synced",
            )
        })
    }
}

impl Callbacks {
    /// The log of the main database, if the connection has it open: once it has read in WAL mode.
    pub(crate) fn log_file(&self) -> Option<Log> {
        self.log_of(c"main".as_ptr())
    }

    /// The log of the database that SQLite knows by this name, if the connection has it open.
    fn log_of(&self, schema: *const std::ffi::c_char) -> Option<Log> {
        let database = self.database()?;
        let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
        // SAFETY: called while the connection is open and locked by this thread, with a name of SQLite's or a
        // constant; this operation takes a place for a pointer.
        let code = unsafe {
            ffi::sqlite3_file_control(
                database.as_ptr(),
                schema,
                ffi::SQLITE_FCNTL_JOURNAL_POINTER as _,
                (&raw mut file).cast::<c_void>(),
            )
        };
        if code != ffi::SQLITE_OK {
            return None;
        }
        // SAFETY: NULL, or a file of this open connection: the log, or else the rollback journal, whose
        // methods may be NULL.
        let methods = unsafe { vfs::methods_of_log(file) }?;
        Some(Log { file, methods })
    }

    /// Called from the commit hook, when the commit is to go on: its frames are gathered.
    pub(crate) fn gather_frames(&self) {
        let Some(database) = self.database() else {
            return;
        };
        // Temporary tables, of which the number is 1, have no log.
        for index in (0..).filter(|index| *index != 1) {
            // SAFETY: called while the connection is open and locked by this thread, by SQLite itself; what
            // follows asks and changes nothing of the connection.
            let schema = unsafe { ffi::sqlite3_db_name(database.as_ptr(), index) };
            if schema.is_null() {
                return;
            }
            let control = |argument: *mut c_void| {
                // SAFETY: as above; the name is SQLite's. The operation takes NULL, or a log of ours, which stays
                // open meanwhile, since nobody else uses the file then; it is unknown to the file of any other
                // VFS.
                unsafe {
                    ffi::sqlite3_file_control(
                        database.as_ptr(),
                        schema,
                        vfs::COMMIT_BEGINS,
                        argument,
                    )
                }
            };
            if control(ptr::null_mut()) == ffi::SQLITE_OK
                && let Some(log) = self.log_of(schema)
            {
                control(log.file.cast::<c_void>());
            }
        }
    }
}

impl Log {
    fn sync(&self) -> Result<()> {
        let sync = self.methods.xSync.ok_or_else(incomplete)?;
        // SAFETY: its own method, called with the connection locked, so that nobody closes the file; the
        // flag is what SQLite passes for a log.
        checked(unsafe { sync(self.file, ffi::SQLITE_SYNC_NORMAL as _) })
    }

    fn write_again(&self) -> Result<()> {
        let ffi::sqlite3_io_methods {
            xFileSize: Some(size_of),
            xRead: Some(read),
            xWrite: Some(write),
            ..
        } = self.methods
        else {
            return Err(incomplete());
        };
        let mut size: ffi::sqlite3_int64 = 0;
        // SAFETY: as in `sync`; it takes a place for a number.
        checked(unsafe { size_of(self.file, &raw mut size) })?;
        let mut part = vec![0_u8; PART_BYTES];
        let mut offset = 0;
        while offset < size {
            let length =
                usize::try_from(size - offset).map_or(PART_BYTES, |left| left.min(PART_BYTES));
            // No more than `PART_BYTES`.
            let amount = length as i32;
            let buffer = part.as_mut_ptr().cast::<c_void>();
            // SAFETY: as in `sync`; the buffer has room for `amount` bytes, which lie within the file.
            checked(unsafe { read(self.file, buffer, amount, offset) })?;
            // SAFETY: as above; the buffer holds `amount` bytes.
            checked(unsafe { write(self.file, buffer, amount, offset) })?;
            offset += i64::from(amount);
        }
        Ok(())
    }
}

fn incomplete() -> Error {
    Error::new(ffi::SQLITE_MISUSE, "a file of SQLite's has no such method")
}

fn checked(code: std::ffi::c_int) -> Result<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error::from_code(code)),
    }
}

#[cfg(all(test, unix))]
mod tests;
