//! A file beside a database whose bytes processes lock to tell one another something. Its content is a
//! note that nobody has to believe; what counts are the locks, which the kernel takes back when their
//! holder ends.
//!
//! The locks are open-file-description locks (see `file_locks.rs`): each [`LockFile`] is a holder of its
//! own, whatever else the process does with the file.
//!
//! Invariants:
//! - The descriptor is close-on-exec, and closed in a forked child, so that no lock outlives its holder
//!   through a child. What is left there of a `LockFile` fails.
//! - The file is opened without following links, is a regular file, and is never unlinked, since others
//!   may be holding its locks.
//! - Only Linux has it; elsewhere opening fails.

use std::io;
use std::path::Path;

/// A byte of the file, as something to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Byte(pub u8);

/// The name for the file where there are no such locks.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub use elsewhere::LockFile;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use linux::LockFile;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod linux {
    use std::ffi::c_int;
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

    use super::{Byte, Path, io};
    use crate::file_locks;
    use crate::fork;

    /// An open lock file.
    pub struct LockFile {
        file: std::mem::ManuallyDrop<File>,
        /// That of the process that opened it.
        generation: u32,
        /// Whether it has no other name, and so is no other program's file.
        is_writable: bool,
    }

    impl LockFile {
        /// Opens the file at `path`, made if it is missing, with the mode and the owner of the database.
        ///
        /// Refused are a link, what is no regular file, and a file of somebody else's than the
        /// database's owner, ourselves or root.
        pub fn open(path: &Path, database: &Path) -> io::Result<Self> {
            let model = std::fs::metadata(database)?;
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .mode(model.mode() & 0o777);
            let file = file_locks::open_known(|| match options.open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let file = options.clone().create_new(true).open(path)?;
                    // The mode was cut down by the umask; the owner is ours. Only root can give a file
                    // away, and it is usable as it is.
                    file.set_permissions(std::fs::Permissions::from_mode(model.mode() & 0o777))?;
                    let _ = fchown(&file, Some(model.uid()), Some(model.gid()));
                    Ok(file)
                }
                outcome => outcome,
            });
            // Made by another process between the two tries: now it is there.
            let file = match file {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    file_locks::open_known(|| options.open(path))
                }
                outcome => outcome,
            }?;
            let mut file = Self {
                file: std::mem::ManuallyDrop::new(file),
                generation: fork::generation(),
                is_writable: false,
            };
            let status = file.file.metadata()?;
            // SAFETY: may always be called.
            let us = unsafe { libc::geteuid() };
            if !status.is_file() || ![model.uid(), us, 0].contains(&status.uid()) {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "it is no regular file of the database's owner",
                ));
            }
            file.is_writable = status.nlink() <= 1;
            Ok(file)
        }

        /// Locks a byte, alone or together with others, if nobody is in the way.
        pub fn try_lock(&self, byte: Byte, is_shared: bool) -> io::Result<bool> {
            let kind = match is_shared {
                true => libc::F_RDLCK,
                false => libc::F_WRLCK,
            };
            match self.control(libc::F_OFD_SETLK, &mut self::lock(kind, byte, byte)) {
                Ok(()) => Ok(true),
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
                    Ok(false)
                }
                Err(error) => Err(error),
            }
        }

        /// Locks a byte alone, waiting for as long as it takes.
        pub fn lock(&self, byte: Byte) -> io::Result<()> {
            let mut lock = self::lock(libc::F_WRLCK, byte, byte);
            loop {
                match self.control(libc::F_OFD_SETLKW, &mut lock) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    outcome => return outcome,
                }
            }
        }

        /// Lets the bytes from `first` to `last` go, those of them that it has locked.
        pub fn unlock(&self, first: Byte, last: Byte) -> io::Result<()> {
            self.control(
                libc::F_OFD_SETLK,
                &mut self::lock(libc::F_UNLCK, first, last),
            )
        }

        /// One of the bytes from `first` to `last` that somebody else has locked.
        pub fn locked_by_another(&self, first: Byte, last: Byte) -> io::Result<Option<Byte>> {
            let mut lock = self::lock(libc::F_WRLCK, first, last);
            self.control(libc::F_OFD_GETLK, &mut lock)?;
            if c_int::from(lock.l_type) == libc::F_UNLCK {
                return Ok(None);
            }
            // A lock that begins before `first` is in the way of it.
            let found = u8::try_from(lock.l_start).unwrap_or(first.0);
            Ok(Some(Byte(found.max(first.0))))
        }

        /// Whether it is the file with that status.
        pub(crate) fn is_same(&self, status: &std::fs::Metadata) -> io::Result<bool> {
            let ours = self.file.metadata()?;
            Ok(ours.dev() == status.dev() && ours.ino() == status.ino())
        }

        /// Whether `path` still leads to this file.
        pub fn is_at(&self, path: &Path) -> bool {
            match (self.file.metadata(), std::fs::symlink_metadata(path)) {
                (Ok(ours), Ok(found)) => {
                    ours.dev() == found.dev() && ours.ino() == found.ino() && ours.nlink() > 0
                }
                _ => false,
            }
        }

        /// Replaces the note. Refused where the file has several names (hard links).
        pub fn write_note(&self, note: &[u8]) -> io::Result<()> {
            self.check_process()?;
            if !self.is_writable {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            self.file.write_all_at(note, 0)
        }

        /// The note, of at most `length` bytes.
        pub fn read_note(&self, length: usize) -> io::Result<Vec<u8>> {
            self.check_process()?;
            let mut note = vec![0; length];
            let read = self.file.read_at(&mut note, 0)?;
            note.truncate(read);
            Ok(note)
        }

        fn control(&self, command: c_int, lock: &mut libc::flock) -> io::Result<()> {
            self.check_process()?;
            // SAFETY: an open descriptor of ours and a lock, complete.
            match unsafe { libc::fcntl(self.file.as_raw_fd(), command, &raw mut *lock) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }

        /// Refuses a descriptor that was closed in a forked child: its number may be another's.
        fn check_process(&self) -> io::Result<()> {
            if self.generation == fork::generation() {
                return Ok(());
            }
            Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "it was opened before a fork",
            ))
        }
    }

    impl Drop for LockFile {
        fn drop(&mut self) {
            if self.generation == fork::generation() {
                // SAFETY: taken once, here, and closed by that.
                file_locks::close_known(unsafe { std::mem::ManuallyDrop::take(&mut self.file) });
            }
        }
    }

    fn lock(kind: c_int, first: Byte, last: Byte) -> libc::flock {
        libc::flock {
            l_type: kind as _,
            l_whence: libc::SEEK_SET as _,
            l_start: first.0.into(),
            l_len: libc::off_t::from(last.0) - libc::off_t::from(first.0) + 1,
            l_pid: 0,
        }
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod elsewhere {
    use super::{Byte, Path, io};

    /// There is none here.
    pub enum LockFile {}

    impl LockFile {
        /// Fails.
        pub fn open(_path: &Path, _database: &Path) -> io::Result<Self> {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this system has no open-file-description locks",
            ))
        }

        /// Never called.
        pub fn try_lock(&self, _byte: Byte, _is_shared: bool) -> io::Result<bool> {
            match *self {}
        }

        /// Never called.
        pub fn lock(&self, _byte: Byte) -> io::Result<()> {
            match *self {}
        }

        /// Never called.
        pub fn unlock(&self, _first: Byte, _last: Byte) -> io::Result<()> {
            match *self {}
        }

        /// Never called.
        pub fn locked_by_another(&self, _first: Byte, _last: Byte) -> io::Result<Option<Byte>> {
            match *self {}
        }

        /// Never called.
        pub fn is_at(&self, _path: &Path) -> bool {
            match *self {}
        }

        /// Never called.
        pub fn write_note(&self, _note: &[u8]) -> io::Result<()> {
            match *self {}
        }

        /// Never called.
        pub fn read_note(&self, _length: usize) -> io::Result<Vec<u8>> {
            match *self {}
        }
    }
}
