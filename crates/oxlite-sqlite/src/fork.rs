//! What a child process does with what it has inherited: nothing.
//!
//! SQLite is not made for `fork`: a connection that two processes use corrupts its database, and
//! closing it in the child is use as well. So a connection remembers the generation of the process
//! that opened it, and in the child, whose generation is the next one, it is refused, and leaked.
//! New connections work there, for which three more things are seen to:
//!
//! - Locks of SQLite and of this crate are taken before a fork and let go on both sides, or the child
//!   would wait for ever for one that another thread of the parent had at that moment.
//! - SQLite knows the locks of "this process" by device and inode and would count the parent's among
//!   them. So it is shown another device number in each generation: a file opened in the child is new
//!   to it. (Shared caches it knows by name and VFS: see `vfs.rs`.)
//! - The lock descriptors are closed, or the parent's locks would live as long as the child: see
//!   `file_locks.rs`.
//!
//! Invariants:
//! - The order in which the locks are taken is the one in which SQLite and this crate nest them.
//! - Nobody runs foreign code, or waits for more than the disk, while he has one of them.
//! - What runs in the child after the fork allocates nothing and waits for nobody.
//!
//! A child made by other means than `fork()` (`vfork`, `posix_spawn`, a raw `clone`) is not seen: it
//! has to go on to `exec`, which closes our descriptors. Only Unix has any of this, and only where
//! `file_locks.rs` does its work may a child open a file that its parent has open; elsewhere SQLite
//! takes the parent's locks for its own, as every SQLite does.

// Without forks, what is done about them has no caller.
#![cfg_attr(not(unix), allow(dead_code))]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the one that loaded this library, as far as they are
/// seen: none before the first connection is opened.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A mutex that is free in a child, whoever had it in the parent.
pub(crate) struct ForkMutex<T: 'static> {
    mutex: Mutex<T>,
    /// The guard of the thread that forks. Touched only by who has the mutex.
    held: UnsafeCell<Option<MutexGuard<'static, T>>>,
}

// SAFETY: `held` is protected by the mutex, as its note says; the guard in it is put there and taken
// out by one thread, the one that forks.
unsafe impl<T: Send> Sync for ForkMutex<T> {}

impl<T> ForkMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            mutex: Mutex::new(value),
            held: UnsafeCell::new(None),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the mutex until [`after_fork`](Self::after_fork).
    pub(crate) fn before_fork(&'static self) {
        let guard = self.lock();
        // SAFETY: this thread has the mutex.
        unsafe { *self.held.get() = Some(guard) };
    }

    /// Lets it go, after a look at what it protects.
    pub(crate) fn after_fork(&'static self, look: impl FnOnce(&mut T)) {
        // SAFETY: this thread, or in the child its copy, has had the mutex since `before_fork`.
        let guard = unsafe { (*self.held.get()).take() };
        if let Some(mut guard) = guard {
            look(&mut guard);
        }
    }
}

#[cfg(unix)]
pub(crate) use unix::install;

/// There is no fork.
#[cfg(not(unix))]
pub(crate) fn install() {}

#[cfg(unix)]
mod unix {
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use libsqlite3_sys as ffi;

    use super::GENERATION;
    use crate::{file_locks, vfs};

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

    /// Has forks seen to from now on. Called once, before the first connection is opened, with SQLite
    /// initialised.
    pub(crate) fn install() {
        for (place, id) in MUTEXES.iter().zip(STATIC_MUTEXES) {
            // SAFETY: the mutexes with these numbers exist for as long as the library; NULL in a
            // build without any.
            place.store(unsafe { ffi::sqlite3_mutex_alloc(id) }, Ordering::Relaxed);
        }
        // SAFETY: three functions that stay as long as this library, which nobody unloads while
        // Python lives; the C library sees to it otherwise. It fails only without memory: then it is
        // as with every other SQLite.
        unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    }

    extern "C" fn prepare() {
        vfs::before_fork_outer();
        for mutex in &MUTEXES {
            // SAFETY: a mutex of SQLite's, or NULL, which is allowed.
            unsafe { ffi::sqlite3_mutex_enter(mutex.load(Ordering::Relaxed)) };
        }
        vfs::before_fork_inner();
        file_locks::before_fork();
    }

    fn leave_mutexes() {
        vfs::after_fork_inner();
        for mutex in MUTEXES.iter().rev() {
            // SAFETY: entered by this thread, or in the child its copy, in `prepare`.
            unsafe { ffi::sqlite3_mutex_leave(mutex.load(Ordering::Relaxed)) };
        }
        vfs::after_fork_outer();
    }

    extern "C" fn in_parent() {
        file_locks::after_fork_in_parent();
        leave_mutexes();
    }

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        file_locks::after_fork_in_child();
        leave_mutexes();
    }
}
