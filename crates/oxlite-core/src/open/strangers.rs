//! Files of strangers: how one is opened without a change to it, and what the errors of the profile for
//! them say.
//!
//! Invariants:
//! - No file is made, and none is rolled back: where a journal lies beside it that whoever may write
//!   would have to bring into it, the file is opened for reading only, and SQLite then refuses to read
//!   what is in the midst of a change.
//! - It is opened for writing otherwise, though nothing is written (`query_only`): a connection that is
//!   open for reading only leaves `-wal` and `-shm` beside a file in WAL mode, and forgets its CHECK
//!   constraints (`sqlite3AddCheckConstraint`).
//! - No statement changes that: a pragma that would turn the file to another journal mode is refused.
//! - What lies beside it and is no regular file is not opened: to open a FIFO may never end.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use oxlite_sqlite::{Connection, Error, OpenFlags, Result, codes};

use crate::file::beside;
use crate::text::harmless;

/// Opens it, as `flags` say but for what this module is about. `explain` says why SQLite could not.
pub(crate) fn open(
    name: &CStr,
    flags: OpenFlags,
    explain: impl Fn(Error) -> Error,
) -> Result<Connection> {
    let flags = OpenFlags {
        must_exist: true,
        ..flags
    };
    let connection = Connection::open(name, flags).map_err(&explain)?;
    // Nobody else knows it yet, so it is open and free.
    let seen = connection.lock().ok();
    let seen = seen.and_then(|locked| Some((locked.path()?, locked.is_read_only())));
    let Some((path, is_read_only)) = seen else {
        return Ok(connection);
    };
    let journal = beside::journal(&path);
    for file in [&journal, &beside::wal(&path), &beside::shared_memory(&path)] {
        refuse_irregular(file)?;
    }
    if is_read_only || !can_be_hot(&journal) {
        return Ok(connection);
    }
    drop(connection);
    let flags = OpenFlags {
        read_only: true,
        ..flags
    };
    Connection::open(name, flags).map_err(|error| match error.primary_code() {
        codes::SQLITE_PERM => rollback_refused(&path), // the URI says mode=rw
        _ => explain(error),
    })
}

/// What SQLite says in the first step on a file, with what to do.
pub(crate) fn explained(error: Error, path: Option<PathBuf>) -> Error {
    match (error.primary_code(), path) {
        (codes::SQLITE_READONLY, Some(path)) if error.code() == codes::SQLITE_READONLY_ROLLBACK => {
            rollback_refused(&path)
        }
        (codes::SQLITE_NOTADB, _) => error.with_context(
            "; it is encrypted, cut off, or of another program: ask whom it comes from",
        ),
        // It is open by now, so what cannot be opened is beside it.
        (codes::SQLITE_CANTOPEN | codes::SQLITE_READONLY, Some(_)) => error.with_context(
            "; a database in WAL mode is read with files beside it: copy it to a directory where \
             you may make files",
        ),
        _ => error,
    }
}

/// What to do about an error of a statement, as words to append; nothing if the profile is not why.
pub(crate) fn advice(error: &Error, is_read_only: bool) -> Option<String> {
    let message = error.message();
    if error.code() == codes::SQLITE_READONLY && !is_read_only {
        return Some(
            "; the profile untrusted writes nothing, unless pragmas={\"query_only\": False} says so"
                .into(),
        );
    }
    if message.contains("access to view") {
        return Some(
            "; the profile untrusted runs no view of the file: read its text in sqlite_schema, and \
             run what you trust of it as a query of your own"
                .into(),
        );
    }
    // What SQLite says of a view with a common table expression.
    if message.starts_with("no such table: main.") {
        return Some(
            "; if it is of a view: the profile untrusted runs no view of the file, whose text is in \
             sqlite_schema"
                .into(),
        );
    }
    if message.contains("unsafe use of") {
        return Some(
            "; the schema of the file calls it, which the profile untrusted does not let it: where \
             it is a function of yours, a connection without it can read the rest of the file"
                .into(),
        );
    }
    if error.primary_code() == codes::SQLITE_NOMEM {
        return Some(lowered("SQLITE_LIMIT_VDBE_OP"));
    }
    let (_, limit) = LIMITED.iter().find(|(said, _)| message.contains(said))?;
    Some(lowered(limit))
}

/// What to do where a limit is exceeded.
pub(crate) fn lowered(limit: &str) -> String {
    format!(
        "; the profile untrusted has lowered {limit}: where that much is meant, \
         connection.setlimit(sqlite3.{limit}, …) raises it"
    )
}

/// What SQLite says where a limit is exceeded.
const LIMITED: &[(&str, &str)] = &[
    ("string or blob too big", "SQLITE_LIMIT_LENGTH"),
    ("too many columns", "SQLITE_LIMIT_COLUMN"),
    (
        "too many terms in compound SELECT",
        "SQLITE_LIMIT_COMPOUND_SELECT",
    ),
    ("too many terms", "SQLITE_LIMIT_COLUMN"),
    ("Expression tree is too large", "SQLITE_LIMIT_EXPR_DEPTH"),
    (
        "too many arguments on function",
        "SQLITE_LIMIT_FUNCTION_ARG",
    ),
    ("too many attached databases", "SQLITE_LIMIT_ATTACHED"),
    (
        "LIKE or GLOB pattern too complex",
        "SQLITE_LIMIT_LIKE_PATTERN_LENGTH",
    ),
    ("too many SQL variables", "SQLITE_LIMIT_VARIABLE_NUMBER"),
    (
        "variable number must be between",
        "SQLITE_LIMIT_VARIABLE_NUMBER",
    ),
    (
        "too many levels of trigger recursion",
        "SQLITE_LIMIT_TRIGGER_DEPTH",
    ),
];

fn rollback_refused(path: &Path) -> Error {
    let shown = harmless(&path.to_string_lossy()).into_owned();
    Error::new(
        codes::SQLITE_READONLY_ROLLBACK,
        format!(
            "'{shown}' is in the midst of a change: '{shown}-journal' beside it would have to be \
             rolled back, which writes into the file; open a copy of both with another profile, if \
             the journal is of that file, or move the journal away"
        ),
    )
}

/// Refuses what SQLite would wait for, or not open without saying why.
fn refuse_irregular(file: &Path) -> Result<()> {
    match fs::symlink_metadata(file) {
        Ok(metadata) if !metadata.is_file() => {
            let shown = harmless(&file.to_string_lossy()).into_owned();
            Err(Error::new(
                codes::SQLITE_CANTOPEN,
                format!("unable to open database file: '{shown}' is no regular file; move it away"),
            ))
        }
        _ => Ok(()),
    }
}

/// Whether it is a journal that is to be rolled back, unless its writer is alive, which SQLite finds out.
/// Source: <https://sqlite.org/fileformat2.html#the_rollback_journal>, "zeroed header".
fn can_be_hot(journal: &Path) -> bool {
    let mut first = [0];
    match File::open(journal).and_then(|mut file| file.read(&mut first)) {
        Ok(0) => false,
        Ok(_) => first[0] != 0,
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}
