//! A log in a file that several processes have mapped: records in one order, whoever has written them.
//!
//! A record's place is taken by adding to one counter, so the places are in the order in which they were
//! taken, across threads and processes. What a process has written there stays when it is killed. A
//! record says of itself that it is complete, last of all.
//!
//! Invariant: what is in the log is never changed; [`begin`] starts another.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// What stands at the beginning of the file; the records follow.
#[repr(C)]
struct Beginning {
    /// Where the next record goes, from the beginning of the file.
    end: AtomicU64,
    /// How long the file is. Where `end` is beyond it, records were lost.
    size_bytes: AtomicU64,
}

/// What stands before the bytes of a record. The Python side knows this structure too.
#[repr(C)]
struct Header {
    marker: u32,
    is_complete: AtomicU32,
    /// Of the whole record.
    length_bytes: u32,
    kind: u32,
    process: i32,
    thread: i32,
    file: u64,
    first: i64,
    second: i64,
}

const MARKER: u32 = 0x0c7a_5109;

/// Records begin at multiples of this.
const ALIGNMENT: usize = 8;

/// What a record tells.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Record {
    /// `file` has been opened; `first`: its size; the bytes: its name.
    Open = 1,
    /// The bytes now stand at `first`.
    Write = 2,
    /// The size is `first`.
    Truncate = 3,
    SyncBegins = 4,
    /// `first`: where the record of its beginning is; `second`: what it returned.
    SyncEnds = 5,
    /// The bytes: the name.
    Unlink = 6,
    /// Something that the process says: the bytes.
    Mark = 7,
    /// Mapped so that it can be written to: what is written so is not seen here.
    WritableMap = 8,
}

static LOG: AtomicPtr<Beginning> = AtomicPtr::new(ptr::null_mut());

/// Maps the log at `path`, a file of the size it is to have, and has records go there; whether it could.
pub(crate) fn begin(path: &CStr) -> bool {
    // SAFETY: asks the kernel only; a new mapping, which is never taken away again, since another thread
    // may be writing a record.
    unsafe {
        let descriptor = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        let size = libc::lseek(descriptor, 0, libc::SEEK_END);
        if descriptor < 0 || size < size_of::<Beginning>() as i64 {
            return false;
        }
        let mapping = libc::mmap64(
            ptr::null_mut(),
            size as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            descriptor,
            0,
        );
        libc::close(descriptor);
        if mapping == libc::MAP_FAILED {
            return false;
        }
        let beginning = mapping.cast::<Beginning>();
        (*beginning)
            .size_bytes
            .store(size as u64, Ordering::Relaxed);
        // The first process finds zero there.
        (*beginning)
            .end
            .fetch_max(size_of::<Beginning>() as u64, Ordering::SeqCst);
        LOG.store(beginning, Ordering::Release);
    }
    true
}

/// Has no more records go to the log.
pub(crate) fn end() {
    LOG.store(ptr::null_mut(), Ordering::Release);
}

pub(crate) fn is_open() -> bool {
    !LOG.load(Ordering::Acquire).is_null()
}

/// Adds a record; where it stands. `errno` stays as it is.
pub(crate) fn add(kind: Record, file: u64, first: i64, second: i64, bytes: &[u8]) -> u64 {
    let log = LOG.load(Ordering::Acquire);
    if log.is_null() {
        return 0;
    }
    let length = size_of::<Header>() + bytes.len();
    let room = length.next_multiple_of(ALIGNMENT) as u64;
    // SAFETY: `begin` has mapped it for good, with the size that stands in it. The place is this call's
    // alone, since it was added to the counter.
    unsafe {
        let place = (*log).end.fetch_add(room, Ordering::SeqCst);
        if place + room > (*log).size_bytes.load(Ordering::Relaxed) {
            return 0;
        }
        let header = log.cast::<u8>().add(place as usize).cast::<Header>();
        header.write(Header {
            marker: MARKER,
            is_complete: AtomicU32::new(0),
            length_bytes: length as u32,
            kind: kind as u32,
            process: libc::getpid(),
            thread: libc::gettid(),
            file,
            first,
            second,
        });
        let content = header.add(1).cast::<u8>();
        ptr::copy_nonoverlapping(bytes.as_ptr(), content, bytes.len());
        (*header).is_complete.store(1, Ordering::Release);
        place
    }
}
