//! A database as bytes, and bytes as a database (<https://sqlite.org/c3ref/serialize.html>).

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;

use libsqlite3_sys as ffi;

use crate::backup::{Backup, BackupStep};
use crate::connection::{Connection, Locked, OpenFlags};
use crate::error::{Error, Result};
use crate::statement::Step;

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

impl Serialized {
    /// The numbers of the pages that are all zeros. One that is not the first may be so: SQLite never
    /// writes the page in which the lock bytes lie, and need not write one that is free.
    fn zero_pages(&self) -> impl Iterator<Item = usize> {
        let page_size = match self.get(16..18) {
            Some([0, 1]) => 65536,
            Some(&[high, low]) if high >= 2 => usize::from(high) << 8 | usize::from(low),
            _ => 512, // not even the first page could be read: the smallest there is
        };
        let pages = self.chunks(page_size).enumerate();
        pages.filter_map(|(number, page)| page.iter().all(|byte| *byte == 0).then_some(number))
    }

    fn has_zero_page(&self) -> bool {
        self.zero_pages().next().is_some()
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
        // SAFETY: open and locked; an unknown schema has no name, a database in memory an empty one.
        if unsafe { ffi::sqlite3_db_filename(self.database(), schema.as_ptr()) }.is_null() {
            return Err(Error::new(ffi::SQLITE_ERROR, "unknown database"));
        }
        let serialized = self.serialize_as_read(schema)?;
        // SQLite leaves a page that it cannot read zero, and says nothing.
        if serialized.has_zero_page() {
            return self.confirmed(schema, serialized);
        }
        Ok(serialized)
    }

    fn serialize_as_read(&self, schema: &CStr) -> Result<Serialized> {
        let mut length: ffi::sqlite3_int64 = 0;
        // SAFETY: open and locked; the result is ours to free. Executing nothing only clears the error
        // of the call before, which would be taken for that of this one.
        let content = unsafe {
            let nothing = c"".as_ptr();
            ffi::sqlite3_exec(
                self.database(),
                nothing,
                None,
                ptr::null_mut(),
                ptr::null_mut(),
            );
            ffi::sqlite3_serialize(self.database(), schema.as_ptr(), &raw mut length, 0)
        };
        let content = NonNull::new(content);
        if content.is_none() && length != 0 {
            // SAFETY: open and locked.
            return Err(match unsafe { ffi::sqlite3_errcode(self.database()) } {
                // The result could not be allocated.
                ffi::SQLITE_OK | ffi::SQLITE_ROW | ffi::SQLITE_DONE if length > 0 => {
                    Error::from_code(ffi::SQLITE_NOMEM)
                }
                ffi::SQLITE_OK | ffi::SQLITE_ROW | ffi::SQLITE_DONE => self.why_not_counted(schema),
                // SAFETY: open and locked.
                code => unsafe { Error::of(self.database(), code) },
            });
        }
        Ok(Serialized {
            content,
            length: usize::try_from(length).unwrap_or(0),
        })
    }

    /// Why SQLite does not know the number of pages, and has no error. Either an authorizer has had the
    /// question for it ignored, or there was no memory for the question, which is asked again here.
    fn why_not_counted(&self, schema: &CStr) -> Error {
        let quoted = schema.to_string_lossy().replace('"', "\"\"");
        let stepped = self
            .prepare(&format!("PRAGMA \"{quoted}\".page_count"), false)
            .and_then(|prepared| match prepared.statement {
                Some(mut statement) => statement.step(self),
                None => Ok(Step::Done),
            });
        match stepped {
            Ok(Step::Done) => Error::new(
                ffi::SQLITE_ERROR,
                "the authorizer has the number of pages ignored",
            ),
            Ok(Step::Row) => Error::from_code(ffi::SQLITE_NOMEM),
            Err(error) => error,
        }
    }

    /// Reads the database once more, in a way that tells of errors: by a backup into memory. If that
    /// has the same pages of zeros, `serialized` is right, and otherwise it may be at the next try. The
    /// copy itself is not returned: its header counts another change of the schema.
    fn confirmed(&self, schema: &CStr, serialized: Serialized) -> Result<Serialized> {
        let memory = Connection::open(c":memory:", OpenFlags::default())?;
        // Nobody else knows the connection.
        let unavailable = |_| Error::from_code(ffi::SQLITE_INTERNAL);
        let mut backup = Backup::begin(memory.lock().map_err(unavailable)?, self, schema)?;
        let target = memory.lock_as_backup_target().map_err(unavailable)?;
        let stepped = backup.step(&target, self, -1);
        let finished = backup.finish(&target, self);
        drop(target);
        match stepped? {
            BackupStep::Locked(code) => return Err(Error::from_code(code)),
            BackupStep::More | BackupStep::Done => finished?,
        }
        let copy = memory
            .lock()
            .map_err(unavailable)?
            .serialize_as_read(c"main")?;
        if serialized.zero_pages().eq(copy.zero_pages()) {
            return Ok(serialized);
        }
        let again = self.serialize_as_read(schema)?;
        match again.zero_pages().eq(copy.zero_pages()) {
            true => Ok(again),
            false => Err(Error::from_code(ffi::SQLITE_IOERR_READ)),
        }
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
    /// database, but not EXPLAIN, which would go on with a schema that has been freed. Refused also in
    /// the middle of a backup: SQLite refuses the source, and not the target, which the backup would go
    /// on writing to when it has been freed.
    pub fn deserialize(&self, schema: &CStr, content: &[u8]) -> Result<()> {
        self.callbacks().check_may_write()?;
        if self.is_in_use() || self.is_in_backup() {
            return Err(Error::new(
                ffi::SQLITE_BUSY,
                "a database cannot be replaced while a statement has rows to give, a blob is open or \
                 a backup is in progress",
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
