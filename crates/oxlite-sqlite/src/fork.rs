//! What a child process does with what it has inherited: nothing.
//!
//! SQLite is not made for `fork`: a connection that two processes use corrupts its database, and
//! closing it in the child is use as well. So a connection remembers the generation of the process
//! that opened it, and in the child, whose generation is the next one, it is refused, and leaked.
//! Generations are counted from the first look at them on, whether or not a connection is ever opened:
//! what a process keeps in memory before its first connection is the parent's as well.
//! New connections work there, for which three more things are seen to, once there is SQLite:
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
//! - Two looks at the generation with a fork between them see different ones.
//! - In the child the generation is the next one before anything else is done.
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

/// The generation of this process, plus one; 0 as long as nobody has asked.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the one in which somebody asked first. (Two threads that
/// are the first at the same moment have each fork counted twice, which is as good.)
#[inline]
pub fn generation() -> u32 {
    match COUNT.load(Ordering::Relaxed) {
        0 => begin_to_count(),
        count => count - 1,
    }
}

/// Has forks counted from now on. Nobody has been told a generation before.
#[cold]
fn begin_to_count() -> u32 {
    #[cfg(unix)]
    {
        extern "C" fn in_child() {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: a function that stays as long as this library, which nobody unloads while Python
        // lives; the C library sees to it otherwise.
        if unsafe { libc::pthread_atfork(None, None, Some(in_child)) } != 0 {
            return 0; // without memory: the next who asks tries again
        }
    }
    // It may have been forked meanwhile, and count already.
    let before = COUNT.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
    before.map_or_else(|count| count - 1, |_| 0)
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

    use super::generation;
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

    /// Has locks and descriptors seen to at forks from now on. Called once, before the first connection
    /// is opened, with SQLite initialised.
    pub(crate) fn install() {
        // In a child what is registered first is called first: it is counted before all this.
        let _ = generation();
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
        file_locks::after_fork_in_child();
        leave_mutexes();
    }
}
