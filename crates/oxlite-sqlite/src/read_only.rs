//! Connections that only read, and that no SQL can make write.
//!
//! `PRAGMA query_only` has SQLite refuse every statement that writes, also to temporary and attached
//! databases; but any statement may switch it off. So the authorizer refuses what would, before SQLite obeys:
//! a pragma acts while it is prepared.
//!
//! Opening the file for reading alone would not do: such a connection cannot recover a log, nor make the
//! shared memory beside it, so that a database in WAL mode that nobody else has open could not be read.
//!
//! A connection may also refuse to write for a time, as for one transaction. Setting an authorizer has SQLite
//! prepare every statement anew, so that is set for the length of a pragma alone.
//!
//! Invariants:
//! - Once a connection only reads, it does so until it is closed, whatever authorizer the user sets.
//! - For a time or for good, no SQL ends that. What `query_only` was before such a time it is after it.
//! - What writes without being a statement (a backup into it, [`Locked::deserialize`]) is refused as well, and
//!   the switch that has the database taken for empty.
//! - Nor does SQL change how it takes locks: an exclusive lock would outlive its transaction.
//! - A checkpoint changes no row, and may be asked for; but where the log is to stay as it is
//!   ([`Locked::leave_log`]) that is refused, too.

use std::cell::Cell;
use std::ffi::CStr;

use libsqlite3_sys as ffi;

use crate::callbacks::{Authorization, Callbacks};
use crate::connection::Locked;
use crate::error::{Error, Result};
use crate::value::ValueRef;

/// Whether a connection only reads, and whether it has just refused to do otherwise.
#[derive(Default)]
pub(crate) struct OnlyReading {
    is_so: Cell<bool>,
    /// For a time only; and whether `query_only` was set before.
    for_a_time: Cell<Option<bool>>,
    /// Whether no checkpoint is made either, which brings a log into the database.
    leaves_log: Cell<bool>,
    has_refused: Cell<bool>,
}

/// The pragmas that a connection which only reads does not obey, if they say anything else than this.
const KEPT: [(&str, &[&str]); 3] = [
    ("query_only", &["1", "on", "yes", "true"]),
    ("journal_mode", &[]),
    ("locking_mode", &["normal"]),
];

impl OnlyReading {
    pub(crate) fn is_so(&self) -> bool {
        self.is_so.get()
    }

    fn is_so_now(&self) -> bool {
        self.is_so.get() || self.for_a_time.get().is_some()
    }

    /// Whether a statement may not do what the authorizer is asked about.
    pub(crate) fn refuses(&self, asked: &Authorization<'_>) -> bool {
        if !self.is_so_now() || asked.action != ffi::SQLITE_PRAGMA {
            return false;
        }
        let is = |text: &CStr, word: &str| text.to_bytes().eq_ignore_ascii_case(word.as_bytes());
        let is_refused = match asked.arguments {
            [Some(name), _] if is(name, "wal_checkpoint") => self.leaves_log.get(),
            [Some(name), Some(value)] => KEPT.iter().any(|(kept, as_it_is)| {
                is(name, kept) && !as_it_is.iter().any(|word| is(value, word))
            }),
            _ => false,
        };
        if is_refused {
            self.has_refused.set(true);
        }
        is_refused
    }

    /// The error of a statement that has failed, if it was refused here.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match self.has_refused.take() && error.primary_code() == ffi::SQLITE_AUTH {
            true => refusal(": this pragma stays as it is on a connection that only reads"),
            false => error,
        }
    }
}

fn refusal(why: &str) -> Error {
    Error::from_code(ffi::SQLITE_READONLY).with_context(why)
}

impl Callbacks {
    /// Refuses to write over the database other than by a statement.
    pub(crate) fn check_may_write(&self) -> Result<()> {
        match self.only_reading.is_so_now() {
            true => Err(refusal(": this connection only reads")),
            false => Ok(()),
        }
    }

    /// Refuses to bring the log into the database, where it is to stay as it is.
    pub(crate) fn check_may_checkpoint(&self) -> Result<()> {
        match self.only_reading.leaves_log.get() {
            true => Err(refusal(": this connection only reads")),
            false => Ok(()),
        }
    }
}

impl Locked<'_> {
    /// From now on, until it is closed, the connection only reads.
    pub fn only_read(&self) -> Result<()> {
        self.set_query_only(true)?;
        self.callbacks().only_reading.is_so.set(true);
        self.ask_authorizer();
        Ok(())
    }

    /// Has the connection only read from now on, or ends that: `query_only` is what it was before again. No
    /// statement is prepared anew for it.
    pub fn refuse_writes(&self, refuses: bool) -> Result<()> {
        let only_reading = &self.callbacks().only_reading;
        match (only_reading.for_a_time.get(), refuses) {
            (None, true) => {
                let before = self.is_query_only()?;
                self.set_query_only(true)?;
                only_reading.for_a_time.set(Some(before));
            }
            (Some(before), false) => {
                self.set_query_only(before || only_reading.is_so())?;
                only_reading.for_a_time.set(None);
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets `PRAGMA query_only`.
    pub fn set_query_only(&self, is_set: bool) -> Result<()> {
        // The pragma acts while it is prepared. Running it would do no more than expire all other statements.
        let pragma = match is_set {
            true => "PRAGMA query_only = ON",
            false => "PRAGMA query_only = OFF",
        };
        self.silently(|| self.prepare(pragma, false)).map(drop)
    }

    fn is_query_only(&self) -> Result<bool> {
        self.silently(|| {
            let asked = self.prepare("PRAGMA query_only", false)?.statement;
            let mut asked = asked.ok_or_else(|| Error::from_code(ffi::SQLITE_INTERNAL))?;
            let _ = asked.step(self)?;
            let row = asked.row(self);
            let is_set = row.is_some_and(|row| matches!(row.get(0), Ok(ValueRef::Integer(1))));
            asked.finalize(self);
            Ok(is_set)
        })
    }

    /// Has the authorizer asked while a statement that may be a pragma is prepared, or begins to run, if the
    /// connection only reads for a time: until what this returns is dropped.
    pub(crate) fn watch_pragma(&self) -> Option<Watch<'_>> {
        let callbacks = self.callbacks();
        let is_watched = callbacks.only_reading.for_a_time.get().is_some()
            && !callbacks.only_reading.is_so()
            && !callbacks.is_silent.get();
        is_watched.then(|| {
            // Also where there is one: a pragma that was prepared before is prepared anew for it.
            self.set_asked(true);
            Watch(self)
        })
    }

    /// A connection that only reads makes no checkpoint from now on, whoever asks for one.
    pub fn leave_log(&self) {
        self.callbacks().only_reading.leaves_log.set(true);
    }
}

/// See [`Locked::watch_pragma`].
pub(crate) struct Watch<'l>(&'l Locked<'l>);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.ask_authorizer();
    }
}
