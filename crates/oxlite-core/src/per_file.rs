//! What is kept once for a file in this process, whatever the names under which it is opened.
//!
//! Invariants:
//! - It lives as long as somebody has it.
//! - It belongs to the process that made it; a forked child makes its own, and does not look at a mutex
//!   that another thread of the parent may have had.

use std::collections::HashMap;
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Later generations of forked processes than these have nothing.
const GENERATIONS: usize = 1024;

type Known<T> = OnceLock<Mutex<HashMap<FileIdentity, Weak<T>>>>;

/// One `T` for each file.
pub(crate) struct PerFile<T>([Known<T>; GENERATIONS]);

impl<T> PerFile<T> {
    pub(crate) const fn new() -> Self {
        Self([const { OnceLock::new() }; GENERATIONS])
    }

    /// That of the file at `path`, which exists; made if there is none yet.
    pub(crate) fn of(&self, path: &Path, make: impl FnOnce() -> T) -> std::io::Result<Arc<T>> {
        let identity = FileIdentity::of(path)?;
        let Some(known) = self.known() else {
            return Err(std::io::ErrorKind::Unsupported.into());
        };
        let known = known.get_or_init(Mutex::default);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
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
        let known = self.known()?.get()?.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        known.get(&identity).and_then(Weak::upgrade)
    }

    fn known(&self) -> Option<&Known<T>> {
        self.0.get(oxlite_sqlite::fork_generation() as usize)
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
