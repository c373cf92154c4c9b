//! Records what the library does to the files of one folder, for the crash laboratory.
//!
//! What is recorded is what must be known to say what a power cut leaves: which bytes were written where,
//! which syncs began and ended when, which files came and went. Left out are files of which nothing is
//! believed after a crash: `-shm` and `-gate`.
//!
//! Invariant: a change is recorded when it has been made, before its caller goes on; a sync when it
//! begins and when it has ended. So whatever stands before the beginning of a sync was there to be
//! synced, and whoever knows of a change knows it later than the log does.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::log::{self, Record};

static FOLDER: OnceLock<Vec<u8>> = OnceLock::new();

/// How much longer a sync takes than the disk needs, so that others do something meanwhile.
static SYNC_MICROSECONDS: AtomicU32 = AtomicU32::new(0);

/// By the number of a descriptor, the inode of a file that is recorded; or zero.
static INODES: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// Has what happens to the files of `folder` recorded in the log at `path`; whether it could.
pub(crate) fn begin(path: &CStr, folder: &CStr, sync_microseconds: u32) -> bool {
    SYNC_MICROSECONDS.store(sync_microseconds, Ordering::Relaxed);
    let folder = folder.to_bytes();
    FOLDER.get_or_init(|| folder.to_vec()) == folder && log::begin(path)
}

/// The name in the folder, `.` for the folder itself, or nothing if it is not to be recorded.
fn name_of(path: &[u8]) -> Option<&[u8]> {
    let folder = FOLDER.get()?;
    match path.strip_prefix(folder.as_slice())? {
        b"" => Some(b"."),
        [b'/', name @ ..] => {
            let is_left_out = name.ends_with(b"-shm") || name.ends_with(b"-gate");
            (!is_left_out && !name.contains(&b'/')).then_some(name)
        }
        _ => None,
    }
}

fn inode(descriptor: c_int) -> Option<u64> {
    if !log::is_open() {
        return None;
    }
    let inode = INODES.get(descriptor as usize)?.load(Ordering::Relaxed);
    (inode != 0).then_some(inode)
}

/// # Safety
///
/// `path` is NUL-terminated.
pub(crate) unsafe fn opened(path: *const c_char, descriptor: c_int) {
    let Some(place) = INODES.get(descriptor as usize) else {
        return;
    };
    place.store(0, Ordering::Relaxed);
    if !log::is_open() {
        return;
    }
    // SAFETY: this function's contract.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if let Some(name) = name_of(path) {
        let mut status = MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: a descriptor that is open, of which the status is asked; it is there where that is 0.
        let status = unsafe {
            if libc::fstat64(descriptor, status.as_mut_ptr()) != 0 {
                return;
            }
            status.assume_init()
        };
        place.store(status.st_ino, Ordering::Relaxed);
        log::add(Record::Open, status.st_ino, status.st_size, 0, name);
    }
}

/// A file that had no name, by the path of its descriptor, has one.
///
/// # Safety
///
/// Both are NUL-terminated.
pub(crate) unsafe fn linked(from: *const c_char, to: *const c_char) {
    // SAFETY: this function's contract.
    let from = unsafe { CStr::from_ptr(from) };
    let number = from
        .to_str()
        .ok()
        .and_then(|path| path.strip_prefix("/proc/self/fd/"));
    if let Some(Ok(descriptor)) = number.map(str::parse) {
        // SAFETY: this function's contract.
        unsafe { opened(to, descriptor) };
    }
}

pub(crate) fn closed(descriptor: c_int) {
    if let Some(place) = INODES.get(descriptor as usize) {
        place.store(0, Ordering::Relaxed);
    }
}

/// # Safety
///
/// At `buffer` are as many bytes as were `written`.
pub(crate) unsafe fn wrote(descriptor: c_int, buffer: *const c_void, written: isize, offset: i64) {
    if let (Some(inode), Ok(length)) = (inode(descriptor), usize::try_from(written)) {
        // SAFETY: this function's contract.
        let bytes = unsafe { slice::from_raw_parts(buffer.cast(), length) };
        log::add(Record::Write, inode, offset, 0, bytes);
    }
}

pub(crate) fn truncated(descriptor: c_int, result: c_int, length: i64) {
    if let (Some(inode), 0) = (inode(descriptor), result) {
        log::add(Record::Truncate, inode, length, 0, &[]);
    }
}

/// Where the beginning is recorded, for [`sync_ended`].
pub(crate) fn sync_begins(descriptor: c_int) -> Option<(u64, u64)> {
    let inode = inode(descriptor)?;
    let place = log::add(Record::SyncBegins, inode, 0, 0, &[]);
    let extra = SYNC_MICROSECONDS.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_micros(extra.into()));
    Some((inode, place))
}

pub(crate) fn sync_ended(begun: Option<(u64, u64)>, result: c_int) {
    if let Some((inode, place)) = begun {
        log::add(Record::SyncEnds, inode, place as i64, result.into(), &[]);
    }
}

/// # Safety
///
/// `path` is NUL-terminated.
pub(crate) unsafe fn unlinked(path: *const c_char, result: c_int) {
    // SAFETY: this function's contract.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if let (Some(name), 0) = (name_of(path), result) {
        log::add(Record::Unlink, 0, 0, 0, name);
    }
}

pub(crate) fn mapped(descriptor: c_int, protection: c_int, flags: c_int) {
    let is_writable = protection & libc::PROT_WRITE != 0 && flags & libc::MAP_SHARED != 0;
    if let (Some(inode), true) = (inode(descriptor), is_writable) {
        log::add(Record::WritableMap, inode, 0, 0, &[]);
    }
}
