//! Who else of this process uses a file: through which descriptors, and by which libraries that might be a SQLite.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::OtherUsers;
use super::others::{Identity, foreign_files};
use super::registry::REGISTRY;

/// See [`super::other_users_of`].
pub(super) fn other_users_of(file: PathBuf) -> Option<OtherUsers> {
    let files = {
        // None of SQLite's is being opened meanwhile.
        let _registry = REGISTRY.lock();
        foreign_files()
    };
    if files.is_empty() {
        return None; // as in a process whose descriptors are sockets and pipes
    }
    let path = CString::new(file.as_os_str().as_bytes()).ok()?;
    let wanted = Identity::at(libc::AT_FDCWD, &path, 0)?;
    let descriptors: Vec<_> = files
        .into_iter()
        .filter_map(|(file, descriptor)| (file == wanted).then_some(descriptor))
        .collect();
    if descriptors.is_empty() {
        return None;
    }
    Some(OtherUsers {
        file,
        descriptors,
        libraries: sqlite_libraries(),
    })
}

/// The loaded libraries that seem to be a SQLite, by the names of the file and of its folder. Ours is
/// not among them; nor is one that contains SQLite under a name of its own.
///
/// The loader could be asked in a tenth of the time (`dl_iterate_phdr`), but its lock may be taken for
/// ever in a child that was forked beside other threads (tried).
fn sqlite_libraries() -> Vec<PathBuf> {
    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    let mut libraries: Vec<_> = maps
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            line.iter()
                .position(|byte| *byte == b'/')
                .map(|at| &line[at..])
        })
        .filter(|path| is_sqlite_library(path))
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect();
    libraries.sort();
    libraries.dedup();
    libraries
}

fn is_sqlite_library(path: &[u8]) -> bool {
    // Not a mapped database or `-shm` file.
    if !path.ends_with(b".so") && !contains(path, b".so.") {
        return false;
    }
    // The folder counts too: `apsw/__init__.cpython-313-x86_64-linux-gnu.so`.
    let mut parts = path.rsplit(|byte| *byte == b'/').take(2);
    parts.any(|part| contains(part, b"sqlite") || contains(part, b"apsw"))
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|found| found == word)
}
