//! By which numbers the system knows a file, whatever its name.

use std::io;
use std::path::Path;

/// By which numbers the system knows a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileNumbers {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileNumbers {
    /// Those of the file that has the name now; it is looked at, never opened.
    ///
    /// Its times are not asked for: Linux (6.13 and later) would give the next write a time of its own, to
    /// the nanosecond, and the sync after that had more to write; a commit took 50 us longer.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
        let status = statx(CWD, path, AtFlags::empty(), StatxFlags::INO)?;
        Ok(Self {
            device: makedev(status.stx_dev_major, status.stx_dev_minor),
            inode: status.stx_ino,
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
