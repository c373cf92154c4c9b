//! One file that our SQLite has locked, and its lock descriptor.
//!
//! Invariants:
//! - The lock descriptor is open for as long as there are users. Normally it is none of them, but one
//!   that was opened for the locks alone.
//! - It is replaced only by one that has the same locks already.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr;

use super::table::{self, Entry};

/// A file that is or was locked.
pub(super) struct Inode {
    pub(super) identity: Identity,
    /// The lock descriptor.
    pub(super) canonical: c_int,
    /// Whether that cannot take write locks. Only then its locks are known here.
    pub(super) is_read_only: bool,
    pub(super) read_locks: Vec<Range>,
    /// SQLite's open descriptors of the file that have locked.
    pub(super) users: Vec<c_int>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: libc::dev_t,
    inode: libc::ino_t,
}

impl Identity {
    pub(super) fn of(descriptor: c_int) -> Option<Self> {
        let mut status = MaybeUninit::uninit();
        // SAFETY: any number is allowed; the status is filled in where it succeeds.
        let status = unsafe {
            if libc::fstat(descriptor, status.as_mut_ptr()) != 0 {
                return None;
            }
            status.assume_init()
        };
        Some(Self::in_status(&status))
    }

    /// That of the file which has the name now; it is looked at, never opened.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let status = std::fs::metadata(path).ok()?;
        Some(Self {
            device: status.dev(),
            inode: status.ino(),
        })
    }

    pub(super) fn in_status(status: &libc::stat) -> Self {
        Self {
            device: status.st_dev,
            inode: status.st_ino,
        }
    }
}

/// Bytes of a file, the end excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    start: i64,
    end: i64,
}

impl Range {
    fn of(lock: &libc::flock) -> Self {
        let end = match lock.l_len {
            0 => i64::MAX, // to the end of the file, however long it grows
            length => lock.l_start.saturating_add(length),
        };
        Self {
            start: lock.l_start,
            end,
        }
    }

    fn without(self, other: Self) -> impl Iterator<Item = Self> {
        let before = Self {
            start: self.start,
            end: self.end.min(other.start),
        };
        let after = Self {
            start: self.start.max(other.end),
            end: self.end,
        };
        [before, after]
            .into_iter()
            .filter(|rest| rest.start < rest.end)
    }

    pub(super) fn as_lock(self, kind: c_int) -> libc::flock {
        libc::flock {
            l_type: kind as _,
            l_whence: libc::SEEK_SET as _,
            l_start: self.start,
            l_len: match self.end {
                i64::MAX => 0,
                end => end - self.start,
            },
            l_pid: 0,
        }
    }
}

pub(super) const WHOLE_FILE: Range = Range {
    start: 0,
    end: i64::MAX,
};

/// How a descriptor was opened: for reading, for writing, or both; nothing if it is not open.
pub(super) fn access_of(descriptor: c_int) -> Option<c_int> {
    // SAFETY: any number is allowed; asks only.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    (flags >= 0).then_some(flags & libc::O_ACCMODE)
}

pub(super) fn set_lock(descriptor: c_int, range: Range, kind: c_int) -> bool {
    let mut lock = range.as_lock(kind);
    // SAFETY: a lock, complete.
    unsafe { libc::fcntl(descriptor, libc::F_OFD_SETLK, &raw mut lock) == 0 }
}

/// Whether anybody has it locked through another descriptor; nothing if that cannot be asked.
pub(super) fn is_byte_locked(descriptor: c_int, byte: i64) -> Option<bool> {
    let end = byte + 1;
    let mut lock = Range { start: byte, end }.as_lock(libc::F_WRLCK);
    // SAFETY: a lock, complete.
    let result = unsafe { libc::fcntl(descriptor, libc::F_OFD_GETLK, &raw mut lock) };
    (result == 0).then_some(c_int::from(lock.l_type) != libc::F_UNLCK)
}

/// Locks one byte, or lets it go.
pub(super) fn set_byte(descriptor: c_int, byte: i64, kind: c_int) -> bool {
    let end = byte + 1;
    set_lock(descriptor, Range { start: byte, end }, kind)
}

/// Asks for a lock on exactly this descriptor.
///
/// # Safety
///
/// `command` is one for OFD locks, `request` a lock as `fcntl` takes it; its `l_pid` may be unset.
#[inline]
pub(super) unsafe fn request_lock(
    descriptor: c_int,
    command: c_int,
    request: *mut libc::flock,
) -> c_int {
    // SAFETY: a lock of SQLite's, copied whether or not all of it is set. `l_pid` must be zero.
    unsafe {
        let mut copy: MaybeUninit<libc::flock> = ptr::read(request.cast());
        (&raw mut (*copy.as_mut_ptr()).l_pid).write(0);
        let result = libc::fcntl(descriptor, command, copy.as_mut_ptr());
        if result == 0 && command == libc::F_OFD_GETLK {
            ptr::write(request.cast(), copy);
        }
        result
    }
}

pub(super) fn set_errno(error: c_int) {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = error };
}

impl Inode {
    /// Has `descriptor`, which is read-write, hold the locks from now on.
    pub(super) fn move_locks(&mut self, descriptor: c_int) -> bool {
        // Read locks beside read locks: nobody can have got in between, so they are granted.
        let are_taken = self
            .read_locks
            .iter()
            .all(|range| set_lock(descriptor, *range, libc::F_RDLCK));
        if !are_taken {
            set_lock(descriptor, WHOLE_FILE, libc::F_UNLCK);
            return false;
        }
        set_lock(self.canonical, WHOLE_FILE, libc::F_UNLCK);
        self.read_locks.clear();
        self.replace_canonical(descriptor, false);
        true
    }

    /// Has the users lock through `descriptor` from now on.
    pub(super) fn replace_canonical(&mut self, descriptor: c_int, is_read_only: bool) {
        self.canonical = descriptor;
        self.is_read_only = is_read_only;
        for user in &self.users {
            table::set(*user, self.entry());
        }
        table::set(descriptor, self.entry());
    }

    pub(super) fn entry(&self) -> Entry {
        Entry::locked_through(self.canonical, self.is_read_only)
    }

    /// Notes what a successful call has done to a read-only lock descriptor.
    pub(super) fn note(&mut self, command: c_int, lock: &libc::flock) {
        if command == libc::F_OFD_GETLK {
            return;
        }
        let range = Range::of(lock);
        self.read_locks = std::mem::take(&mut self.read_locks)
            .into_iter()
            .flat_map(|held| held.without(range))
            .collect();
        if c_int::from(lock.l_type) == libc::F_RDLCK {
            self.read_locks.push(range);
        }
    }
}
