//! A read mark that is kept for a moment after its last reader.
//!
//! In WAL mode a transaction that reads locks one of five bytes of the `-shm` file, its read mark, and lets it
//! go at its end: two system calls, which take twice as long as the rest of a short read. So the lock that a
//! read lets go is kept for about a millisecond, and the next read takes it over without a call. Why nobody
//! is harmed is argued in `docs/kept-read-marks.md`. Here is the word in which those meet who use a mark.
//!
//! Invariants:
//! - At most one mark of a file is kept. While it is, the lock descriptor of the file has a shared lock on its
//!   byte, of which SQLite knows nothing.
//! - SQLite's threads come one at a time, under the mutex of the file's shared memory. Beside them comes who
//!   [`lets a mark go`](Mark::let_go), and who [`forgets`](Mark::forget) one whose descriptor is closed. Which
//!   of them has it is decided by one exchange of the word.
//! - While one lets it go, the other waits: an unlocking that is under way would take away the lock that it
//!   asks for.

use std::num::NonZeroU64;

#[cfg(all(test, loom))]
use loom::sync::atomic;
#[cfg(not(all(test, loom)))]
use std::sync::atomic;

use atomic::{AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod model;

/// The bytes that may be kept: SQLite's `UNIX_SHM_BASE + WAL_READ_LOCK(0)` to the fifth.
pub(super) const FIRST_BYTE: i64 = 123;
pub(super) const LAST_BYTE: i64 = 127;

/// The bits with the byte's number, counted from 1; 0 if none is kept.
const BYTE: u64 = 0b111;
/// Somebody lets it go at this moment.
const LEAVING: u64 = 1 << 3;
/// It was used since the latest look.
const USED: u64 = 1 << 4;
/// It is looked after: only then anything may be kept.
const WATCHED: u64 = 1 << 5;
/// The latest lock on a mark was made since the latest look.
const FRESH: u64 = 1 << 6;
/// The rest counts the locks that were made while it was looked after.
const ONE_LOCK: u64 = 1 << 7;

/// What is kept of one file, for all threads of the process.
#[derive(Default)]
pub(super) struct Mark(AtomicU64);

impl Mark {
    /// Has what is kept be the caller's from now on, who has its lock then: its byte, if there is one that
    /// `is_wanted`. To be called before that byte is locked.
    #[inline]
    pub(super) fn take(&self, is_wanted: impl Fn(i64) -> bool) -> Option<i64> {
        let mut word = self.0.load(Ordering::Acquire);
        while word & BYTE != 0 && is_wanted(byte_in(word)) {
            if word & LEAVING != 0 {
                word = self.after_leaving();
                continue;
            }
            let taken = word & !BYTE;
            let exchanged =
                self.0
                    .compare_exchange_weak(word, taken, Ordering::AcqRel, Ordering::Acquire);
            match exchanged {
                Ok(_) => return Some(byte_in(word)),
                Err(now) => word = now,
            }
        }
        None
    }

    /// Keeps the caller's lock on `byte`, which a reader has used just now; `false` if it has to be let go as
    /// ever, since nobody looks after this file or another byte is kept.
    #[inline]
    pub(super) fn keep(&self, byte: i64) -> bool {
        self.put(byte, USED)
    }

    /// Keeps it as before, where nobody has read.
    pub(super) fn put_back(&self, byte: i64) -> bool {
        self.put(byte, 0)
    }

    #[inline]
    fn put(&self, byte: i64, used: u64) -> bool {
        let number = (byte - FIRST_BYTE + 1) as u64 & BYTE;
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & WATCHED == 0 || word & BYTE != 0 {
                return false;
            }
            let kept = word | number | used;
            let exchanged =
                self.0
                    .compare_exchange_weak(word, kept, Ordering::Release, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Has it looked after from now on. What was locked before is not what is counted from now on.
    pub(super) fn watch(&self) {
        self.0.fetch_add(ONE_LOCK, Ordering::Relaxed);
        self.0.fetch_or(WATCHED | USED, Ordering::Relaxed);
    }

    /// Whether somebody looks after it.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WATCHED != 0
    }

    /// Notes that a lock on a mark was made just now.
    #[inline]
    pub(super) fn note_lock(&self) {
        if self.is_watched() {
            self.0.fetch_or(FRESH, Ordering::Relaxed);
            self.0.fetch_add(ONE_LOCK, Ordering::Relaxed);
        }
    }

    /// Since which of the locks that were made the caller has the one that it has; `None` if that is not counted.
    /// As long as it is the same, so is the lock.
    #[inline]
    pub(super) fn lock_number(&self) -> Option<NonZeroU64> {
        let word = self.0.load(Ordering::Relaxed);
        NonZeroU64::new(word / ONE_LOCK).filter(|_| word & WATCHED != 0)
    }

    /// Whether one is kept that need not be moved yet: a mark in the WAL, so none of a database that is read
    /// alone, which is locked since the latest look.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & FRESH != 0 && word & BYTE != 0 && byte_in(word) != FIRST_BYTE
    }

    /// Whether it was used since the latest look. If not, nobody looks after it any more, and what is kept is
    /// let go, by `unlock`.
    pub(super) fn is_hot(&self, unlock: impl FnOnce(i64)) -> bool {
        let word = self.0.fetch_and(!(USED | FRESH), Ordering::AcqRel);
        let is_hot = word & USED != 0 && word & WATCHED != 0;
        if !is_hot {
            self.unwatch(unlock);
        }
        is_hot
    }

    /// Lets what is kept go, by `unlock`.
    pub(super) fn let_go(&self, unlock: impl FnOnce(i64)) {
        let mut word = self.0.load(Ordering::Acquire);
        while word & BYTE != 0 && word & LEAVING == 0 {
            let leaving = word | LEAVING;
            let exchanged =
                self.0
                    .compare_exchange(word, leaving, Ordering::AcqRel, Ordering::Acquire);
            match exchanged {
                Ok(_) => {
                    unlock(byte_in(word));
                    // Nobody but who has it changes these bits; a look may have taken others away.
                    self.0.fetch_and(!(BYTE | LEAVING), Ordering::Release);
                    return;
                }
                Err(now) => word = now,
            }
        }
    }

    /// Has nobody look after it any more; what is kept is let go.
    pub(super) fn unwatch(&self, unlock: impl FnOnce(i64)) {
        self.0.fetch_and(!WATCHED, Ordering::AcqRel);
        self.let_go(unlock);
    }

    /// Forgets what is kept, whose lock is gone or goes with its descriptor.
    pub(super) fn forget(&self) {
        self.0.fetch_and(!WATCHED, Ordering::AcqRel);
        let _ = self.take(|_| true);
    }

    /// Forgets everything, in a forked child, in which there is one thread. Nothing is written where nothing
    /// was: the child shares its parent's memory until it does.
    pub(super) fn clear(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Waits until it has been let go: for one system call of another thread.
    #[cold]
    fn after_leaving(&self) -> u64 {
        loop {
            #[cfg(all(test, loom))]
            loom::thread::yield_now();
            #[cfg(not(all(test, loom)))]
            std::thread::yield_now();
            let word = self.0.load(Ordering::Acquire);
            if word & LEAVING == 0 {
                return word;
            }
        }
    }
}

fn byte_in(word: u64) -> i64 {
    FIRST_BYTE - 1 + (word & BYTE) as i64
}
