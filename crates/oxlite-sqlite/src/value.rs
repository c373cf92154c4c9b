//! The five storage classes of SQLite, borrowed and owned: what is bound to a parameter and what is read
//! from a column. Text is bytes here, since a database file may hold text that is not UTF-8.

use std::ptr::NonNull;
use std::slice;

use libsqlite3_sys as ffi;

use crate::error::{Error, Result};

/// One value in SQLite's own storage classes (<https://sqlite.org/datatype3.html>).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL NULL.
    Null,
    /// A signed 64-bit integer.
    Integer(i64),
    /// An IEEE 754 double.
    Real(f64),
    /// Text as stored, nominally UTF-8; SQLite does not check it.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

impl<'a> ValueRef<'a> {
    /// What `value` holds, or the error for having no memory to convert it to UTF-8.
    ///
    /// # Safety
    ///
    /// `value` is a protected value, used by this thread only, that lives unchanged during `'a`.
    #[inline(always)]
    pub(crate) unsafe fn from_c(value: NonNull<ffi::sqlite3_value>) -> Result<Self> {
        let raw = value.as_ptr();
        // SAFETY: see this function's contract. The type is asked first and the value read in it,
        // so nothing is converted but the encoding of a text, once; the length is asked after the
        // pointer, which is valid for it.
        unsafe {
            let kind = ffi::sqlite3_value_type(raw);
            let bytes = match kind {
                ffi::SQLITE_INTEGER => return Ok(Self::Integer(ffi::sqlite3_value_int64(raw))),
                ffi::SQLITE_FLOAT => return Ok(Self::Real(ffi::sqlite3_value_double(raw))),
                ffi::SQLITE_TEXT => ffi::sqlite3_value_text(raw),
                ffi::SQLITE_BLOB => ffi::sqlite3_value_blob(raw).cast(),
                _ => return Ok(Self::Null),
            };
            let length = usize::try_from(ffi::sqlite3_value_bytes(raw)).unwrap_or(0);
            if bytes.is_null() {
                // A blob without bytes is a NULL pointer by design.
                return match kind {
                    ffi::SQLITE_BLOB if length == 0 => Ok(Self::Blob(&[])),
                    _ => Err(Error::from_code(ffi::SQLITE_NOMEM)),
                };
            }
            let bytes = slice::from_raw_parts(bytes, length);
            Ok(if kind == ffi::SQLITE_TEXT {
                Self::Text(bytes)
            } else {
                Self::Blob(bytes)
            })
        }
    }
}

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl From<i64> for ValueRef<'_> {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

/// A value of its own, for what outlives the row or the argument that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A signed 64-bit integer.
    Integer(i64),
    /// An IEEE 754 double.
    Real(f64),
    /// Text as stored, nominally UTF-8.
    Text(Box<[u8]>),
    /// Bytes.
    Blob(Box<[u8]>),
}

impl Value {
    /// The value, borrowed.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Real(real) => ValueRef::Real(*real),
            Self::Text(text) => ValueRef::Text(text),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }
    }
}

impl From<ValueRef<'_>> for Value {
    #[inline]
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(integer) => Self::Integer(integer),
            ValueRef::Real(real) => Self::Real(real),
            ValueRef::Text(text) => Self::Text(text.into()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.into()),
        }
    }
}
