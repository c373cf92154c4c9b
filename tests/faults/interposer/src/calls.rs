//! The system calls of the library, SQLite's and Rust's alike: each counted, and failing when it is to.
//!
//! A variadic function of C stands here with the arguments that it may have; on x86-64 that is the same
//! call.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::faults::{self, Kind, SHORT, failed, strike};
use crate::memory;
use crate::recorder;
use crate::relocations::{Call, Slot};

pub(crate) const CALLS: &[Call] = &[
    Call::all("open", open as *const ()),
    Call::all("open64", open as *const ()),
    Call::all("opendir", opendir as *const ()),
    Call::all("close", close as *const ()),
    Call::all("read", read as *const ()),
    Call::all("pread64", pread as *const ()),
    // Rust's `write` is for messages.
    Call::through(Slot::Data, "write", write as *const ()),
    Call::all("pwrite64", pwrite as *const ()),
    Call::all("fdatasync", fdatasync as *const ()),
    Call::all("fsync", fsync as *const ()),
    Call::all("ftruncate64", ftruncate as *const ()),
    Call::all("fcntl", fcntl as *const ()),
    Call::all("fcntl64", fcntl as *const ()),
    Call::all("stat", stat as *const ()),
    Call::all("stat64", stat as *const ()),
    Call::all("lstat", lstat as *const ()),
    Call::all("lstat64", lstat as *const ()),
    Call::all("fstat", fstat as *const ()),
    Call::all("fstat64", fstat as *const ()),
    Call::all("statx", statx as *const ()),
    Call::all("syscall", syscall as *const ()),
    Call::all("mmap64", mmap as *const ()),
    Call::all("mremap", mremap as *const ()),
    Call::all("unlink", unlink as *const ()),
    Call::all("linkat", linkat as *const ()),
    Call::all("access", access as *const ()),
    Call::all("readlink", readlink as *const ()),
    Call::all("getcwd", getcwd as *const ()),
    Call::all("realpath", realpath as *const ()),
    Call::through(Slot::Linkage, "nanosleep", nanosleep as *const ()),
    Call::all("fchmod", fchmod as *const ()),
    Call::all("fchown", fchown as *const ()),
];

/// By its number, whether a descriptor is of a `-shm` file.
static IS_SHM: [AtomicBool; 1024] = [const { AtomicBool::new(false) }; 1024];

fn is_shm(descriptor: c_int) -> bool {
    IS_SHM
        .get(descriptor as usize)
        .is_some_and(|place| place.load(Ordering::Relaxed))
}

/// # Safety
///
/// `path` is NUL-terminated.
unsafe fn note(path: *const c_char, descriptor: c_int) {
    // SAFETY: this function's contract.
    let path = unsafe { CStr::from_ptr(path) }.to_str().unwrap_or_default();
    let of = match path.strip_prefix("/proc/self/fd/").map(str::parse) {
        Some(Ok(other)) => is_shm(other),
        _ => path.ends_with("-shm"),
    };
    if let Some(place) = IS_SHM.get(descriptor as usize) {
        place.store(of, Ordering::Relaxed);
    }
}

/// Fails the call if it is to, else makes it.
macro_rules! call {
    ($kind:expr, $failure:expr, $real:expr) => {
        match strike($kind) {
            Some(errno) => failed(errno, $failure),
            // SAFETY: the call as the library made it.
            None => unsafe { $real },
        }
    };
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    let descriptor = call!(Kind::Open, -1, libc::open(path, flags, mode));
    if descriptor >= 0 {
        // SAFETY: a path that could be opened.
        unsafe {
            note(path, descriptor);
            match flags & libc::O_TMPFILE == libc::O_TMPFILE {
                // The path is that of a folder; it has a name when it is linked.
                true => recorder::closed(descriptor),
                false => recorder::opened(path, descriptor),
            }
        }
    }
    descriptor
}

unsafe extern "C" fn opendir(path: *const c_char) -> *mut libc::DIR {
    call!(Kind::Open, ptr::null_mut(), libc::opendir(path))
}

/// A close that fails has closed, on Linux.
unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    let errno = strike(Kind::Close);
    recorder::closed(descriptor);
    // SAFETY: the call as the library made it.
    let result = unsafe { libc::close(descriptor) };
    errno.map_or(result, |errno| failed(errno, -1))
}

/// How many bytes to transfer, or nothing if the call fails.
fn transferred(kind: Kind, amount: usize) -> Option<usize> {
    match strike(kind) {
        None => Some(amount),
        Some(SHORT) => Some(amount.div_ceil(2)),
        Some(errno) => failed(errno, None),
    }
}

unsafe extern "C" fn read(descriptor: c_int, buffer: *mut c_void, amount: usize) -> isize {
    transferred(Kind::Read, amount).map_or(-1, |amount| {
        // SAFETY: the call as the library made it, or for less.
        unsafe { libc::read(descriptor, buffer, amount) }
    })
}

unsafe extern "C" fn pread(
    descriptor: c_int,
    buffer: *mut c_void,
    amount: usize,
    offset: i64,
) -> isize {
    transferred(Kind::Read, amount).map_or(-1, |amount| {
        // SAFETY: the call as the library made it, or for less.
        unsafe { libc::pread64(descriptor, buffer, amount, offset) }
    })
}

unsafe extern "C" fn write(descriptor: c_int, buffer: *const c_void, amount: usize) -> isize {
    transferred(Kind::Write, amount).map_or(-1, |amount| {
        // SAFETY: the call as the library made it, or for less.
        unsafe { libc::write(descriptor, buffer, amount) }
    })
}

unsafe extern "C" fn pwrite(
    descriptor: c_int,
    buffer: *const c_void,
    amount: usize,
    offset: i64,
) -> isize {
    transferred(Kind::Write, amount).map_or(-1, |amount| {
        // SAFETY: the call as the library made it, or for less.
        unsafe {
            let written = libc::pwrite64(descriptor, buffer, amount, offset);
            recorder::wrote(descriptor, buffer, written, offset);
            written
        }
    })
}

unsafe extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    let begun = recorder::sync_begins(descriptor);
    let result = call!(Kind::Sync, -1, libc::fdatasync(descriptor));
    recorder::sync_ended(begun, result);
    result
}

unsafe extern "C" fn fsync(descriptor: c_int) -> c_int {
    let begun = recorder::sync_begins(descriptor);
    let result = call!(Kind::Sync, -1, libc::fsync(descriptor));
    recorder::sync_ended(begun, result);
    result
}

unsafe extern "C" fn ftruncate(descriptor: c_int, length: i64) -> c_int {
    let result = call!(Kind::Truncate, -1, libc::ftruncate64(descriptor, length));
    recorder::truncated(descriptor, result, length);
    result
}

unsafe extern "C" fn fcntl(descriptor: c_int, command: c_int, argument: usize) -> c_int {
    let kind = match command {
        libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
            // SAFETY: these commands take a lock, of which the kind is set.
            let kind = unsafe { (*(argument as *const libc::flock)).l_type };
            match (c_int::from(kind) == libc::F_UNLCK, is_shm(descriptor)) {
                (false, false) => Kind::Lock,
                (false, true) => Kind::ShmLock,
                (true, false) => Kind::Unlock,
                (true, true) => Kind::ShmUnlock,
            }
        }
        libc::F_GETLK | libc::F_OFD_GETLK => match is_shm(descriptor) {
            false => Kind::Lock,
            true => Kind::ShmLock,
        },
        _ => Kind::Control,
    };
    call!(kind, -1, libc::fcntl(descriptor, command, argument))
}

unsafe extern "C" fn stat(path: *const c_char, status: *mut libc::stat) -> c_int {
    call!(Kind::Stat, -1, libc::stat(path, status))
}

unsafe extern "C" fn lstat(path: *const c_char, status: *mut libc::stat) -> c_int {
    call!(Kind::Stat, -1, libc::lstat(path, status))
}

unsafe extern "C" fn fstat(descriptor: c_int, status: *mut libc::stat) -> c_int {
    call!(Kind::Stat, -1, libc::fstat(descriptor, status))
}

unsafe extern "C" fn statx(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: u32,
    status: *mut libc::statx,
) -> c_int {
    call!(
        Kind::Stat,
        -1,
        libc::statx(directory, path, flags, mask, status)
    )
}

/// The library makes `statx` by its number too; everything else goes through.
unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if number == libc::SYS_statx
        && let Some(errno) = strike(Kind::Stat)
    {
        return failed(errno, -1);
    }
    // SAFETY: the call as the library made it; what it has not given, the kernel does not read.
    unsafe { libc::syscall(number, a, b, c, d, e, f) }
}

/// Of files only: the rest is memory of the Rust code's.
unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> *mut c_void {
    if descriptor >= 0 {
        let kind = if is_shm(descriptor) {
            Kind::ShmMap
        } else {
            Kind::Map
        };
        if let Some(errno) = strike(kind) {
            return failed(errno, libc::MAP_FAILED);
        }
        recorder::mapped(descriptor, protection, flags);
    }
    // SAFETY: the call as the library made it.
    unsafe { libc::mmap64(address, length, protection, flags, descriptor, offset) }
}

unsafe extern "C" fn mremap(
    address: *mut c_void,
    length: usize,
    wanted: usize,
    flags: c_int,
) -> *mut c_void {
    call!(
        Kind::Remap,
        libc::MAP_FAILED,
        libc::mremap(address, length, wanted, flags)
    )
}

unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    let result = call!(Kind::Unlink, -1, libc::unlink(path));
    // SAFETY: the path that was given.
    unsafe { recorder::unlinked(path, result) };
    result
}

unsafe extern "C" fn linkat(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    let result = call!(
        Kind::Path,
        -1,
        libc::linkat(from_folder, from, to_folder, to, flags)
    );
    if result == 0 {
        // SAFETY: the paths that were given.
        unsafe { recorder::linked(from, to) };
    }
    result
}

unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    call!(Kind::Access, -1, libc::access(path, mode))
}

unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    call!(Kind::Path, -1, libc::readlink(path, buffer, size))
}

unsafe extern "C" fn getcwd(buffer: *mut c_char, size: usize) -> *mut c_char {
    call!(Kind::Path, ptr::null_mut(), libc::getcwd(buffer, size))
}

unsafe extern "C" fn realpath(path: *const c_char, buffer: *mut c_char) -> *mut c_char {
    let resolved = call!(Kind::Path, ptr::null_mut(), libc::realpath(path, buffer));
    if buffer.is_null() && !resolved.is_null() {
        memory::given_to_rust();
    }
    resolved
}

unsafe extern "C" fn fchmod(descriptor: c_int, mode: libc::mode_t) -> c_int {
    call!(Kind::Owner, -1, libc::fchmod(descriptor, mode))
}

unsafe extern "C" fn fchown(descriptor: c_int, user: libc::uid_t, group: libc::gid_t) -> c_int {
    call!(Kind::Owner, -1, libc::fchown(descriptor, user, group))
}

/// SQLite sleeps between two tries for a lock, ten seconds in all in some places. What a lock that is
/// never granted leads to is the same without.
unsafe extern "C" fn nanosleep(time: *const libc::timespec, rest: *mut libc::timespec) -> c_int {
    if faults::skips_sleep() {
        return 0;
    }
    // SAFETY: the call as SQLite made it.
    unsafe { libc::nanosleep(time, rest) }
}
