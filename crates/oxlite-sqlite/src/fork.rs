//! What a child process does with what it has inherited: nothing.
//!
//! SQLite is not made for `fork`: a connection that two processes use corrupts its database, and
//! closing it in the child is use as well. So a connection remembers the generation of the process
//! that opened it, and in the child, whose generation is the next one, it is refused, and leaked.
//! Generations are counted from the first look at them on, whether or not a connection is ever opened:
//! what a process keeps in memory before its first connection is the parent's as well.
//! New connections work there; `fork_duties` lists what is done at a fork for that.
//!
//! Invariants:
//! - Two looks at the generation with a fork between them see different ones.
//! - In the child the generation is the next one before anything else is done.
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
