//! What one connection does with the locks of the WAL's index, and what it is spared of them.
//!
//! The argument is that of `docs/kept-read-marks.md`. Here is when a read mark may be kept, when who begins to
//! read may be told that no mark can be moved, and how large a database is that nobody may write to.
//!
//! Invariants:
//! - Nothing is spared but what another process could have caused at that moment too: a mark that is locked for
//!   longer, or that is in use by a reader.
//! - A size is remembered as long as one lock on mark 0 is: without that no page is written to the database.

use std::ffi::c_int;
use std::num::NonZeroU64;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libsqlite3_sys as ffi;

use crate::file_locks::{self, Spared};

/// The number of the write lock among those of a WAL (`WAL_WRITE_LOCK`).
pub(crate) const WRITE_LOCK: c_int = 0;

/// The header (<https://sqlite.org/walformat.html#the_wal_index_header>), of which the last two words are a
/// checksum of the others.
const HEADER_WORDS: usize = 12;

/// So many reads must have found the same header before a read mark is kept, in this time. Where others commit
/// all the time, what is kept stands in their way, and where reads are rare it saves nothing: see
/// docs/kept-read-marks.md.
const CALM_READS: u32 = 16;
const CALM_WITHIN: Duration = Duration::from_millis(1);

/// The first of the locks that are read marks: `WAL_READ_LOCK(0)`. Before it come those for writing, for
/// checkpoints and for recovery.
const FIRST_READ_MARK: c_int = 3;

/// How `xShmLock` is asked for a lock that nobody else may have, and for its end; and for the shared one of a read.
pub(crate) const LOCK: c_int = ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_EXCLUSIVE;
pub(crate) const UNLOCK: c_int = ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_EXCLUSIVE;
const START_OF_READ: c_int = ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_SHARED;
const END_OF_READ: c_int = ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_SHARED;

/// The locks of the index that one connection has, and what it has read under them.
pub(crate) struct IndexLocks {
    reads: Reads,
    /// Which of the locks that come before the read marks it has, a bit for each; but the write lock.
    held: c_int,
    /// The number of its lock on mark 0, if it has that, and the number is known.
    lock_number: Option<NonZeroU64>,
    /// How many bytes the database has as long as that lock is the same.
    size: Option<(NonZeroU64, ffi::sqlite3_int64)>,
}

impl IndexLocks {
    pub(crate) const NONE: Self = Self {
        reads: Reads::NONE,
        held: 0,
        lock_number: None,
        size: None,
    };

    /// The index's header is mapped there, as long as the index is.
    pub(crate) fn header_is_at(&mut self, header: *const std::ffi::c_void) {
        self.reads.header = header.cast();
    }

    /// Locks, or lets go, by `call`: `xShmLock` with these arguments.
    ///
    /// # Safety
    ///
    /// The header is mapped, if there is one.
    #[inline]
    pub(crate) unsafe fn lock(
        &mut self,
        offset: c_int,
        count: c_int,
        flags: c_int,
        call: impl FnOnce() -> c_int,
    ) -> c_int {
        if offset == FIRST_READ_MARK {
            self.lock_number = None;
        }
        match (offset, flags) {
            (FIRST_READ_MARK, START_OF_READ) => {
                let (code, number) = file_locks::numbered(call);
                self.lock_number = number.filter(|_| code == ffi::SQLITE_OK);
                code
            }
            // SAFETY: this function's contract.
            (FIRST_READ_MARK.., END_OF_READ) if unsafe { self.reads.are_calm() } => {
                file_locks::sparing(Spared::LettingGo, call)
            }
            (FIRST_READ_MARK.., LOCK) if count == 1 && self.copies_nothing() => {
                file_locks::sparing(Spared::Moving, call)
            }
            (WRITE_LOCK, LOCK) => {
                let code = call();
                if code == ffi::SQLITE_OK {
                    // SAFETY: this function's contract.
                    unsafe { self.reads.writing_begins() };
                }
                code
            }
            (WRITE_LOCK, UNLOCK) => {
                // SAFETY: this function's contract.
                unsafe { self.reads.writing_ends() };
                call()
            }
            (1..FIRST_READ_MARK, LOCK | UNLOCK) => {
                let code = call();
                if code == ffi::SQLITE_OK {
                    self.note_locks(offset, count, flags == LOCK);
                }
                code
            }
            _ => call(),
        }
    }

    /// The size of the database, which `ask` finds out. SQLite asks at the beginning of each read as long as the
    /// WAL is empty.
    pub(crate) fn size(
        &mut self,
        ask: impl FnOnce() -> Result<ffi::sqlite3_int64, c_int>,
    ) -> Result<ffi::sqlite3_int64, c_int> {
        match (self.lock_number, self.size) {
            (Some(now), Some((then, known))) if now == then => Ok(known),
            (now, _) => {
                let size = ask()?;
                self.size = now.map(|number| (number, size));
                Ok(size)
            }
        }
    }

    /// The connection has these locks from now on, or no more.
    fn note_locks(&mut self, first: c_int, count: c_int, has: bool) {
        let these = ((1 << count) - 1) << first;
        match has {
            true => self.held |= these,
            false => self.held &= !these,
        }
    }

    /// Whether the connection neither copies the WAL back nor recovers it. Then who asks for one mark alone
    /// begins to read.
    fn copies_nothing(&self) -> bool {
        self.held == 0
    }
}

/// Whether reads follow one another fast, with nothing committed between them.
struct Reads {
    /// The header of the WAL's index in shared memory; NULL as long as that is not mapped.
    header: *const [AtomicU32; HEADER_WORDS],
    /// The checksum of the header at the end of the latest read.
    checksum: [u32; 2],
    /// How many reads have ended with this one since the clock was looked at.
    count: u32,
    /// When that was.
    since: Option<Instant>,
    /// Whether those before that were fast.
    are_fast: bool,
    /// Whether this connection has the write lock, and nothing was committed between its latest read and that.
    is_own_write: bool,
}

impl Reads {
    const NONE: Self = Self {
        header: ptr::null(),
        checksum: [0; 2],
        count: 0,
        since: None,
        are_fast: false,
        is_own_write: false,
    };

    /// The checksum of the header in shared memory now, if that is mapped.
    ///
    /// # Safety
    ///
    /// The header is mapped, if there is one.
    #[inline]
    unsafe fn checksum_now(&self) -> Option<[u32; 2]> {
        // SAFETY: this function's contract. Other processes change it at any time.
        let [.., first, second] = unsafe { self.header.as_ref() }?;
        Some([first, second].map(|word| word.load(Ordering::Relaxed)))
    }

    /// The connection has the write lock from now on.
    ///
    /// # Safety
    ///
    /// As for [`Self::checksum_now`].
    #[inline]
    unsafe fn writing_begins(&mut self) {
        // SAFETY: this function's contract.
        self.is_own_write = unsafe { self.checksum_now() } == Some(self.checksum);
    }

    /// The connection still has the write lock, for the last moment. What has changed meanwhile it has committed
    /// itself, which is as calm as if nothing was.
    ///
    /// # Safety
    ///
    /// As for [`Self::checksum_now`].
    #[inline]
    unsafe fn writing_ends(&mut self) {
        if std::mem::take(&mut self.is_own_write)
            // SAFETY: this function's contract.
            && let Some(checksum) = unsafe { self.checksum_now() }
        {
            self.checksum = checksum;
        }
    }

    /// Notes the end of a read; whether it is one of many that came fast, and between which nothing was committed.
    ///
    /// # Safety
    ///
    /// The header is mapped, if there is one.
    #[inline]
    unsafe fn are_calm(&mut self) -> bool {
        // SAFETY: this function's contract.
        let Some(checksum) = (unsafe { self.checksum_now() }) else {
            return false;
        };
        if checksum != self.checksum {
            self.checksum = checksum;
            (self.count, self.since, self.are_fast) = (0, None, false);
            return false;
        }
        self.count += 1;
        if self.count >= CALM_READS {
            let now = Instant::now();
            let took = self.since.map(|since| now.duration_since(since));
            self.are_fast = took.is_some_and(|took| took < CALM_WITHIN);
            (self.count, self.since) = (0, Some(now));
        }
        self.are_fast
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_asked_for_once_for_each_lock() {
        let mut index = IndexLocks::NONE;
        let number = |number| NonZeroU64::new(number);
        let mut asked = 0;
        let mut sizes = Vec::new();
        for lock_number in [
            number(1),
            number(1),
            number(2),
            None,
            None,
            number(2),
            number(2),
        ] {
            index.lock_number = lock_number;
            sizes.push(index.size(|| {
                asked += 1;
                Ok(asked)
            }));
        }
        assert_eq!(sizes, [1, 1, 2, 3, 4, 5, 5].map(Ok));
        assert_eq!(index.size(|| Err(ffi::SQLITE_IOERR_FSTAT)), Ok(5));
        index.lock_number = None;
        let failed = index.size(|| Err(ffi::SQLITE_IOERR_FSTAT));
        assert_eq!(failed, Err(ffi::SQLITE_IOERR_FSTAT));
    }
}
