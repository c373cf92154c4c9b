//! The system calls that SQLite's unix layer makes through us.
//!
//! Each takes the arguments of the C function whose name it is registered under, and leaves `errno` as
//! the system has set it. None of them panics: that would unwind into C.
//!
//! Read marks are kept here ([`kept`]): what a reader lets go stays locked for a moment, and who next asks
//! for the same lock has it already. Who would move a mark is refused as long as such a one is fresh.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::io;
use std::num::NonZeroU64;

use super::inode::{request_lock, set_byte};
use super::keeper;
use super::kept::{FIRST_BYTE, LAST_BYTE};
use super::registry::REGISTRY;
use super::table::{self, Entry};
use super::{Spared, WAL_WRITE_LOCK};
use crate::fork;

/// `open(path, flags, mode)`; SQLite itself calls it through a function of three arguments.
///
/// The registry is held meanwhile, so that whoever looks through the descriptors of the process, or
/// forks it, finds none of SQLite's that is not yet known to be.
pub(super) unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let mut registry = REGISTRY.lock();
    // SAFETY: the path as SQLite gave it, NUL-terminated.
    if let Some(parked) = unsafe { registry.take_parked(path, flags) } {
        return parked;
    }
    // SAFETY: the call as SQLite made it.
    let descriptor = unsafe { libc::open(path, flags, mode) };
    if descriptor >= 0 {
        if table::get(descriptor).canonical().is_some() {
            // Somebody has closed the one that had this number behind SQLite's back.
            registry.forget(descriptor);
        }
        table::set(descriptor, Entry::UNLOCKED);
    }
    descriptor
}

/// `close(descriptor)`.
pub(super) unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    REGISTRY.lock().close(descriptor)
}

/// `fcntl(descriptor, command, argument)`.
///
/// SQLite calls it as the variadic function it is in C. That is the same call: the conventions of
/// x86-64 (System V) and of aarch64 (AAPCS64, not Apple's) pass the first variadic pointer in the
/// register of a third named one. All commands that SQLite uses have a third argument.
pub(super) unsafe extern "C" fn fcntl(
    descriptor: c_int,
    command: c_int,
    argument: *mut libc::flock,
) -> c_int {
    let command = match command {
        libc::F_SETLK => libc::F_OFD_SETLK,
        libc::F_SETLKW => libc::F_OFD_SETLKW,
        libc::F_GETLK => libc::F_OFD_GETLK,
        // SAFETY: the call as SQLite made it.
        other => return unsafe { libc::fcntl(descriptor, other, argument) },
    };
    let entry = table::get(descriptor);
    match entry.canonical() {
        // SAFETY: these commands take a lock.
        Some(canonical) if !entry.is_read_only() => unsafe { lock(canonical, command, argument) },
        // SAFETY: as above.
        _ => unsafe { REGISTRY.lock().lock(descriptor, command, argument) },
    }
}

thread_local! {
    /// What this thread may be spared in the call that it makes.
    static SPARED: Cell<Option<Spared>> = const { Cell::new(None) };
    /// The number of the lock on a read mark that this thread has asked for.
    static LOCKED: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
}

/// Makes a call for the lock of a read mark, of which this may be spared.
#[inline]
pub(crate) fn sparing<T>(spared: Spared, call: impl FnOnce() -> T) -> T {
    SPARED.set(Some(spared));
    let done = call();
    SPARED.set(None);
    done
}

/// Makes a call that asks for the lock of a read mark, and tells that lock's number, if it is known:
/// [`lock_number`](super::kept::Mark::lock_number).
#[inline]
pub(crate) fn numbered<T>(call: impl FnOnce() -> T) -> (T, Option<NonZeroU64>) {
    LOCKED.set(None);
    let done = call();
    (done, LOCKED.get())
}

/// Locks, or lets go, through a lock descriptor that is read-write.
///
/// # Safety
///
/// As for [`request_lock`].
#[inline]
unsafe fn lock(canonical: c_int, command: c_int, request: *mut libc::flock) -> c_int {
    // SAFETY: SQLite has set these.
    let (kind, bytes) = unsafe {
        let start = (*request).l_start;
        (
            c_int::from((*request).l_type),
            start..start + (*request).l_len,
        )
    };
    let is_mark = command != libc::F_OFD_GETLK && (FIRST_BYTE..=LAST_BYTE).contains(&bytes.start);
    let Some(mark) = is_mark.then(|| table::mark(canonical)).flatten() else {
        // SAFETY: this function's contract.
        let result = unsafe { request_lock(canonical, command, request) };
        if bytes.start == WAL_WRITE_LOCK && result == 0 && command != libc::F_OFD_GETLK {
            table::note_writing(canonical, kind == libc::F_WRLCK);
        }
        return result;
    };
    if kind == libc::F_WRLCK && SPARED.get() == Some(Spared::Moving) && mark.is_fresh() {
        // SAFETY: the place of this thread's.
        unsafe { *libc::__errno_location() = libc::EAGAIN };
        return -1;
    }
    let kept = mark.take(|kept| kind == libc::F_RDLCK || bytes.contains(&kept));
    match kept {
        Some(kept) if kind == libc::F_RDLCK && kept == bytes.start => {
            LOCKED.set(mark.lock_number());
            return 0;
        }
        // One mark at a time.
        Some(kept) if kind == libc::F_RDLCK => {
            set_byte(canonical, kept, libc::F_UNLCK);
        }
        None if kind == libc::F_UNLCK
            && SPARED.get() == Some(Spared::LettingGo)
            && (mark.is_watched() || keeper::watch(canonical, mark))
            && mark.keep(bytes.start) =>
        {
            return 0;
        }
        _ => {}
    }
    // SAFETY: this function's contract.
    let result = unsafe { request_lock(canonical, command, request) };
    if result != 0
        && kind == libc::F_UNLCK
        && io::Error::last_os_error().raw_os_error() == Some(libc::EBADF)
    {
        // The lock has gone with its descriptor. SQLite would go on counting it as held, and read on
        // without any; the next one who asks for it is refused.
        return 0;
    }
    if result == 0 && kind == libc::F_RDLCK {
        mark.note_lock();
        LOCKED.set(mark.lock_number());
    }
    // An exclusive lock that is refused leaves the shared one standing.
    if let Some(kept) = kept
        && kind == libc::F_WRLCK
        && result != 0
        && !mark.put_back(kept)
    {
        set_byte(canonical, kept, libc::F_UNLCK);
    }
    result
}

/// `stat(path, status)`.
pub(super) unsafe extern "C" fn stat(path: *const c_char, status: *mut libc::stat) -> c_int {
    // SAFETY: the call as SQLite made it.
    let result = unsafe { libc::stat(path, status) };
    // SAFETY: filled in where the call has succeeded.
    unsafe { tell_generations_apart(result, status) };
    result
}

/// `fstat(descriptor, status)`.
pub(super) unsafe extern "C" fn fstat(descriptor: c_int, status: *mut libc::stat) -> c_int {
    // SAFETY: the call as SQLite made it.
    let result = unsafe { libc::fstat(descriptor, status) };
    // SAFETY: filled in where the call has succeeded.
    unsafe { tell_generations_apart(result, status) };
    result
}

/// Makes the device another one in a forked child. SQLite knows a file's locks by device and inode, and
/// looks at the device for nothing else; Linux uses the lower 32 bits of the number.
///
/// # Safety
///
/// `status` is filled in if `result` is zero.
unsafe fn tell_generations_apart(result: c_int, status: *mut libc::stat) {
    if result == 0 {
        // SAFETY: this function's contract.
        unsafe { (*status).st_dev ^= libc::dev_t::from(fork::generation()) << 32 };
    }
}

pub(crate) fn before_fork() {
    keeper::before_fork();
    REGISTRY.before_fork();
}

pub(crate) fn after_fork_in_parent() {
    REGISTRY.after_fork(|_| ());
    keeper::after_fork();
}

/// Closes the lock descriptors and forgets every file of the parent's.
pub(crate) fn after_fork_in_child() {
    table::forget_locks(|descriptor| {
        // SAFETY: a copy of the parent's descriptor, which nobody uses here: SQLite refuses its files.
        unsafe { libc::close(descriptor) };
    });
    REGISTRY.after_fork(|registry| std::mem::forget(std::mem::take(registry)));
    keeper::after_fork();
}
