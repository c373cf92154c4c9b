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
//! - The file is opened without following links, is a regular file, and is not unlinked while others may be
//!   holding its locks ([`LockFile::remove_if_unlocked`]).
//! - It appears under its name with its owner, its group and its permissions (`access`).
//! - What is no note is not written over.
//! - Only Linux has it; elsewhere opening fails.

use std::io;
use std::path::Path;

/// Where the notes of many stand in one file: each has so many bytes, behind the first so many.
pub const SLOT_BYTES: usize = 4096;

/// A byte of the file, as something to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Byte(pub u8);

/// The name for the file where there are no such locks.
#[cfg(not(ofd_locks))]
pub use elsewhere::LockFile;
#[cfg(ofd_locks)]
pub use linux::LockFile;

#[cfg(ofd_locks)]
mod access;
#[cfg(ofd_locks)]
mod linux {
    use std::ffi::{CString, c_int};
    use std::fs::{File, OpenOptions};
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
    use std::path::PathBuf;

    use super::access::{Folder, Status, Writers, holds_a_note, mark, parent};
    use super::{Byte, Path, SLOT_BYTES, io};
    use crate::file_locks;
    use crate::fork;

    /// An open lock file.
    pub struct LockFile {
        file: std::mem::ManuallyDrop<File>,
        /// That of the process that opened it.
        generation: u32,
        /// Whether it has no other name and nothing in it but a note, and so is no other program's file.
        is_writable: bool,
    }

    impl LockFile {
        /// Opens the file at `path`, made if it is missing, with the database's owner and group; whoever may
        /// write the database may open it.
        ///
        /// Refused are a link, what is no regular file, and a file that somebody may have made who cannot
        /// write the database: see `access`.
        pub fn open(path: &Path, database: &Path) -> io::Result<Self> {
            Self::open_or_make(path, database, false)
        }

        /// The same, for notes: fails where none can be written, since there is no room on the disk, or the file is
        /// another program's.
        pub fn open_for_notes(path: &Path, database: &Path) -> io::Result<Self> {
            let file = Self::open_or_make(path, database, true)?;
            match file.is_writable {
                true => Ok(file),
                false => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it has several names (hard links), or holds something else than notes, or nothing, as \
                     one that was made on a full disk: remove it if it is nobody's",
                )),
            }
        }

        fn open_or_make(path: &Path, database: &Path, is_for_notes: bool) -> io::Result<Self> {
            let writers = Writers::of(database)?;
            let file = match open_existing(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match make(path, &writers, is_for_notes) {
                        // Made by another process between the two tries.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                            open_existing(path)
                        }
                        outcome => outcome,
                    }
                }
                outcome => outcome,
            };
            Self::checked(file, path, &writers)
        }

        /// The same, and makes none: fails where there is none.
        pub fn open_existing(path: &Path, database: &Path) -> io::Result<Self> {
            Self::checked(open_existing(path), path, &Writers::of(database)?)
        }

        fn checked(file: io::Result<File>, path: &Path, writers: &Writers) -> io::Result<Self> {
            // SAFETY: may always be called.
            let us = unsafe { libc::geteuid() };
            let file = file.map_err(|error| explain(error, path))?;
            let mut file = Self {
                file: std::mem::ManuallyDrop::new(file),
                generation: fork::generation(),
                is_writable: false,
            };
            let status = file.file.metadata()?;
            writers
                .check(Status::from(&status), Folder::of(path)?, us)
                .map_err(|reason| io::Error::new(io::ErrorKind::PermissionDenied, reason))?;
            file.is_writable = status.nlink() <= 1 && holds_a_note(&file.file)?;
            // It is usable as it is.
            let _ = writers.mend(&file.file, us);
            Ok(file)
        }

        /// A file in memory that has no name: nobody opens it but by this descriptor's number, in this process.
        pub(crate) fn nameless() -> io::Result<Self> {
            // SAFETY: a NUL-terminated name, which is for those who look.
            let made = file_locks::open_known(|| unsafe {
                match libc::memfd_create(c"oxlite".as_ptr(), libc::MFD_CLOEXEC) {
                    -1 => Err(io::Error::last_os_error()),
                    // SAFETY: just made, and nobody else's.
                    descriptor => Ok(File::from_raw_fd(descriptor)),
                }
            })?;
            Ok(Self {
                file: std::mem::ManuallyDrop::new(made),
                generation: fork::generation(),
                is_writable: true,
            })
        }

        /// Whether anybody has locked a byte of the file at `path`. Nothing is locked, made or mended for that;
        /// what cannot be opened tells of no lock.
        pub fn is_locked(path: &Path, byte: Byte) -> bool {
            let flags = libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let opened = file_locks::open_known(|| {
                OpenOptions::new().read(true).custom_flags(flags).open(path)
            });
            let Ok(file) = opened else {
                return false;
            };
            let mut lock = self::lock(libc::F_WRLCK, byte, byte);
            // SAFETY: a descriptor that is open here and a lock, complete.
            let failed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
            file_locks::close_known(file);
            failed == 0 && c_int::from(lock.l_type) != libc::F_UNLCK
        }

        /// Has those open it who may write the database now, if it is ours to say.
        pub fn follow(&self, database: &Path) -> io::Result<()> {
            self.check_process()?;
            // SAFETY: may always be called.
            let us = unsafe { libc::geteuid() };
            Writers::of(database)?.mend(&self.file, us)
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

        /// A name that leads to this file for as long as it is open, in this process.
        pub fn open_path(&self) -> PathBuf {
            format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
        }

        /// Changes both of its times, of which inotify tells as of attributes.
        pub fn touch(&self) {
            // Where it fails the file is another user's, who is told by its being closed.
            let now = std::time::SystemTime::now();
            let both = std::fs::FileTimes::new()
                .set_accessed(now)
                .set_modified(now);
            let _ = self.file.set_times(both);
        }

        /// Replaces the note. Refused where the file has several names (hard links), or held something else
        /// when it was opened: it is another program's.
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

        /// Replaces the note of that number, of [`SLOT_BYTES`] at most, as [`write_note`](Self::write_note) does.
        pub fn write_slot(&self, number: u8, note: &[u8]) -> io::Result<()> {
            self.check_process()?;
            if !self.is_writable || note.len() > SLOT_BYTES {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            self.file.write_all_at(note, slot_begins(number))
        }

        /// The note of that number; shorter than [`SLOT_BYTES`] at the end of the file.
        pub fn read_slot(&self, number: u8) -> io::Result<Vec<u8>> {
            self.check_process()?;
            let mut note = vec![0; SLOT_BYTES];
            let read = self.file.read_at(&mut note, slot_begins(number))?;
            note.truncate(read);
            Ok(note)
        }

        /// Takes the name `path` away from this file, if it has it, holds nothing but notes, and nobody else has
        /// locked `byte`. Whoever has opened the file and not locked that byte yet has to look, once he has,
        /// whether it [is there](Self::is_at).
        pub fn remove_if_unlocked(&self, byte: Byte, path: &Path) {
            if self.is_writable
                && let Ok(true) = self.try_lock(byte, false)
                && self.is_at(path)
            {
                let _ = std::fs::remove_file(path);
            }
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

    fn slot_begins(number: u8) -> u64 {
        (u64::from(number) + 1) * SLOT_BYTES as u64
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    }

    fn open_existing(path: &Path) -> io::Result<File> {
        let flags = libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        file_locks::open_known(|| options().custom_flags(flags).open(path))
    }

    /// Makes the file, which has no name before it is complete, if the file system can do that. Where it
    /// cannot, others may meet it incomplete, are refused, and look again later.
    fn make(path: &Path, writers: &Writers, is_for_notes: bool) -> io::Result<File> {
        let nameless = libc::O_CLOEXEC | libc::O_TMPFILE;
        match file_locks::open_known(|| options().custom_flags(nameless).open(parent(path))) {
            Ok(file) => match new(&file, writers, is_for_notes).and_then(|()| name(&file, path)) {
                Ok(()) => return Ok(file),
                Err(error) => {
                    file_locks::close_known(file);
                    if [Some(libc::EEXIST), Some(libc::ENOSPC), Some(libc::EDQUOT)]
                        .contains(&error.raw_os_error())
                    {
                        return Err(error);
                    }
                }
            },
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) => {}
        }
        let flags = libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let file =
            file_locks::open_known(|| options().custom_flags(flags).create_new(true).open(path))?;
        match new(&file, writers, is_for_notes) {
            Ok(()) => Ok(file),
            Err(error) => {
                file_locks::close_known(file);
                Err(error)
            }
        }
    }

    fn new(file: &File, writers: &Writers, is_for_notes: bool) -> io::Result<()> {
        // Without room on the disk it can be locked all the same.
        match mark(file) {
            Err(error) if is_for_notes => Err(error),
            _ => writers.dress(file),
        }
    }

    /// Gives a file without a name one that nothing else has.
    fn name(file: &File, path: &Path) -> io::Result<()> {
        let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let to = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: two NUL-terminated paths.
        let failed = unsafe {
            libc::linkat(
                libc::AT_FDCWD,
                from.as_ptr(),
                libc::AT_FDCWD,
                to.as_ptr(),
                libc::AT_SYMLINK_FOLLOW,
            )
        };
        match failed {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Says whose a file is that may not be opened.
    fn explain(error: io::Error, path: &Path) -> io::Error {
        match (error.kind(), std::fs::symlink_metadata(path)) {
            (io::ErrorKind::PermissionDenied, Ok(status)) => io::Error::new(
                error.kind(),
                format!(
                    "no permission to open it: it belongs to user {} and group {} and has the mode {:03o}",
                    status.uid(),
                    status.gid(),
                    status.mode() & 0o777
                ),
            ),
            _ => error,
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

#[cfg(not(ofd_locks))]
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

        /// Fails.
        pub fn open_existing(path: &Path, database: &Path) -> io::Result<Self> {
            Self::open(path, database)
        }

        /// Nobody has locked anything here.
        pub fn is_locked(_path: &Path, _byte: Byte) -> bool {
            false
        }

        /// Fails.
        pub fn open_for_notes(path: &Path, database: &Path) -> io::Result<Self> {
            Self::open(path, database)
        }

        /// Never called.
        pub fn write_slot(&self, _number: u8, _note: &[u8]) -> io::Result<()> {
            match *self {}
        }

        /// Never called.
        pub fn read_slot(&self, _number: u8) -> io::Result<Vec<u8>> {
            match *self {}
        }

        /// Never called.
        pub fn remove_if_unlocked(&self, _byte: Byte, _path: &Path) {
            match *self {}
        }

        /// Never called.
        pub fn follow(&self, _database: &Path) -> io::Result<()> {
            match *self {}
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
        pub fn open_path(&self) -> std::path::PathBuf {
            match *self {}
        }

        /// Never called.
        pub fn touch(&self) {
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
