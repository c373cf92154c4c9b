//! The error of a failed SQLite call: extended result code, message, and where in the SQL it lies.

use std::ffi::CStr;
use std::fmt;

use libsqlite3_sys as ffi;

use crate::code::code_name;

/// What SQLite calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed SQLite call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: i32,
    message: String,
    sql_offset: Option<usize>,
    is_of_commit: bool,
}

impl Error {
    /// An error with a message of our own, for what SQLite itself never sees.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            sql_offset: None,
            is_of_commit: false,
        }
    }

    /// The error that a call on `db` has just returned as `code`.
    ///
    /// # Safety
    ///
    /// `db` is NULL or an open connection whose lock the caller holds.
    pub(crate) unsafe fn of(db: *mut ffi::sqlite3, code: i32) -> Self {
        if db.is_null() {
            return Self::from_code(code);
        }
        // SAFETY: `db` is open and locked (this function's contract).
        let extended = unsafe { ffi::sqlite3_extended_errcode(db) };
        // The connection remembers the error of its *latest* call; where that is another one
        // (SQLITE_MISUSE is not stored), the returned code is the truth.
        if extended & 0xff != code & 0xff {
            return Self::from_code(code);
        }
        // SAFETY: as above; the message is copied before the connection is used again.
        let message = unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(db)) };
        // SAFETY: as above.
        let offset = unsafe { ffi::sqlite3_error_offset(db) };
        Self {
            code: extended,
            message: message.to_string_lossy().into_owned(),
            sql_offset: usize::try_from(offset).ok(),
            is_of_commit: false,
        }
    }

    /// An error known by its code alone, with SQLite's generic English text.
    pub fn from_code(code: i32) -> Self {
        // SAFETY: any code is allowed; a NUL-terminated string constant comes back.
        let message = unsafe { CStr::from_ptr(ffi::sqlite3_errstr(code)) };
        Self::new(code, message.to_string_lossy())
    }

    /// The extended result code (<https://sqlite.org/rescode.html>).
    pub fn code(&self) -> i32 {
        self.code
    }

    /// The primary result code: the low eight bits of the extended one.
    pub fn primary_code(&self) -> i32 {
        self.code & 0xff
    }

    /// The extended code's name, for example `SQLITE_CONSTRAINT_UNIQUE`.
    pub fn name(&self) -> &'static str {
        code_name(self.code)
    }

    /// SQLite's message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The byte offset in the SQL text at which the error was found, when SQLite knows it.
    pub fn sql_offset(&self) -> Option<usize> {
        self.sql_offset
    }

    /// Whether it came up after a commit had begun, on a connection whose commits are watched
    /// ([`watch_commits`](crate::Locked::watch_commits)).
    pub fn is_of_commit(&self) -> bool {
        self.is_of_commit
    }

    #[must_use]
    pub(crate) fn of_commit(mut self, is_of_commit: bool) -> Self {
        self.is_of_commit = is_of_commit;
        self
    }

    /// The same error with more words: `context` is appended to the message.
    #[must_use]
    pub fn with_context(mut self, context: &str) -> Self {
        self.message.push_str(context);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.name())
    }
}

impl std::error::Error for Error {}
