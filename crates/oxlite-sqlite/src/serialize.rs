//! A database as bytes, and bytes as a database (<https://sqlite.org/c3ref/serialize.html>).

use std::ffi::CStr;
use std::ptr;
use std::slice;

use libsqlite3_sys as ffi;

use crate::connection::Locked;
use crate::error::{Error, Result};

impl Locked<'_> {
    /// The content of the database `schema`, as its file would be.
    pub fn serialize(&self, schema: &CStr) -> Result<Vec<u8>> {
        let mut length: ffi::sqlite3_int64 = 0;
        // An in-memory database can be had without SQLite making a copy first.
        // SAFETY: open and locked; with NOCOPY the result, if any, stays SQLite's.
        let borrowed = unsafe {
            ffi::sqlite3_serialize(
                self.database(),
                schema.as_ptr(),
                &raw mut length,
                ffi::SQLITE_SERIALIZE_NOCOPY as _,
            )
        };
        if !borrowed.is_null() {
            // SAFETY: `length` bytes that live until the database changes, which needs this guard.
            return Ok(unsafe { slice::from_raw_parts(borrowed, length as usize) }.to_vec());
        }
        // SAFETY: open and locked; the result is ours to free.
        let owned =
            unsafe { ffi::sqlite3_serialize(self.database(), schema.as_ptr(), &raw mut length, 0) };
        if owned.is_null() {
            // SAFETY: open and locked.
            let code = unsafe { ffi::sqlite3_errcode(self.database()) };
            return match code {
                // An unknown schema, or an empty database: nothing is set.
                ffi::SQLITE_OK if length == 0 => Ok(Vec::new()),
                ffi::SQLITE_OK => Err(Error::from_code(ffi::SQLITE_NOMEM)),
                // SAFETY: open and locked.
                _ => Err(unsafe { Error::of(self.database(), code) }),
            };
        }
        // SAFETY: `length` bytes, ours.
        let bytes = unsafe { slice::from_raw_parts(owned, length as usize) }.to_vec();
        // SAFETY: ours, not used after this line.
        unsafe { ffi::sqlite3_free(owned.cast()) };
        Ok(bytes)
    }

    /// Replaces the database `schema` by an in-memory database with this content.
    pub fn deserialize(&self, schema: &CStr, content: &[u8]) -> Result<()> {
        // SAFETY: any size is allowed; NULL when memory runs out, or for no bytes.
        let buffer = unsafe { ffi::sqlite3_malloc64(content.len() as u64) }.cast::<u8>();
        if buffer.is_null() && !content.is_empty() {
            return Err(Error::from_code(ffi::SQLITE_NOMEM));
        }
        if !content.is_empty() {
            // SAFETY: two separate buffers of that length.
            unsafe { ptr::copy_nonoverlapping(content.as_ptr(), buffer, content.len()) };
        }
        let flags = ffi::SQLITE_DESERIALIZE_FREEONCLOSE | ffi::SQLITE_DESERIALIZE_RESIZEABLE;
        // SAFETY: open and locked; SQLite owns the buffer from here on, also on failure.
        let code = unsafe {
            ffi::sqlite3_deserialize(
                self.database(),
                schema.as_ptr(),
                buffer,
                content.len() as i64,
                content.len() as i64,
                flags as _,
            )
        };
        self.check(code)
    }
}
