//! A database as bytes, and bytes as a database (<https://sqlite.org/c3ref/serialize.html>).

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;

use libsqlite3_sys as ffi;

use crate::connection::Locked;
use crate::error::{Error, Result};

/// A database as bytes, in memory of SQLite's own.
pub struct Serialized {
    /// None for an empty database.
    content: Option<NonNull<u8>>,
    length: usize,
}

// SAFETY: plain bytes that nobody else knows.
unsafe impl Send for Serialized {}

impl Deref for Serialized {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self.content {
            // SAFETY: `length` bytes, ours until dropped.
            Some(content) => unsafe { slice::from_raw_parts(content.as_ptr(), self.length) },
            None => &[],
        }
    }
}

impl Drop for Serialized {
    fn drop(&mut self) {
        if let Some(content) = self.content {
            // SAFETY: allocated by SQLite for us, freed once.
            unsafe { ffi::sqlite3_free(content.as_ptr().cast()) };
        }
    }
}

impl Locked<'_> {
    /// The content of the database `schema`, as its file would be.
    pub fn serialize(&self, schema: &CStr) -> Result<Serialized> {
        let mut length: ffi::sqlite3_int64 = 0;
        // SAFETY: open and locked; the result is ours to free.
        let content =
            unsafe { ffi::sqlite3_serialize(self.database(), schema.as_ptr(), &raw mut length, 0) };
        let content = NonNull::new(content);
        if content.is_none() {
            // SAFETY: open and locked.
            let code = unsafe { ffi::sqlite3_errcode(self.database()) };
            match code {
                // An unknown schema, or an empty database: nothing is set.
                ffi::SQLITE_OK if length == 0 => {}
                ffi::SQLITE_OK => return Err(Error::from_code(ffi::SQLITE_NOMEM)),
                // SAFETY: open and locked.
                _ => return Err(unsafe { Error::of(self.database(), code) }),
            }
        }
        Ok(Serialized {
            content,
            length: usize::try_from(length).unwrap_or(0),
        })
    }

    /// The length of the database `schema`, if it stands in memory in one piece, as one that was
    /// deserialized does: then [`copy_serialized`](Self::copy_serialized) copies it once, not twice.
    pub fn serialized_length(&self, schema: &CStr) -> Option<usize> {
        self.in_one_piece(schema).map(<[u8]>::len)
    }

    /// Copies the database `schema` to a buffer of its length; nothing if that is not its length (any
    /// more).
    pub fn copy_serialized<'b>(
        &self,
        schema: &CStr,
        buffer: &'b mut [MaybeUninit<u8>],
    ) -> Option<&'b mut [u8]> {
        let content = self.in_one_piece(schema)?;
        (content.len() == buffer.len()).then(|| buffer.write_copy_of_slice(content))
    }

    /// The bytes of a database that SQLite keeps in one piece; valid until it next changes, so they
    /// must not leave this module.
    fn in_one_piece(&self, schema: &CStr) -> Option<&[u8]> {
        let mut length: ffi::sqlite3_int64 = 0;
        // SAFETY: open and locked; with NOCOPY the result, if any, stays SQLite's.
        let content = unsafe {
            ffi::sqlite3_serialize(
                self.database(),
                schema.as_ptr(),
                &raw mut length,
                ffi::SQLITE_SERIALIZE_NOCOPY as _,
            )
        };
        // SAFETY: not NULL, so `length` bytes; the callers let them go before SQLite is called again.
        (!content.is_null()).then(|| unsafe { slice::from_raw_parts(content, length as usize) })
    }

    /// Replaces the database `schema` by an in-memory database with this content.
    ///
    /// Refused while a statement of ours is in the middle of its rows. SQLite refuses what reads the
    /// database, but not EXPLAIN, which would go on with a schema that has been freed.
    pub fn deserialize(&self, schema: &CStr, content: &[u8]) -> Result<()> {
        if self.is_in_use() {
            return Err(Error::new(
                ffi::SQLITE_BUSY,
                "a database cannot be replaced while a statement has rows to give or a blob is open",
            ));
        }
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
