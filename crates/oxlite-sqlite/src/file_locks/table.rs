//! What is known of each file descriptor of SQLite's, found by its number without a lock; and of a lock
//! descriptor, which read mark is kept through it, and whether the WAL's write lock is held through it.
//!
//! Invariants:
//! - A descriptor's place is written before SQLite gets its number from `open` and emptied before the
//!   number is given back to the system, so by whoever owns the number.
//! - Chunks of the table are never freed.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use super::kept::Mark;

/// Places in one chunk, and chunks. Together sixteen million; where more are open SQLite is told that
/// there are too many.
const CHUNK: usize = 1 << 12;
const CHUNKS: usize = 1 << 12;

static TABLE: [AtomicPtr<Place>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];

/// The place of one descriptor.
#[derive(Default)]
struct Place {
    /// What is known of it: an [`Entry`].
    entry: AtomicU32,
    /// Which read mark is kept, if it is a lock descriptor.
    mark: Mark,
    /// Whether a connection of this process writes, if it is the lock descriptor of an index.
    writes: AtomicBool,
}

/// What is known of one descriptor.
///
/// Zero is nothing. Bit 0 says that SQLite has opened it, or that it is a lock descriptor; bit 1 that
/// its lock descriptor is read-only; the rest is that descriptor's number plus one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u32);

impl Entry {
    /// Not SQLite's.
    pub(super) const FOREIGN: Self = Self(0);
    /// SQLite's; it has never locked.
    pub(super) const UNLOCKED: Self = Self(1);

    /// One whose inode has this lock descriptor.
    pub(super) fn locked_through(canonical: c_int, is_read_only: bool) -> Self {
        // At most `CHUNK * CHUNKS`, so nothing is shifted out.
        Self((canonical.unsigned_abs() + 1) << 2 | u32::from(is_read_only) << 1 | 1)
    }

    /// The lock descriptor of its inode.
    #[inline]
    pub(super) fn canonical(self) -> Option<c_int> {
        (self.0 > 3).then(|| (self.0 >> 2) as c_int - 1)
    }

    /// Whether that is read-only: then it has to be known what it has locked.
    #[inline]
    pub(super) fn is_read_only(self) -> bool {
        self.0 & 2 != 0
    }
}

/// The place of a descriptor, if its chunk exists.
#[inline]
fn place(descriptor: c_int) -> Option<&'static Place> {
    // A negative number becomes too large a one.
    let index = descriptor as usize;
    let chunk = TABLE.get(index / CHUNK)?.load(Ordering::Acquire);
    // SAFETY: a chunk has `CHUNK` places and is never freed.
    (!chunk.is_null()).then(|| unsafe { &*chunk.add(index % CHUNK) })
}

/// What is known of a descriptor.
#[inline]
pub(super) fn get(descriptor: c_int) -> Entry {
    place(descriptor).map_or(Entry::FOREIGN, |place| {
        Entry(place.entry.load(Ordering::Acquire))
    })
}

/// What is kept through a lock descriptor.
#[inline]
pub(super) fn mark(descriptor: c_int) -> Option<&'static Mark> {
    place(descriptor).map(|place| &place.mark)
}

/// Notes whether the write lock is held through a lock descriptor.
#[inline]
pub(super) fn note_writing(descriptor: c_int, writes: bool) {
    if let Some(place) = place(descriptor) {
        place.writes.store(writes, Ordering::Release);
    }
}

/// Whether the write lock is held through a lock descriptor.
pub(super) fn is_writing(descriptor: c_int) -> bool {
    place(descriptor).is_some_and(|place| place.writes.load(Ordering::Acquire))
}

/// Forgets what is kept through a lock descriptor, which is about to be closed or is closed already.
pub(super) fn forget_mark(descriptor: c_int) {
    if let Some(mark) = mark(descriptor) {
        mark.forget();
    }
    note_writing(descriptor, false);
}

/// Notes what is known of a descriptor; `false` if there is no place for such a number.
pub(super) fn set(descriptor: c_int, entry: Entry) -> bool {
    let Some(chunk) = TABLE.get(descriptor as usize / CHUNK) else {
        return false;
    };
    if chunk.load(Ordering::Acquire).is_null() {
        if entry == Entry::FOREIGN {
            return true;
        }
        let places: Box<[Place]> = (0..CHUNK).map(|_| Place::default()).collect();
        let places = Box::into_raw(places).cast::<Place>();
        let made =
            chunk.compare_exchange(ptr::null_mut(), places, Ordering::AcqRel, Ordering::Acquire);
        if made.is_err() {
            // Another thread was first.
            // SAFETY: made above, of that length, and nobody else knows it.
            drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(places, CHUNK)) });
        }
    }
    let Some(place) = place(descriptor) else {
        return false;
    };
    place.entry.store(entry.0, Ordering::Release);
    true
}

/// Goes through all that is known, in a forked child: closes the lock descriptors with `close`, and
/// leaves of the others only that they are SQLite's. Allocates nothing, waits for nobody.
pub(super) fn forget_locks(close: impl Fn(c_int)) {
    for (number, chunk) in TABLE.iter().enumerate() {
        if chunk.load(Ordering::Acquire).is_null() {
            continue;
        }
        for descriptor in number * CHUNK..(number + 1) * CHUNK {
            let descriptor = descriptor as c_int;
            let Some(place) = place(descriptor) else {
                continue;
            };
            place.mark.clear();
            match Entry(place.entry.load(Ordering::Relaxed)).canonical() {
                None => {}
                Some(canonical) if canonical == descriptor => {
                    place.entry.store(Entry::FOREIGN.0, Ordering::Relaxed);
                    close(descriptor);
                }
                Some(_) => place.entry.store(Entry::UNLOCKED.0, Ordering::Relaxed),
            }
        }
    }
}
