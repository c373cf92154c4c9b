//! What is kept once for a file in this process, whatever the names under which it is opened.
//!
//! Invariants:
//! - It lives as long as somebody has it.
//! - It belongs to the process that made it; a forked child makes its own.

use std::collections::HashMap;
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use oxlite_sqlite::Mutex;

use crate::process::per_process::PerProcess;

type Known<T> = Mutex<HashMap<FileIdentity, Weak<T>>>;

/// One `T` for each file.
pub(crate) struct PerFile<T>(PerProcess<Known<T>>);

impl<T> PerFile<T> {
    pub(crate) const fn new() -> Self {
        Self(PerProcess::new())
    }

    /// That of the file at `path`, which exists; made if there is none yet.
    pub(crate) fn of(&self, path: &Path, make: impl FnOnce() -> T) -> std::io::Result<Arc<T>> {
        let identity = FileIdentity::of(path)?;
        let Some(known) = self.0.get_or_make(Mutex::default) else {
            return Err(std::io::ErrorKind::Unsupported.into());
        };
        let mut known = known.lock();
        if let Some(known) = known.get(&identity).and_then(Weak::upgrade) {
            return Ok(known);
        }
        known.retain(|_, item| item.strong_count() > 0);
        let item = Arc::new(make());
        known.insert(identity, Arc::downgrade(&item));
        Ok(item)
    }

    /// That of the file at `path`, if somebody has it.
    pub(crate) fn find(&self, path: &Path) -> Option<Arc<T>> {
        let identity = FileIdentity::of(path).ok()?;
        let known = self.0.get()?.lock();
        known.get(&identity).and_then(Weak::upgrade)
    }
}

/// What makes a file one file, under all its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FileIdentity {
    #[cfg(unix)]
    Inode(u64, u64),
    #[cfg(not(unix))]
    Path(PathBuf),
}

impl FileIdentity {
    #[cfg(unix)]
    fn of(path: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let status = std::fs::metadata(path)?;
        Ok(Self::Inode(status.dev(), status.ino()))
    }

    #[cfg(not(unix))]
    fn of(path: &Path) -> std::io::Result<Self> {
        std::fs::canonicalize(path).map(Self::Path)
    }
}
