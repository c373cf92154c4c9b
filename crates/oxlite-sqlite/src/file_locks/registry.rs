//! The files that our SQLite has locked, each with its one lock descriptor; and the descriptors that
//! wait to be closed.
//!
//! Invariants:
//! - Everything here is under the one mutex of [`REGISTRY`]. It is the innermost of all: nothing of
//!   SQLite's is called with it.

use std::ffi::{CString, c_char, c_int};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::inode::{Identity, Inode, WHOLE_FILE, access_of, request_lock, set_errno, set_lock};
use super::others::{self, Look};
use super::table::{self, Entry};
use crate::fork::ForkMutex;

/// More descriptors than this are not kept for the sake of another SQLite's locks: then the one that
/// has been parked for longest is closed, whatever becomes of them.
pub(super) const PARKED_AT_MOST: usize = 64;

pub(super) static REGISTRY: ForkMutex<Registry> = ForkMutex::new(Registry {
    inodes: Vec::new(),
    parked: Vec::new(),
    latest_look: None,
});

#[derive(Default)]
pub(super) struct Registry {
    inodes: Vec<Inode>,
    parked: Vec<Parked>,
    latest_look: Option<Look>,
}

/// A descriptor that SQLite has closed and we have not.
struct Parked {
    identity: Identity,
    descriptor: c_int,
    access: c_int,
}

impl Registry {
    fn position(&self, canonical: c_int) -> Option<usize> {
        let mut inodes = self.inodes.iter();
        inodes.position(|inode| inode.canonical == canonical)
    }

    /// Locks through the lock descriptor of the file, which is found or made if this is the
    /// descriptor's first lock.
    ///
    /// # Safety
    ///
    /// As for [`request_lock`].
    pub(super) unsafe fn lock(
        &mut self,
        descriptor: c_int,
        command: c_int,
        request: *mut libc::flock,
    ) -> c_int {
        let position = match table::get(descriptor).canonical() {
            Some(canonical) => self.position(canonical),
            None => self.attach(descriptor),
        };
        let Some(inode) = position.and_then(|position| self.inodes.get_mut(position)) else {
            return -1;
        };
        // SAFETY: this function's contract; what is read of the lock SQLite has set.
        unsafe {
            let result = request_lock(inode.canonical, command, request);
            if result == 0 && inode.is_read_only {
                let mut lock = WHOLE_FILE.as_lock(libc::F_UNLCK);
                lock.l_type = (*request).l_type;
                lock.l_start = (*request).l_start;
                lock.l_len = (*request).l_len;
                inode.note(command, &lock);
            }
            result
        }
    }

    /// Notes a descriptor that is to lock for the first time; where its file stands. On failure
    /// `errno` says why.
    fn attach(&mut self, descriptor: c_int) -> Option<usize> {
        let identity = Identity::of(descriptor)?;
        let is_read_only = access_of(descriptor)? == libc::O_RDONLY;
        if !table::set(descriptor, Entry::UNLOCKED) {
            set_errno(libc::EMFILE);
            return None;
        }
        let known = self
            .inodes
            .iter()
            .position(|inode| inode.identity == identity);
        let Some(position) = known else {
            let mut inode = Inode {
                identity,
                canonical: descriptor,
                is_read_only,
                read_locks: Vec::new(),
                users: vec![descriptor],
            };
            let canonical = self.lock_descriptor(descriptor);
            inode.replace_canonical(canonical, is_read_only);
            self.inodes.push(inode);
            return Some(self.inodes.len() - 1);
        };
        let inode = &mut self.inodes[position];
        inode.users.push(descriptor);
        table::set(descriptor, inode.entry());
        if inode.is_read_only && !is_read_only {
            self.take_write_locks(position, descriptor);
        }
        Some(position)
    }

    /// Replaces a read-only lock descriptor, after `descriptor`, which is read-write.
    fn take_write_locks(&mut self, position: usize, descriptor: c_int) {
        let canonical = self.lock_descriptor(descriptor);
        let inode = &mut self.inodes[position];
        let former = inode.canonical;
        let superfluous = match inode.move_locks(canonical) {
            true => former,
            false => canonical,
        };
        if !inode.users.contains(&superfluous) {
            let asked = inode.canonical;
            self.dispose(superfluous, asked);
        }
    }

    /// A descriptor for the locks of the file that `descriptor` is open on, opened in the same way.
    ///
    /// Where there can be none (no `/proc`, too many open files, another user by now), it is
    /// `descriptor` itself. The only difference is that a forked child which has inherited a mapping
    /// of it keeps the locks.
    fn lock_descriptor(&mut self, descriptor: c_int) -> c_int {
        let (Some(identity), Some(access)) = (Identity::of(descriptor), access_of(descriptor))
        else {
            return descriptor;
        };
        if let Some(parked) = self.unpark(identity, access) {
            return parked;
        }
        let Ok(path) = CString::new(format!("/proc/self/fd/{descriptor}")) else {
            return descriptor;
        };
        // SAFETY: a NUL-terminated path.
        let opened = unsafe { libc::open(path.as_ptr(), access | libc::O_CLOEXEC) };
        if opened < 0 {
            return descriptor;
        }
        // A number that is known already was closed behind SQLite's back: another file waits for it.
        if table::get(opened).canonical().is_some() || !table::set(opened, Entry::UNLOCKED) {
            // SAFETY: opened above, and known to nobody.
            unsafe { libc::close(opened) };
            return descriptor;
        }
        opened
    }

    /// Closes a descriptor for SQLite.
    pub(super) fn close(&mut self, descriptor: c_int) -> c_int {
        self.sweep();
        let position = table::get(descriptor)
            .canonical()
            .and_then(|canonical| self.position(canonical));
        let Some(position) = position else {
            return self.dispose(descriptor, descriptor);
        };
        let inode = &mut self.inodes[position];
        inode.users.retain(|user| *user != descriptor);
        let canonical = inode.canonical;
        if inode.users.is_empty() {
            return self.close_last(position, descriptor);
        }
        if descriptor == canonical {
            return 0; // the others lock through it
        }
        self.dispose(descriptor, canonical)
    }

    /// Closes the lock descriptor of a file without users, and its last user.
    fn close_last(&mut self, position: usize, descriptor: c_int) -> c_int {
        let inode = self.inodes.swap_remove(position);
        table::forget_mark(inode.canonical);
        // SQLite leaves it to the closing to let go of the locks, and a copy of the descriptor may be
        // on its way from a fork to its end.
        set_lock(inode.canonical, WHOLE_FILE, libc::F_UNLCK);
        let must_stay = others::holds_posix_locks(inode.canonical, &mut self.latest_look);
        if descriptor != inode.canonical {
            self.give_up(inode.canonical, must_stay);
        }
        self.give_up(descriptor, must_stay)
    }

    /// Forgets a descriptor that somebody else has closed, and with which its locks are gone.
    pub(super) fn forget(&mut self, descriptor: c_int) {
        let canonical = table::get(descriptor).canonical();
        table::set(descriptor, Entry::FOREIGN);
        let Some(position) = canonical.and_then(|canonical| self.position(canonical)) else {
            return;
        };
        let inode = &mut self.inodes[position];
        inode.users.retain(|user| *user != descriptor);
        let is_canonical = inode.canonical == descriptor;
        if !is_canonical {
            if inode.users.is_empty() {
                let canonical = inode.canonical;
                self.close_last(position, canonical);
            }
            return;
        }
        table::forget_mark(descriptor);
        inode.read_locks.clear();
        let users = inode.users.iter().map(|user| (*user, access_of(*user)));
        let best = users
            .filter_map(|(user, access)| Some((user, access? == libc::O_RDONLY)))
            .min_by_key(|(_, is_read_only)| *is_read_only);
        match best {
            Some((user, is_read_only)) => {
                let successor = self.lock_descriptor(user);
                self.inodes[position].replace_canonical(successor, is_read_only);
            }
            None => {
                self.inodes.swap_remove(position);
            }
        }
    }

    /// Gives up a descriptor that no inode knows any more. `asked` is another of the same file, the
    /// lock descriptor if there is one, or the same one.
    fn dispose(&mut self, descriptor: c_int, asked: c_int) -> c_int {
        let must_stay = others::holds_posix_locks(asked, &mut self.latest_look);
        self.give_up(descriptor, must_stay)
    }

    /// Closes a descriptor, or parks it if that would drop somebody's POSIX locks.
    fn give_up(&mut self, descriptor: c_int, must_stay: bool) -> c_int {
        if must_stay
            && let Some(identity) = Identity::of(descriptor)
            && let Some(access) = access_of(descriptor)
        {
            table::set(descriptor, Entry::UNLOCKED);
            self.parked.push(Parked {
                identity,
                descriptor,
                access,
            });
            if self.parked.len() > PARKED_AT_MOST {
                self.close_parked(0);
            }
            return 0;
        }
        close_now(descriptor)
    }

    fn close_parked(&mut self, position: usize) {
        // In the order in which they were parked.
        let parked = self.parked.remove(position);
        close_now(parked.descriptor);
    }

    /// Closes the parked descriptors whose files have no such locks any more.
    fn sweep(&mut self) {
        let mut latest = None;
        let mut position = 0;
        while let Some(parked) = self.parked.get(position) {
            let identity = parked.identity;
            let must_stay = match latest {
                Some((known, must_stay)) if known == identity => must_stay,
                _ => {
                    let mut inodes = self.inodes.iter();
                    let inode = inodes.find(|inode| inode.identity == identity);
                    let asked = inode.map_or(parked.descriptor, |inode| inode.canonical);
                    others::holds_posix_locks(asked, &mut self.latest_look)
                }
            };
            latest = Some((identity, must_stay));
            if must_stay {
                position += 1;
            } else {
                self.close_parked(position);
            }
        }
    }

    /// A parked descriptor of the file at `path`, opened as `flags` say.
    ///
    /// # Safety
    ///
    /// `path` is NUL-terminated.
    pub(super) unsafe fn take_parked(
        &mut self,
        path: *const c_char,
        flags: c_int,
    ) -> Option<c_int> {
        self.sweep();
        let is_new = flags & libc::O_EXCL != 0 || flags & libc::O_TRUNC != 0;
        if is_new || self.parked.is_empty() {
            return None;
        }
        let mut status = MaybeUninit::uninit();
        // SAFETY: this function's contract; the status is filled in where it succeeds. A symbolic
        // link is no file that is parked, and SQLite has resolved links before.
        let status = unsafe {
            if libc::lstat(path, status.as_mut_ptr()) != 0 {
                return None;
            }
            status.assume_init()
        };
        let identity = Identity::in_status(&status);
        self.unpark(identity, flags & libc::O_ACCMODE)
    }

    fn unpark(&mut self, identity: Identity, access: c_int) -> Option<c_int> {
        let mut all = self.parked.iter();
        let position =
            all.position(|parked| parked.identity == identity && parked.access == access)?;
        let parked = self.parked.remove(position);
        Some(parked.descriptor)
    }
}

/// Whether anybody has the byte of an index locked, through whatever descriptor; `None` if our SQLite has no lock
/// descriptor for it.
pub(super) fn is_write_locked(file: &Path, byte: i64) -> Option<bool> {
    let identity = Identity::at(file)?;
    let registry = REGISTRY.lock();
    let inode = registry
        .inodes
        .iter()
        .find(|inode| inode.identity == identity)?;
    if table::is_writing(inode.canonical) {
        return Some(true); // the system does not tell a descriptor of its own locks
    }
    super::inode::is_byte_locked(inode.canonical, byte)
}

/// Closes a descriptor. From its end on, the number may be another thread's, so the table is emptied
/// first.
fn close_now(descriptor: c_int) -> c_int {
    table::set(descriptor, Entry::FOREIGN);
    // SAFETY: a descriptor that SQLite has closed, which nobody else uses.
    let result = unsafe { libc::close(descriptor) };
    if result != 0 {
        let error = io::Error::last_os_error().raw_os_error();
        set_errno(error.unwrap_or(libc::EIO));
    }
    result
}

/// Opens a lock file that SQLite does not know. It is closed in a forked child, as the lock descriptors
/// of SQLite's files are.
pub(crate) fn open_known(open: impl FnOnce() -> io::Result<File>) -> io::Result<File> {
    let mut registry = REGISTRY.lock();
    let file = open()?;
    let descriptor = file.as_raw_fd();
    if table::get(descriptor).canonical().is_some() {
        registry.forget(descriptor);
    }
    if table::set(descriptor, Entry::locked_through(descriptor, false)) {
        return Ok(file);
    }
    Err(io::Error::from_raw_os_error(libc::EMFILE))
}

/// Closes one, and lets its locks go.
pub(crate) fn close_known(file: File) {
    let _registry = REGISTRY.lock();
    // A copy may be on its way from a fork to its end.
    set_lock(file.as_raw_fd(), WHOLE_FILE, libc::F_UNLCK);
    table::set(file.as_raw_fd(), Entry::FOREIGN);
}
