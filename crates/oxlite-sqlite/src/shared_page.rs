//! Memory that processes share for as long as the machine runs: numbers, bells to wake one another by, and
//! bytes of its file that they lock.
//!
//! It is a file in `/dev/shm`, named by what it is for, a database's device and inode and the user, so that
//! nobody meets there who could not read the other one's memory anyhow. Whoever cannot have it may have one of the
//! same kind alone, in a file without a name.
//!
//! Invariants:
//! - It is in volatile memory (tmpfs), so what is in it was never there before the machine was started.
//! - It is a regular file of the user's own, which nobody else can open, opened without following links,
//!   with its memory reserved: touching it does not fail for want of memory.
//! - Its words are only ever reached as atomics.
//! - The mapping keeps no lock alive in a forked child: the locks are on a descriptor of their own.
//! - Only Linux has it; elsewhere opening fails.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub(crate) const LINE_BYTES: usize = 64;

/// What a page is for, and what there is in it, in this order.
#[derive(Clone, Copy, Debug)]
pub struct PageKind {
    /// Part of its name.
    suffix: &'static str,
    /// Words, each in a line of the processor's cache of its own.
    pub(crate) words: usize,
    bells: usize,
    /// Words that stand side by side.
    cells: usize,
}

impl PageKind {
    /// A page of that name, which is part of a file's.
    pub const fn new(suffix: &'static str, words: usize, bells: usize, cells: usize) -> Self {
        Self {
            suffix,
            words,
            bells,
            cells,
        }
    }

    /// Where the page of that user for the file of that device and inode is.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn path(self, user: u32, device: u64, inode: u64) -> PathBuf {
        let suffix = self.suffix;
        Path::new("/dev/shm").join(format!("oxlite{suffix}-{user}-{device:x}-{inode:x}"))
    }

    /// A bell has a line for how often it has rung and one for how many wait.
    #[cfg_attr(not(ofd_locks), allow(dead_code))]
    const fn bell_offset(self, number: usize) -> usize {
        assert!(number <= self.bells, "no such bell");
        (self.words + 2 * number) * LINE_BYTES
    }

    #[cfg_attr(not(ofd_locks), allow(dead_code))]
    const fn cell_offset(self, number: usize) -> usize {
        assert!(number <= self.cells, "no such cell");
        self.bell_offset(self.bells) + number * size_of::<AtomicU64>()
    }

    /// Whole pages of the processor's.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) const fn size_bytes(self) -> usize {
        self.cell_offset(self.cells).next_multiple_of(4096)
    }
}

#[cfg(not(ofd_locks))]
pub use elsewhere::{SharedBell, SharedPage};
#[cfg(ofd_locks)]
pub use linux::{SharedBell, SharedPage};

#[cfg(ofd_locks)]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{AtomicU64, Duration, LINE_BYTES, PageKind, Path, PathBuf, io};
    use crate::lock_file::LockFile;

    /// The kinds of file systems that are gone when the machine is.
    const VOLATILE: [i64; 2] = [libc::TMPFS_MAGIC, 0x8584_58f6]; // and ramfs

    /// The page of one database.
    pub struct SharedPage {
        /// Mapped until this is dropped.
        memory: NonNull<u8>,
        kind: PageKind,
        lock_file: LockFile,
        path: PathBuf,
    }

    // SAFETY: the memory has no thread affinity; the methods below reach it as atomics alone, and `drop` alone
    // takes the mapping away.
    unsafe impl Send for SharedPage {}
    // SAFETY: as above.
    unsafe impl Sync for SharedPage {}

    impl SharedPage {
        /// Opens the page for the file of that device and inode; made, full of zeros, if it is missing.
        ///
        /// Fails with `Interrupted` if somebody takes it away meanwhile: then it is to be tried again.
        pub fn open(kind: PageKind, device: u64, inode: u64) -> io::Result<Self> {
            // SAFETY: may always be called.
            let user = unsafe { libc::geteuid() };
            let path = kind.path(user, device, inode);
            let size_bytes = kind.size_bytes();
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(&path)?;
            let status = file.metadata()?;
            let is_ours = status.is_file()
                && status.uid() == user
                && status.mode() & 0o077 == 0
                && status.nlink() <= 1 // another name may be one that somebody else gave it
                && status.len() <= size_bytes as u64;
            if !is_ours {
                return Err(refused("it is no page of this user's alone"));
            }
            if !is_volatile(&file)? {
                return Err(refused("it would outlive the machine's restart"));
            }
            reserve(&file, kind)?;
            let lock_file = LockFile::open(&path, &path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::ErrorKind::Interrupted.into(),
                _ => error,
            })?;
            if !lock_file.is_same(&status)? {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Self::map(kind, &file, lock_file, path)
        }

        /// A page of this process alone, full of zeros; where it can have none together with others.
        pub fn alone(kind: PageKind) -> io::Result<Self> {
            let lock_file = LockFile::nameless()?;
            let path = lock_file.open_path();
            let file = OpenOptions::new().read(true).write(true).open(&path)?;
            reserve(&file, kind)?;
            Self::map(kind, &file, lock_file, path)
        }

        fn map(
            kind: PageKind,
            file: &File,
            lock_file: LockFile,
            path: PathBuf,
        ) -> io::Result<Self> {
            // SAFETY: a new mapping of an open descriptor, which may be closed afterwards.
            let memory = unsafe {
                libc::mmap64(
                    std::ptr::null_mut(),
                    kind.size_bytes(),
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    file.as_raw_fd(),
                    0,
                )
            };
            match NonNull::new(memory.cast::<u8>()) {
                Some(page) if memory != libc::MAP_FAILED => Ok(Self {
                    memory: page,
                    kind,
                    lock_file,
                    path,
                }),
                _ => Err(io::Error::last_os_error()),
            }
        }

        /// The file whose bytes are locked.
        pub fn lock_file(&self) -> &LockFile {
            &self.lock_file
        }

        /// Where it is.
        pub fn path(&self) -> &Path {
            &self.path
        }

        /// Whether others who look for it find this one.
        pub fn is_in_place(&self) -> bool {
            self.lock_file.is_at(&self.path)
        }

        /// Takes its name away. Who has it open keeps it.
        pub fn remove(&self) {
            if self.is_in_place() {
                let _ = std::fs::remove_file(&self.path);
            }
        }

        /// One of its words that have a line each.
        ///
        /// # Panics
        ///
        /// If there is none of that number.
        #[inline]
        pub fn word(&self, number: usize) -> &AtomicU64 {
            assert!(number < self.kind.words, "no such word");
            // SAFETY: within the mapping, which lives as long as `self`; aligned, since the mapping is to
            // a page and the place to a line; and nobody reaches it but as an atomic.
            unsafe {
                self.memory
                    .add(number * LINE_BYTES)
                    .cast::<AtomicU64>()
                    .as_ref()
            }
        }

        /// One of its words that stand side by side.
        ///
        /// # Panics
        ///
        /// If there is none of that number.
        #[inline]
        pub fn cell(&self, number: usize) -> &AtomicU64 {
            assert!(number < self.kind.cells, "no such cell");
            let offset = self.kind.cell_offset(number);
            // SAFETY: as for a word; aligned, since the first one stands at the beginning of a line.
            unsafe { self.memory.add(offset).cast::<AtomicU64>().as_ref() }
        }

        /// One of its bells.
        ///
        /// # Panics
        ///
        /// If there is none of that number.
        #[inline]
        pub fn bell(&self, number: usize) -> SharedBell<'_> {
            assert!(number < self.kind.bells, "no such bell");
            let offset = self.kind.bell_offset(number);
            // SAFETY: as for a word; there are two lines.
            unsafe {
                SharedBell {
                    rings: self.memory.add(offset).cast::<AtomicU32>().as_ref(),
                    waiting: self
                        .memory
                        .add(offset + LINE_BYTES)
                        .cast::<AtomicU32>()
                        .as_ref(),
                }
            }
        }
    }

    /// What processes wake one another by.
    #[derive(Clone, Copy)]
    pub struct SharedBell<'p> {
        rings: &'p AtomicU32,
        /// Those who were killed while they waited are counted for ever, which costs a call now and then.
        waiting: &'p AtomicU32,
    }

    impl SharedBell<'_> {
        /// How often it has rung, for [`wait`](Self::wait).
        pub fn rings(&self) -> u32 {
            self.rings.load(Ordering::SeqCst)
        }

        /// Wakes all who wait, in whatever process; whether there was anybody.
        pub fn ring(&self) -> bool {
            self.rings.fetch_add(1, Ordering::SeqCst);
            // Whoever counts himself after this look finds that the bell has rung.
            if self.waiting.load(Ordering::SeqCst) == 0 {
                return false;
            }
            self.wake_waiting() > 0
        }

        /// The same, whether or not anybody is counted as waiting.
        pub fn wake(&self) {
            self.rings.fetch_add(1, Ordering::SeqCst);
            self.wake_waiting();
        }

        fn wake_waiting(&self) -> libc::c_long {
            // SAFETY: the address of a word of four bytes in a mapping of ours; not a private futex,
            // since other processes wait at it. Nothing can be done about an error.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.rings.as_ptr(),
                    libc::FUTEX_WAKE,
                    i32::MAX,
                )
            }
        }

        /// Waits until it has rung more often than `rings`, for `at_most` at the longest; may return
        /// without a cause.
        pub fn wait(&self, rings: u32, at_most: Duration) {
            let limit = libc::timespec {
                tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: at_most.subsec_nanos().into(),
            };
            self.waiting.fetch_add(1, Ordering::SeqCst);
            // SAFETY: as in `ring`; the time limit is read during the call.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.rings.as_ptr(),
                    libc::FUTEX_WAIT,
                    rings,
                    &raw const limit,
                );
            }
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }

        /// Forgets those who were killed while they waited; for whoever alone waits at it, before he does.
        pub fn forget_waiting(&self) {
            self.waiting.store(0, Ordering::SeqCst);
        }
    }

    impl Drop for SharedPage {
        fn drop(&mut self) {
            // SAFETY: mapped by `open`, and nobody has a reference to it any more. In a forked child it
            // is the child's own copy of the mapping.
            unsafe { libc::munmap(self.memory.as_ptr().cast(), self.kind.size_bytes()) };
        }
    }

    /// Has memory for it, so that touching it does not fail.
    fn reserve(file: &File, kind: PageKind) -> io::Result<()> {
        // SAFETY: an open descriptor of ours. With less room than asked for it fails.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, kind.size_bytes() as _) } {
            0 => Ok(()),
            failed => Err(io::Error::from_raw_os_error(failed)),
        }
    }

    fn is_volatile(file: &File) -> io::Result<bool> {
        let mut status = std::mem::MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: an open descriptor, and a place that is filled if the call succeeds.
        let status = unsafe {
            if libc::fstatfs(file.as_raw_fd(), status.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            status.assume_init()
        };
        // Signed with the GNU C library, unsigned with musl; the numbers of file systems fit both.
        #[allow(
            clippy::unnecessary_cast,
            clippy::cast_possible_wrap,
            reason = "by platform"
        )]
        let kind = status.f_type as i64;
        Ok(VOLATILE.contains(&kind))
    }

    fn refused(why: &str) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, why)
    }
}

#[cfg(not(ofd_locks))]
mod elsewhere {
    use std::marker::PhantomData;

    use super::{AtomicU64, Duration, PageKind, Path, io};
    use crate::lock_file::LockFile;

    /// There is none here.
    pub enum SharedPage {}

    impl SharedPage {
        /// Fails.
        pub fn open(_kind: PageKind, _device: u64, _inode: u64) -> io::Result<Self> {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this system has no memory that processes can share in this way",
            ))
        }

        /// Fails.
        pub fn alone(kind: PageKind) -> io::Result<Self> {
            Self::open(kind, 0, 0)
        }

        /// Never called.
        pub fn lock_file(&self) -> &LockFile {
            match *self {}
        }

        /// Never called.
        pub fn path(&self) -> &Path {
            match *self {}
        }

        /// Never called.
        pub fn is_in_place(&self) -> bool {
            match *self {}
        }

        /// Never called.
        pub fn remove(&self) {
            match *self {}
        }

        /// Never called.
        pub fn word(&self, _number: usize) -> &AtomicU64 {
            match *self {}
        }

        /// Never called.
        pub fn cell(&self, _number: usize) -> &AtomicU64 {
            match *self {}
        }

        /// Never called.
        pub fn bell(&self, _number: usize) -> SharedBell<'_> {
            match *self {}
        }
    }

    /// There is none here.
    #[derive(Clone, Copy)]
    pub struct SharedBell<'p>(std::convert::Infallible, PhantomData<&'p ()>);

    impl SharedBell<'_> {
        /// Never called.
        pub fn rings(&self) -> u32 {
            match self.0 {}
        }

        /// Never called.
        pub fn ring(&self) -> bool {
            match self.0 {}
        }

        /// Never called.
        pub fn wake(&self) {
            match self.0 {}
        }

        /// Never called.
        pub fn wait(&self, _rings: u32, _at_most: Duration) {
            match self.0 {}
        }

        /// Never called.
        pub fn forget_waiting(&self) {
            match self.0 {}
        }
    }
}
