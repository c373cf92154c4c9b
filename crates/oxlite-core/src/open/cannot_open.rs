//! Why a database file could not be opened: SQLite says only "unable to open database file".
//!
//! The file is examined by `stat` and `access`, never opened: closing a second descriptor of a live
//! database would drop this process's POSIX locks on it.

use std::ffi::CStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use oxlite_sqlite::codes;

use crate::text::harmless;

/// Says why a file could not be opened or is no database; SQLite names neither file nor reason.
pub(crate) fn explained(
    error: oxlite_sqlite::Error,
    name: &CStr,
    uri: bool,
) -> oxlite_sqlite::Error {
    match error.primary_code() {
        codes::SQLITE_CANTOPEN => error.with_context(&reason(name, uri)),
        codes::SQLITE_READONLY => error.with_context(&reason_for_writing(name, uri)),
        codes::SQLITE_IOERR if is_irregular(name, uri) => {
            error.with_context(&format!(": '{}' is no regular file", shown(name, uri)))
        }
        codes::SQLITE_NOTADB | codes::SQLITE_CORRUPT => {
            error.with_context(&format!(": '{}'", shown(name, uri)))
        }
        _ => error,
    }
}

/// The reason, as words to append to SQLite's message; empty if none can be seen.
fn reason(name: &CStr, uri: bool) -> String {
    let Some(path) = path_of(name, uri) else {
        return String::new();
    };
    let shown = in_words(&path);
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => format!(": '{shown}' is a directory"),
        Ok(_) if !may(&path, Wish::Read) => {
            format!(": no permission to read '{shown}'")
        }
        Ok(_) => format!(": '{shown}'"),
        // Whether the file exists cannot be known then.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            format!(": no permission to look for '{shown}'")
        }
        Err(_) => reason_of_parent(&path),
    }
}

/// Why a database could be opened and yet not be written; empty if no reason can be seen.
fn reason_for_writing(name: &CStr, uri: bool) -> String {
    let Some(path) = path_of(name, uri) else {
        return String::new();
    };
    let shown = in_words(&path);
    if !may(&path, Wish::Write) {
        return format!(": no permission to write '{shown}'");
    }
    match path.parent() {
        // WAL and rollback journals are files beside the database.
        Some(parent) if !parent.as_os_str().is_empty() && !may(parent, Wish::CreateIn) => {
            format!(": no permission to create files in '{}'", in_words(parent))
        }
        _ => format!(": '{shown}'"),
    }
}

/// Whether it is something else than a file, such as a FIFO.
fn is_irregular(name: &CStr, uri: bool) -> bool {
    let metadata = path_of(name, uri).and_then(|path| fs::metadata(path).ok());
    metadata.is_some_and(|metadata| !metadata.is_file())
}

/// The database's name as users know it: the path, where there is one.
fn shown(name: &CStr, uri: bool) -> String {
    path_of(name, uri).map_or_else(
        || harmless(&name.to_string_lossy()).into_owned(),
        |path| in_words(&path),
    )
}

fn reason_of_parent(path: &Path) -> String {
    let shown = in_words(path);
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match fs::metadata(parent) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!(": the directory '{}' does not exist", in_words(parent))
        }
        Err(error) => format!(": '{}': {error}", in_words(parent)),
        Ok(metadata) if !metadata.is_dir() => {
            format!(": '{}' is not a directory", in_words(parent))
        }
        Ok(_) if !may(parent, Wish::CreateIn) => format!(
            ": '{shown}' does not exist and there is no permission to create it in '{}'",
            in_words(parent)
        ),
        Ok(_) => format!(": '{shown}' does not exist"),
    }
}

/// A path in a message.
fn in_words(path: &Path) -> String {
    harmless(&path.to_string_lossy()).into_owned()
}

enum Wish {
    Read,
    Write,
    CreateIn,
}

#[cfg(unix)]
fn may(path: &Path, wish: Wish) -> bool {
    use rustix::fs::{Access, access};
    let mode = match wish {
        Wish::Read => Access::READ_OK,
        Wish::Write => Access::WRITE_OK,
        Wish::CreateIn => Access::WRITE_OK | Access::EXEC_OK,
    };
    access(path, mode).is_ok()
}

#[cfg(not(unix))]
fn may(path: &Path, wish: Wish) -> bool {
    match wish {
        Wish::Read => true,
        Wish::Write | Wish::CreateIn => {
            fs::metadata(path).is_ok_and(|metadata| !metadata.permissions().readonly())
        }
    }
}

/// The file behind a database name; none for in-memory and temporary databases and for URIs, whose
/// escapes SQLite decodes itself.
fn path_of(name: &CStr, uri: bool) -> Option<std::path::PathBuf> {
    let bytes = name.to_bytes();
    if bytes.is_empty() || bytes == b":memory:" {
        return None;
    }
    let mut text = name.to_str().ok()?;
    if uri && let Some(rest) = text.strip_prefix("file:") {
        text = rest.split(['?', '#']).next()?;
        text = text.strip_prefix("//localhost").unwrap_or(text);
        text = text.strip_prefix("//").unwrap_or(text);
        if text.contains('%') {
            return None;
        }
    }
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_behind_a_name() {
        let path = |name: &CStr, uri| path_of(name, uri).map(|path| path.display().to_string());
        assert_eq!(path(c":memory:", false), None);
        assert_eq!(path(c"", false), None);
        assert_eq!(path(c"app.db", true), Some("app.db".into()));
        assert_eq!(path(c"file:app.db?mode=ro", true), Some("app.db".into()));
        assert_eq!(
            path(c"file:app.db?mode=ro", false),
            Some("file:app.db?mode=ro".into())
        );
        assert_eq!(path(c"file:///a/b.db", true), Some("/a/b.db".into()));
        assert_eq!(path(c"file:a%20b.db", true), None);
    }

    #[test]
    fn a_missing_parent_and_a_directory_are_told_apart() {
        assert_eq!(
            reason(c"/no/such/place/app.db", false),
            ": the directory '/no/such/place' does not exist"
        );
        assert_eq!(reason(c"/", false), ": '/' is a directory");
        assert_eq!(
            reason(c"/no/\x1b[2J\n/app.db", false),
            ": the directory '/no/\\x1b[2J\\n' does not exist"
        );
    }
}
