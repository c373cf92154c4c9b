//! A page of memory that processes share for as long as the machine runs: counters, a bell to wake one
//! another by, and a file beside it whose bytes they lock.
//!
//! It is a file in `/dev/shm`, named by a database's device and inode and by the user, so that nobody
//! meets there who could not read the other one's memory anyhow.
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

/// How many words there are, each in a line of the processor's cache of its own.
pub(crate) const WORDS: usize = 32;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) const LINE_BYTES: usize = 64;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) const SIZE_BYTES: usize = 4096;

/// Where the page of that user for the file of that device and inode is.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) fn path_of(user: u32, device: u64, inode: u64) -> PathBuf {
    Path::new("/dev/shm").join(format!("oxlite-{user}-{device:x}-{inode:x}"))
}

#[cfg(not(ofd_locks))]
pub use elsewhere::SharedPage;
#[cfg(ofd_locks)]
pub use linux::SharedPage;

#[cfg(ofd_locks)]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{AtomicU64, Duration, LINE_BYTES, Path, PathBuf, SIZE_BYTES, WORDS, io, path_of};
    use crate::lock_file::LockFile;

    /// Where the bell stands, behind the words, and how many wait for it.
    const BELL_OFFSET: usize = WORDS * LINE_BYTES;
    const WAITING_OFFSET: usize = BELL_OFFSET + LINE_BYTES;
    const _: () = assert!(WAITING_OFFSET + LINE_BYTES <= SIZE_BYTES);

    /// The kinds of file systems that are gone when the machine is.
    const VOLATILE: [i64; 2] = [libc::TMPFS_MAGIC, 0x8584_58f6]; // and ramfs

    /// The page of one database.
    pub struct SharedPage {
        /// Mapped until this is dropped.
        memory: NonNull<u8>,
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
        pub fn open(device: u64, inode: u64) -> io::Result<Self> {
            // SAFETY: may always be called.
            let user = unsafe { libc::geteuid() };
            let path = path_of(user, device, inode);
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
                && status.len() <= SIZE_BYTES as u64;
            if !is_ours {
                return Err(refused("it is no page of this user's alone"));
            }
            if !is_volatile(&file)? {
                return Err(refused("it would outlive the machine's restart"));
            }
            // SAFETY: an open descriptor of ours. With less room than asked for it fails.
            let failed = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, SIZE_BYTES as _) };
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            let lock_file = LockFile::open(&path, &path)?;
            if !lock_file.is_same(&status)? {
                return Err(io::ErrorKind::Interrupted.into());
            }
            // SAFETY: a new mapping of an open descriptor, which may be closed afterwards.
            let memory = unsafe {
                libc::mmap64(
                    std::ptr::null_mut(),
                    SIZE_BYTES,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    file.as_raw_fd(),
                    0,
                )
            };
            match NonNull::new(memory.cast::<u8>()) {
                Some(page) if memory != libc::MAP_FAILED => Ok(Self {
                    memory: page,
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

        /// One of its words.
        ///
        /// # Panics
        ///
        /// If there is none of that number.
        #[inline]
        pub fn word(&self, number: usize) -> &AtomicU64 {
            assert!(number < WORDS, "there are {WORDS} words");
            // SAFETY: within the mapping, which lives as long as `self`; aligned, since the mapping is to
            // a page and the place to a line; and nobody reaches it but as an atomic.
            unsafe {
                self.memory
                    .add(number * LINE_BYTES)
                    .cast::<AtomicU64>()
                    .as_ref()
            }
        }

        fn half_word(&self, offset: usize) -> &AtomicU32 {
            // SAFETY: as for a word; both offsets lie within the mapping.
            unsafe { self.memory.add(offset).cast::<AtomicU32>().as_ref() }
        }

        fn bell(&self) -> &AtomicU32 {
            self.half_word(BELL_OFFSET)
        }

        /// Those who were killed while they waited are counted for ever, which costs a call now and then.
        fn waiting(&self) -> &AtomicU32 {
            self.half_word(WAITING_OFFSET)
        }

        /// How often the bell has rung, for [`wait`](Self::wait).
        pub fn rings(&self) -> u32 {
            self.bell().load(Ordering::SeqCst)
        }

        /// Wakes all who wait, in whatever process.
        pub fn ring(&self) {
            self.bell().fetch_add(1, Ordering::SeqCst);
            // Whoever counts himself after this look finds that the bell has rung.
            if self.waiting().load(Ordering::SeqCst) == 0 {
                return;
            }
            // SAFETY: the address of a word of four bytes in a mapping of ours; not a private futex,
            // since other processes wait at it. Nothing can be done about an error, and those who wait
            // look by themselves after a time.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.bell().as_ptr(),
                    libc::FUTEX_WAKE,
                    i32::MAX,
                );
            }
        }

        /// Waits until the bell has rung more often than `rings`, for `at_most` at the longest; may
        /// return without a cause.
        pub fn wait(&self, rings: u32, at_most: Duration) {
            let limit = libc::timespec {
                tv_sec: libc::time_t::try_from(at_most.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: at_most.subsec_nanos().into(),
            };
            self.waiting().fetch_add(1, Ordering::SeqCst);
            // SAFETY: as in `ring`; the time limit is read during the call.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.bell().as_ptr(),
                    libc::FUTEX_WAIT,
                    rings,
                    &raw const limit,
                );
            }
            self.waiting().fetch_sub(1, Ordering::SeqCst);
        }
    }

    impl Drop for SharedPage {
        fn drop(&mut self) {
            // SAFETY: mapped by `open`, and nobody has a reference to it any more. In a forked child it
            // is the child's own copy of the mapping.
            unsafe { libc::munmap(self.memory.as_ptr().cast(), SIZE_BYTES) };
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
        #[allow(clippy::useless_conversion, reason = "its type differs by platform")]
        let kind = i64::from(status.f_type);
        Ok(VOLATILE.contains(&kind))
    }

    fn refused(why: &str) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, why)
    }
}

#[cfg(not(ofd_locks))]
mod elsewhere {
    use super::{AtomicU64, Duration, Path, io};
    use crate::lock_file::LockFile;

    /// There is none here.
    pub enum SharedPage {}

    impl SharedPage {
        /// Fails.
        pub fn open(_device: u64, _inode: u64) -> io::Result<Self> {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this system has no memory that processes can share in this way",
            ))
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
        pub fn rings(&self) -> u32 {
            match *self {}
        }

        /// Never called.
        pub fn ring(&self) {
            match *self {}
        }

        /// Never called.
        pub fn wait(&self, _rings: u32, _at_most: Duration) {
            match *self {}
        }
    }
}
