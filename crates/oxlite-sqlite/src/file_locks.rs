//! File locks that survive a second SQLite in the process.
//!
//! A POSIX lock belongs to the process, and goes when *any* descriptor of the file is closed: also one
//! of the standard library's SQLite, or a plain `open()` and `close()`. After that another process
//! writes beside us. An open-file-description (OFD) lock goes with its own descriptor alone. So our
//! SQLite takes these, through its own table of system calls; to everybody else they are the same
//! locks.
//!
//! SQLite's unix layer counts the locks of one inode for all its descriptors together, and unlocks
//! through whichever is at hand. So the locks of one inode are all put on **one lock descriptor**,
//! opened when SQLite first locks the file and closed with the last descriptor of SQLite's that has
//! locked. It is none of SQLite's own: those are mapped into memory, and a mapping keeps the locks of
//! its descriptor alive, in a forked child for as long as that lives (tried).
//!
//! The mirror image: our closing a descriptor would drop the POSIX locks that *another* SQLite of this
//! process holds on the file. Where there are such locks the descriptor is parked instead: handed out
//! again when SQLite next opens the same file, or closed when SQLite next opens or closes any file and
//! the locks are gone, or at the latest when more than [`registry::PARKED_AT_MOST`] are parked. What
//! cannot be helped: a lock that the other takes between the look and the close.
//!
//! Invariants:
//! - [`table`] tells for each descriptor of SQLite's the lock descriptor of its inode. Every opening
//!   and closing of SQLite's goes through here, so it is exact though numbers are used again.
//! - Lock calls for one inode come one at a time: SQLite makes them under a mutex of the inode (of the
//!   `-shm` file's, for that). The inode's lock descriptor changes only within such a call, or when a
//!   descriptor is closed that SQLite no longer uses.
//! - What SQLite lets go may stay locked for a moment, if it is a read mark ([`kept`]).
//! - In a forked child the lock descriptors are closed at once (see `fork.rs`), else the locks of the
//!   parent would live as long as the child.
//!
//! This is for Linux on x86-64 and aarch64 (`ofd_locks`, which `build.rs` sets), with a kernel that has these
//! locks (3.15). Elsewhere SQLite keeps its POSIX locks, and nothing of the above is so.

use std::path::PathBuf;

use libsqlite3_sys as ffi;

use crate::error::Result;

/// Who else of this process has a file open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherUsers {
    /// The file.
    pub file: PathBuf,
    /// Its descriptors that are not our SQLite's; at least one.
    pub descriptors: Vec<i32>,
    /// The loaded libraries that seem to be a SQLite, by the names of the file and of its folder: who
    /// may have opened them. Ours is not among them; nor is one that contains SQLite under a name of
    /// its own.
    pub libraries: Vec<PathBuf>,
}

/// What a call for the lock of a read mark may be spared: `docs/kept-read-marks.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spared {
    /// A reader lets its mark go, which may be kept.
    LettingGo,
    /// A reader that begins would move a mark. It may be told that all are in use, if one is kept that was
    /// locked a moment ago: it then reads under that.
    Moving,
}

/// Looks for descriptors of this process that are open on `file` and are not our SQLite's. Nothing is
/// found where this is not supported.
///
/// It looks at every open descriptor of the process, with a system call for each: ask where there is
/// reason to.
pub fn other_users_of(file: PathBuf) -> Option<OtherUsers> {
    system::other_users_of(file)
}

/// Whether a connection of this or another process has the write lock of the WAL whose index is `index`; `None` where
/// this process has not locked the file, or it cannot be known.
pub fn is_write_locked(index: &std::path::Path) -> Option<bool> {
    system::is_write_locked(index, WAL_WRITE_LOCK)
}

/// Where the write lock is (<https://sqlite.org/walformat.html#wal_locks>).
const WAL_WRITE_LOCK: i64 = 120;

/// Has `vfs`, SQLite's own, take OFD locks, where there are any. If that cannot be found out now,
/// nothing is changed.
///
/// # Safety
///
/// `vfs` is registered with SQLite, and no file is open through it.
pub(crate) unsafe fn install(vfs: *mut ffi::sqlite3_vfs) -> Result<()> {
    // SAFETY: this function's contract.
    unsafe { system::install(vfs) }
}

/// Opens a lock file that is none of SQLite's, so that it is known to be ours and closed in a child.
#[cfg(ofd_locks)]
pub(crate) use registry::{close_known, open_known};

#[cfg(unix)]
pub(crate) use system::{after_fork_in_child, after_fork_in_parent, before_fork};
pub(crate) use system::{let_all_go, numbered, sparing};

/// Where it is supported.
#[cfg(ofd_locks)]
mod system {
    use std::ffi::CStr;

    use libsqlite3_sys as ffi;

    pub(crate) use super::calls::{
        after_fork_in_child, after_fork_in_parent, before_fork, numbered, sparing,
    };
    pub(crate) use super::keeper::let_all_go;
    pub(super) use super::registry::is_write_locked;
    pub(super) use super::users::other_users_of;
    use super::{calls, others};
    use crate::error::Result;

    /// See the outer function, whose contract this is too.
    pub(super) unsafe fn install(vfs: *mut ffi::sqlite3_vfs) -> Result<()> {
        // SAFETY: registered.
        let Some(set) = (unsafe { (*vfs).xSetSystemCall }) else {
            return Ok(());
        };
        let has_ofd_locks = others::has_ofd_locks()?;
        let replace = |name: &CStr, call: *const ()| {
            // SAFETY: SQLite calls what stands under this name with the arguments of the C function
            // of that name, which `call` takes; see each.
            unsafe {
                let call = std::mem::transmute::<*const (), ffi::sqlite3_syscall_ptr>(call);
                set(vfs, name.as_ptr(), call);
            }
        };
        // Files opened in a forked child are to be new to SQLite, whatever its locks are.
        replace(c"stat", calls::stat as *const ());
        replace(c"fstat", calls::fstat as *const ());
        if has_ofd_locks {
            replace(c"open", calls::open as *const ());
            replace(c"close", calls::close as *const ());
            replace(c"fcntl", calls::fcntl as *const ());
        }
        Ok(())
    }
}

#[cfg(ofd_locks)]
mod calls;
#[cfg(ofd_locks)]
mod inode;
#[cfg(ofd_locks)]
mod keeper;
#[cfg(ofd_locks)]
mod kept;
#[cfg(ofd_locks)]
mod others;
#[cfg(ofd_locks)]
mod registry;
#[cfg(ofd_locks)]
mod table;
#[cfg(ofd_locks)]
mod users;

/// Where it is not: SQLite keeps its POSIX locks.
#[cfg(not(ofd_locks))]
mod system {
    use std::path::PathBuf;

    use libsqlite3_sys as ffi;

    use crate::error::Result;

    pub(super) fn other_users_of(_file: PathBuf) -> Option<super::OtherUsers> {
        None
    }

    pub(super) unsafe fn install(_vfs: *mut ffi::sqlite3_vfs) -> Result<()> {
        Ok(())
    }

    /// Nothing is spared.
    pub(crate) fn sparing<T>(_spared: super::Spared, call: impl FnOnce() -> T) -> T {
        call()
    }

    /// No lock is known.
    pub(crate) fn numbered<T>(call: impl FnOnce() -> T) -> (T, Option<std::num::NonZeroU64>) {
        (call(), None)
    }

    pub(super) fn is_write_locked(_file: &std::path::Path, _byte: i64) -> Option<bool> {
        None
    }

    pub(crate) fn let_all_go() {}

    #[cfg(unix)]
    pub(crate) fn before_fork() {}

    #[cfg(unix)]
    pub(crate) fn after_fork_in_parent() {}

    #[cfg(unix)]
    pub(crate) fn after_fork_in_child() {}
}
