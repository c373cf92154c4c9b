//! The frames of a commit, gathered and written to the log at once.
//!
//! SQLite writes each frame of a log in two parts: a header of 24 bytes, then the page. Here what a commit
//! appends is held back until its last frame, whose header says how large the database is then, and written
//! by that frame's own `xWrite`. Why nothing is lost by it: `docs/decisions/0051-gathered-frames.md`.
//!
//! Invariants:
//! - Something is held back only from the commit hook, when no hook of the user's has refused the commit, to
//!   the last frame of that commit; and only while the connection has the write lock of the log in shared
//!   memory. When that goes, what is held back is of a transaction that has failed, and is forgotten: rolling
//!   back calls no method of the log.
//! - Bytes are written in the order in which SQLite wrote them. Whatever is not the next header or its page
//!   goes straight through, after what is held back. So does all that follows the last frame: frames that are
//!   repeated to fill a sector, headers whose checksums are computed anew.
//! - What is held back is written before it is read, synced or cut off.
//! - After a write that has failed nothing more of that transaction is written, and nothing of what was not
//!   written is read.
//! - No call hands SQLite's methods more than [`MOST_BYTES`].

use std::ffi::c_int;
use std::ptr::NonNull;

use libsqlite3_sys as ffi;

/// SQLite itself hands its files a page at the most, and its VFS for Unix takes the length of a write
/// modulo 131,072 (`seekAndWriteFd`).
pub(crate) const MOST_BYTES: usize = 0x1_ffff;

const HEADER_BYTES: usize = 24;
/// In a frame's header: how many pages the database has after this frame, if it is the last of a commit.
const SIZE_AFTER_COMMIT: std::ops::Range<usize> = 4..8;

const SMALLEST_PAGE_BYTES: usize = 512;
const LARGEST_PAGE_BYTES: usize = 65_536;
const _: () = assert!(HEADER_BYTES + LARGEST_PAGE_BYTES <= MOST_BYTES);

/// How much memory a log keeps for its next commit.
const KEPT_BYTES: usize = 64 * 1024;

/// What is held back of one log.
#[derive(Default)]
pub(crate) struct GatheredFrames {
    state: State,
    /// Where the first of `bytes` goes.
    offset: i64,
    bytes: Vec<u8>,
}

#[derive(Default)]
enum State {
    /// All goes straight through, and nothing is held back.
    #[default]
    Idle,
    /// A commit is being written, and a header comes next.
    Header,
    /// Its page comes next; whether that is the last one.
    Page { is_last: bool },
    /// A write has failed, with this code; `bytes` are what was not written.
    Failed(c_int),
}

impl GatheredFrames {
    /// Whether what is written goes straight through.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// A commit begins.
    pub(crate) fn begin(&mut self) {
        self.state = State::Header;
    }

    /// The transaction is over. What is still held back of it is of no commit.
    pub(crate) fn forget(&mut self) {
        self.state = State::Idle;
        self.clear();
    }

    /// What SQLite writes; `straight` writes to the file.
    pub(crate) fn write(
        &mut self,
        bytes: &[u8],
        offset: i64,
        straight: impl Fn(&[u8], i64) -> c_int,
    ) -> c_int {
        let is_next = self.bytes.is_empty() || offset == self.offset + self.bytes.len() as i64;
        let may_follow = is_next && self.has_room(bytes);
        match self.state {
            State::Header if may_follow && bytes.len() == HEADER_BYTES => {
                let is_last = is_last_header(bytes);
                self.hold(bytes, offset);
                self.state = State::Page { is_last };
                ffi::SQLITE_OK
            }
            State::Page { is_last } if may_follow && is_page(bytes) => {
                self.hold(bytes, offset);
                self.state = State::Header;
                // The next frame is as long as this one.
                let is_full = !self.fits(HEADER_BYTES + bytes.len());
                if !is_last && !is_full {
                    return ffi::SQLITE_OK;
                }
                let code = self.flush(straight);
                if is_last && code == ffi::SQLITE_OK {
                    self.state = State::Idle;
                }
                code
            }
            _ => {
                // The last frame may come this way too, and what follows it must not be held back.
                let is_last = match self.state {
                    State::Page { is_last } => is_last,
                    State::Header => is_last_header(bytes),
                    State::Idle | State::Failed(_) => false,
                };
                let mut code = self.flush(&straight);
                if code == ffi::SQLITE_OK {
                    code = straight(bytes, offset);
                }
                if code == ffi::SQLITE_OK && is_last {
                    self.state = State::Idle;
                }
                code
            }
        }
    }

    /// Writes what is held back, if any of the file's first `end` bytes are among it.
    #[inline]
    pub(crate) fn flush_before(
        &mut self,
        end: i64,
        straight: impl Fn(&[u8], i64) -> c_int,
    ) -> c_int {
        match self.bytes.is_empty() || end <= self.offset {
            true => ffi::SQLITE_OK,
            false => self.flush(straight),
        }
    }

    fn flush(&mut self, straight: impl Fn(&[u8], i64) -> c_int) -> c_int {
        if let State::Failed(code) = self.state {
            return code;
        }
        if self.bytes.is_empty() {
            return ffi::SQLITE_OK;
        }
        let code = straight(&self.bytes, self.offset);
        if code == ffi::SQLITE_OK {
            self.clear();
            if !self.is_idle() {
                self.state = State::Header;
            }
        } else {
            self.state = State::Failed(code);
        }
        code
    }

    /// Whether there is room for these as well, also in memory: where there is none, nothing is gathered.
    fn has_room(&mut self, bytes: &[u8]) -> bool {
        self.fits(bytes.len()) && self.bytes.try_reserve(bytes.len()).is_ok()
    }

    fn fits(&self, more_bytes: usize) -> bool {
        self.bytes.len() + more_bytes <= MOST_BYTES
    }

    fn hold(&mut self, bytes: &[u8], offset: i64) {
        if self.bytes.is_empty() {
            self.offset = offset;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

fn is_last_header(bytes: &[u8]) -> bool {
    bytes.len() == HEADER_BYTES && bytes[SIZE_AFTER_COMMIT] != [0; 4]
}

fn is_page(bytes: &[u8]) -> bool {
    (SMALLEST_PAGE_BYTES..=LARGEST_PAGE_BYTES).contains(&bytes.len())
        && bytes.len().is_power_of_two()
}

/// What is known of a database's file while its connection writes to the log.
#[derive(Default)]
pub(crate) struct Writing {
    /// Whether it has the write lock in shared memory, and no other connection uses the file. With
    /// `locking_mode=EXCLUSIVE` it takes none there.
    has_write_lock: bool,
    /// Of the log that a commit is being written to. That file stays open for longer than the lock is held.
    frames: Option<NonNull<GatheredFrames>>,
}

impl Writing {
    /// The write lock has been taken.
    pub(crate) fn begins(&mut self) {
        self.has_write_lock = true;
    }

    /// Whether a commit may be gathered.
    pub(crate) fn may_gather(&self) -> bool {
        self.has_write_lock
    }

    /// A commit begins that is written to the log of `frames`.
    ///
    /// # Safety
    ///
    /// That log is this database's, and nobody else refers to what is gathered of it.
    pub(crate) unsafe fn commits(&mut self, mut frames: NonNull<GatheredFrames>) {
        if self.has_write_lock {
            // SAFETY: this function's contract.
            unsafe { frames.as_mut() }.begin();
            self.frames = Some(frames);
        }
    }

    /// The write lock is let go.
    pub(crate) fn ends(&mut self) {
        self.has_write_lock = false;
        if let Some(mut frames) = self.frames.take() {
            // SAFETY: SQLite closes a log when no transaction is open any more, so it is open; and who has
            // the write lock uses it alone.
            unsafe { frames.as_mut() }.forget();
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
