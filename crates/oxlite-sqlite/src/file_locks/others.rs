//! What others of this process have open, and which of it they have locked: found out from the kernel,
//! through `/proc` where it must be.

use std::ffi::{CStr, c_int};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use libsqlite3_sys as ffi;

use super::table::{self, Entry};
use crate::error::{Error, Result};

/// Whether the kernel has OFD locks. Asked once in a process, so a shortage of the moment must not be
/// taken for a no: the process would have POSIX locks for as long as it lives.
pub(super) fn has_ofd_locks() -> Result<bool> {
    // Anything can be asked about, and this needs no file.
    // SAFETY: takes two numbers.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(cannot_ask(ffi::SQLITE_CANTOPEN));
    }
    let answer = match first_conflict(descriptor) {
        Some(_) => Ok(true),
        // What the kernel says to a command that it does not know.
        None if io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) => Ok(false),
        None => Err(cannot_ask(ffi::SQLITE_IOERR_LOCK)),
    };
    // SAFETY: opened above, and known to nobody.
    unsafe { libc::close(descriptor) };
    answer
}

fn cannot_ask(code: c_int) -> Error {
    let cause = io::Error::last_os_error();
    Error::new(code, format!("cannot find out about file locks: {cause}"))
}

/// The first lock in the way of locking all of the file through this descriptor, its own excepted:
/// `F_UNLCK` if there is none. Nothing if that cannot be asked.
fn first_conflict(descriptor: c_int) -> Option<libc::flock> {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as _,
        l_whence: libc::SEEK_SET as _,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: a lock, complete.
    let result = unsafe { libc::fcntl(descriptor, libc::F_OFD_GETLK, &raw mut lock) };
    (result == 0).then_some(lock)
}

/// For how long a look at the descriptors of the process is good for another file. SQLite closes a
/// `-shm` file and its database in one go, and that is to take one look.
const GOOD_FOR: Duration = Duration::from_micros(200);

/// What a look at the descriptors of the process has found.
pub(super) struct Look {
    at: Instant,
    /// The file that was looked for.
    wanted: Identity,
    /// The files that are open, through descriptors that are not our SQLite's.
    foreign: Vec<(Identity, c_int)>,
}

/// Whether this process holds POSIX locks on the file that `descriptor` is open on. Ours are none.
///
/// It is best asked of the descriptor that has our own locks, if there is one: they are not in the way
/// then. `latest` is the latest look, if one was taken.
pub(super) fn holds_posix_locks(descriptor: c_int, latest: &mut Option<Look>) -> bool {
    match first_conflict(descriptor) {
        None => return false,
        Some(lock) if c_int::from(lock.l_type) == libc::F_UNLCK => return false,
        // SAFETY: may always be called.
        Some(lock) if lock.l_pid == unsafe { libc::getpid() } => return true,
        // Another process's read lock may hide one of this process.
        Some(_) => {}
    }
    let Some(identity) = Identity::of(descriptor) else {
        return false;
    };
    let look = match latest.take() {
        Some(look) if look.wanted != identity && look.at.elapsed() < GOOD_FOR => look,
        _ => Look {
            at: Instant::now(),
            wanted: identity,
            foreign: foreign_files(),
        },
    };
    latest
        .insert(look)
        .foreign
        .iter()
        .any(|(file, foreign)| *file == identity && has_posix_lock(*foreign))
}

/// Whether a POSIX lock of this process was taken through this descriptor.
fn has_posix_lock(descriptor: c_int) -> bool {
    fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"))
        .is_ok_and(|lines| lines.lines().any(is_posix_lock))
}

/// Whether a line of `fdinfo` tells of one: `lock: 1: POSIX  ADVISORY  READ 77 fe:00:5 0 EOF`.
fn is_posix_lock(line: &str) -> bool {
    line.strip_prefix("lock:")
        .is_some_and(|lock| lock.split_ascii_whitespace().nth(1) == Some("POSIX"))
}

/// What makes a file one file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
    is_regular: bool,
}

impl Identity {
    /// Asks nobody but the kernel, as any descriptor of the process may be looked at, also one of a
    /// file system that has come to a standstill or that this very thread serves.
    pub(super) fn of(descriptor: c_int) -> Option<Self> {
        Self::at(
            descriptor,
            c"",
            libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC,
        )
    }

    pub(super) fn at(directory: c_int, path: &CStr, flags: c_int) -> Option<Self> {
        let mut status = MaybeUninit::<libc::statx>::zeroed();
        let wanted = libc::STATX_INO | libc::STATX_TYPE;
        // By its number, since older C libraries have no name for it.
        // SAFETY: any number is allowed, the path is NUL-terminated, and the status is filled in where
        // it succeeds; it may be all zeros.
        let status = unsafe {
            let place = status.as_mut_ptr();
            let path = path.as_ptr();
            if libc::syscall(libc::SYS_statx, directory, path, flags, wanted, place) != 0 {
                return None;
            }
            status.assume_init()
        };
        Some(Self {
            device: (status.stx_dev_major, status.stx_dev_minor),
            inode: status.stx_ino,
            is_regular: u32::from(status.stx_mode) & libc::S_IFMT == libc::S_IFREG,
        })
    }
}

/// The numbers of the descriptors that the latest look has found open, in order: the next one tries them
/// first. Whatever it holds, a look finds all. It is taken under the registry's mutex, so it is free in a
/// forked child.
static OPEN_AT_LATEST_LOOK: Mutex<Vec<c_int>> = Mutex::new(Vec::new());

/// The files that this process has open, through descriptors that are not our SQLite's. The caller holds
/// the registry, so that our SQLite opens and closes none meanwhile.
pub(super) fn foreign_files() -> Vec<(Identity, c_int)> {
    let mut numbers = OPEN_AT_LATEST_LOOK
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let mut found =
        probe_descriptors(&mut numbers).unwrap_or_else(|| list_descriptors(&mut numbers));
    found.sort_unstable_by_key(|(_, descriptor)| *descriptor);
    found
}

/// Notes a file if it is open and one of those; whether the descriptor is open at all.
fn note(found: &mut Vec<(Identity, c_int)>, descriptor: c_int) -> bool {
    if table::get(descriptor) != Entry::FOREIGN {
        // Asked all the same: somebody may have closed it behind SQLite's back.
        // SAFETY: takes any number.
        return unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
    }
    let Some(identity) = Identity::of(descriptor) else {
        return false;
    };
    if identity.is_regular {
        found.push((identity, descriptor));
    }
    true
}

/// Tries numbers until as many descriptors have been seen as are open: those of the latest look, then all
/// from zero on. Where little is opened and closed between two looks that takes one call for each
/// descriptor, however widely their numbers are strewn. The kernel must tell how many there are
/// (Linux 6.2). `numbers` is exchanged for those that are open.
fn probe_descriptors(numbers: &mut Vec<c_int>) -> Option<Vec<(Identity, c_int)>> {
    let open = usize::try_from(fs::metadata("/proc/self/fd").ok()?.size()).ok()?;
    let bound = c_int::try_from(4 * open + 1024).ok()?;
    let before = std::mem::replace(numbers, Vec::with_capacity(open));
    let others = (0..bound).filter(|number| before.binary_search(number).is_err());
    let mut found = Vec::new();
    for descriptor in before.iter().copied().chain(others) {
        if numbers.len() == open {
            break;
        }
        if note(&mut found, descriptor) {
            numbers.push(descriptor);
        }
    }
    numbers.sort_unstable();
    (open > 0 && numbers.len() == open).then_some(found)
}

/// The same by a list of them, which takes four times as long.
fn list_descriptors(numbers: &mut Vec<c_int>) -> Vec<(Identity, c_int)> {
    numbers.clear();
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return found;
    };
    for entry in entries.flatten() {
        if let Some(descriptor) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
            && note(&mut found, descriptor)
        {
            numbers.push(descriptor);
        }
    }
    numbers.sort_unstable();
    found
}
