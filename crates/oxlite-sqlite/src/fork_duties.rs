//! What is done at a fork, in order: the one list, in which each duty has its owner.
//!
//! A child inherits what it may not use (see `fork.rs`). For connections that it opens itself three things are
//! seen to, from [`prepare_for_forks`] on, or else from the first connection on:
//!
//! - Locks of SQLite and of this crate are taken before a fork and let go on both sides, or the child
//!   would wait for ever for one that another thread of the parent had at that moment.
//! - SQLite knows the locks of "this process" by device and inode and would count the parent's among
//!   them. So it is shown another device number in each generation: a file opened in the child is new
//!   to it. (Shared caches it knows by name and VFS: see `vfs.rs`.)
//! - The lock descriptors are closed, or the parent's locks would live as long as the child: see
//!   `file_locks.rs`.
//!
//! What Python does at a fork, and what looks at the generation instead, is in ARCHITECTURE.md.
//!
//! Invariants:
//! - The order in which the locks are taken is the one in which SQLite and this crate nest them.
//! - Nobody runs foreign code, or waits for more than the disk, while he has one of them. So a fork waits for a
//!   thread that is just opening the first connection, and the child finds all of what that makes, or nothing.
//! - What runs in the child after the fork allocates nothing and waits for nobody.

#[cfg(unix)]
pub(crate) use unix::install;
#[cfg(unix)]
pub use unix::prepare_for_forks;

/// There is no fork.
#[cfg(not(unix))]
pub fn prepare_for_forks() {}

/// There is no fork.
#[cfg(not(unix))]
pub(crate) fn install() {}

#[cfg(unix)]
mod unix {
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

    use libsqlite3_sys as ffi;

    use crate::{file_locks, fork, vfs};

    /// What one owner does at a fork.
    struct Duty {
        before: fn(),
        in_parent: fn(),
        in_child: fn(),
    }

    /// Before a fork from the first to the last, after it in the other direction.
    const DUTIES: [Duty; 4] = [
        // The mutex under which SQLite's are taken.
        Duty {
            before: vfs::before_fork_outer,
            in_parent: vfs::after_fork_outer,
            in_child: vfs::after_fork_outer,
        },
        // SQLite's own.
        Duty {
            before: enter_mutexes,
            in_parent: leave_mutexes,
            in_child: leave_mutexes,
        },
        // The mutex that is taken under SQLite's.
        Duty {
            before: vfs::before_fork_inner,
            in_parent: vfs::after_fork_inner,
            in_child: vfs::after_fork_inner,
        },
        // The innermost of all; in the child the lock descriptors are closed.
        Duty {
            before: file_locks::before_fork,
            in_parent: file_locks::after_fork_in_parent,
            in_child: file_locks::after_fork_in_child,
        },
    ];

    /// Whether they are done at forks.
    static ARE_REGISTERED: AtomicBool = AtomicBool::new(false);

    /// Has them done from now on, where SQLite's mutexes are known. Called once, before the first connection is
    /// opened, with SQLite initialised and the mutex of the first duty locked.
    pub(crate) fn install() {
        find_mutexes();
        prepare_for_forks();
    }

    /// Has all that is to be done at forks done from now on. Called while no other thread may fork: a child that
    /// was forked while another thread opened the first connection would find that half open. Without it, it is
    /// done once there is a connection.
    pub fn prepare_for_forks() {
        // In a child what is registered first is called first: it is counted before all this.
        let _ = fork::generation();
        if ARE_REGISTERED.swap(true, Ordering::Relaxed) {
            return;
        }
        // SAFETY: three functions that stay as long as this library, which nobody unloads while
        // Python lives; the C library sees to it otherwise. It fails only without memory: then it is
        // as with every other SQLite.
        let code = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        if code != 0 {
            ARE_REGISTERED.store(false, Ordering::Relaxed);
        }
    }

    extern "C" fn before() {
        for duty in &DUTIES {
            (duty.before)();
        }
    }

    extern "C" fn in_parent() {
        for duty in DUTIES.iter().rev() {
            (duty.in_parent)();
        }
    }

    extern "C" fn in_child() {
        for duty in DUTIES.iter().rev() {
            (duty.in_child)();
        }
    }

    /// SQLite's mutexes that are not a connection's or a file's, the outer ones first. Those of files
    /// need not be free in the child, to which no file of the parent's is known, and whose methods
    /// refuse them (see `vfs.rs`).
    const STATIC_MUTEXES: [i32; 7] = [
        ffi::SQLITE_MUTEX_STATIC_OPEN,
        ffi::SQLITE_MUTEX_STATIC_VFS1,
        ffi::SQLITE_MUTEX_STATIC_PRNG,
        ffi::SQLITE_MUTEX_STATIC_MAIN,
        ffi::SQLITE_MUTEX_STATIC_LRU,
        ffi::SQLITE_MUTEX_STATIC_PMEM,
        ffi::SQLITE_MUTEX_STATIC_MEM,
    ];

    static MUTEXES: [AtomicPtr<ffi::sqlite3_mutex>; STATIC_MUTEXES.len()] =
        [const { AtomicPtr::new(ptr::null_mut()) }; STATIC_MUTEXES.len()];

    fn find_mutexes() {
        for (place, id) in MUTEXES.iter().zip(STATIC_MUTEXES) {
            // SAFETY: the mutexes with these numbers exist for as long as the library; NULL in a
            // build without any.
            place.store(unsafe { ffi::sqlite3_mutex_alloc(id) }, Ordering::Relaxed);
        }
    }

    fn enter_mutexes() {
        for mutex in &MUTEXES {
            // SAFETY: a mutex of SQLite's, or NULL, which is allowed, before there is SQLite. They are found
            // under the mutex of the first duty, which this thread has.
            unsafe { ffi::sqlite3_mutex_enter(mutex.load(Ordering::Relaxed)) };
        }
    }

    fn leave_mutexes() {
        for mutex in MUTEXES.iter().rev() {
            // SAFETY: entered by this thread, or in the child its copy, in `enter_mutexes`.
            unsafe { ffi::sqlite3_mutex_leave(mutex.load(Ordering::Relaxed)) };
        }
    }
}
