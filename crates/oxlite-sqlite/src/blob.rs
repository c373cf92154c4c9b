//! Incremental access to one blob or text value (<https://sqlite.org/c3ref/blob_open.html>).
//!
//! Invariant: `Blob::raw` is open for as long as its connection is; every method takes that
//! connection's guard.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use libsqlite3_sys as ffi;

use crate::connection::{Handle, Locked};
use crate::error::{Error, Result};

/// An open blob. Its size never changes. Closed when dropped; only [`close`](Self::close) tells of
/// what could not be committed.
pub struct Blob {
    raw: NonNull<ffi::sqlite3_blob>,
    handle: Arc<Handle>,
    length: usize,
    /// The code of the latest read or write. Closing gives it once more if that has failed.
    latest: AtomicI32,
    is_closed: bool,
}

// SAFETY: a blob handle has no thread affinity, and every use of it holds the lock of its
// connection.
unsafe impl Send for Blob {}
// SAFETY: as above; a shared reference allows nothing without that lock either.
unsafe impl Sync for Blob {}

impl Locked<'_> {
    /// Opens the value in `column` of the row `rowid` of `table`.
    pub fn open_blob(
        &self,
        schema: &CStr,
        table: &CStr,
        column: &CStr,
        rowid: i64,
        read_only: bool,
    ) -> Result<Blob> {
        let mut raw = ptr::null_mut();
        // SAFETY: open and locked; NUL-terminated names, a place for the handle.
        let code = unsafe {
            ffi::sqlite3_blob_open(
                self.database(),
                schema.as_ptr(),
                table.as_ptr(),
                column.as_ptr(),
                rowid,
                c_int::from(!read_only),
                &raw mut raw,
            )
        };
        self.check(code)?;
        let raw = NonNull::new(raw).ok_or_else(|| Error::from_code(ffi::SQLITE_NOMEM))?;
        self.adopt_blob(raw);
        Ok(Blob {
            raw,
            handle: Arc::clone(self.handle()),
            // SAFETY: just opened, under the lock of its connection.
            length: usize::try_from(unsafe { ffi::sqlite3_blob_bytes(raw.as_ptr()) }).unwrap_or(0),
            latest: AtomicI32::new(ffi::SQLITE_OK),
            is_closed: false,
        })
    }
}

impl Blob {
    /// The size in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn check_range(&self, locked: &Locked<'_>, offset: usize, length: usize) -> Result<()> {
        if !Arc::ptr_eq(&self.handle, locked.handle()) {
            return Err(Error::new(
                ffi::SQLITE_MISUSE,
                "the blob belongs to another connection",
            ));
        }
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(Error::from_code(ffi::SQLITE_RANGE)),
        }
    }

    /// Fills `buffer` from `offset`, and returns it as what it then is.
    pub fn read<'b>(
        &self,
        locked: &Locked<'_>,
        offset: usize,
        buffer: &'b mut [MaybeUninit<u8>],
    ) -> Result<&'b mut [u8]> {
        self.check_range(locked, offset, buffer.len())?;
        // SAFETY: open, locked, and the range lies inside the blob, whose size fits an int; SQLite
        // only writes to the buffer.
        let code = unsafe {
            ffi::sqlite3_blob_read(
                self.raw.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len() as c_int,
                offset as c_int,
            )
        };
        self.latest.store(code, Ordering::Relaxed);
        locked.check(code)?;
        // SAFETY: SQLITE_OK means that all of it has been written.
        Ok(unsafe { buffer.assume_init_mut() })
    }

    /// Writes `bytes` at `offset`.
    pub fn write(&self, locked: &Locked<'_>, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check_range(locked, offset, bytes.len())?;
        locked.callbacks().check_may_write()?; // it may have been opened before
        // SAFETY: open, locked, and the range lies inside the blob, whose size fits an int.
        let code = unsafe {
            ffi::sqlite3_blob_write(
                self.raw.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len() as c_int,
                offset as c_int,
            )
        };
        self.latest.store(code, Ordering::Relaxed);
        locked.check(code)
    }
}

impl Blob {
    /// Closes it. Where no transaction is open, that commits what was written; if it fails, for a lock
    /// or for the disk, nothing was.
    pub fn close(mut self) -> Result<()> {
        if self.handle.is_inherited() {
            return Ok(()); // dropping leaks it
        }
        self.is_closed = true;
        let closed = self.handle.close_blob(self.raw);
        let latest = *self.latest.get_mut();
        closed.or_else(|error| match error.primary_code() == latest & 0xff {
            true => Ok(()), // told already
            false => Err(error),
        })
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        if !self.is_closed && !self.handle.leak_inherited() {
            // Nobody is there to be told.
            let _ = self.handle.close_blob(self.raw);
        }
    }
}
