//! A read-only view of the page that processes share, for a process that is not one of them.
//!
//! Invariants:
//! - Nothing is made, mapped or locked: whoever looks is not noticed, and keeps nobody waiting.
//! - Only a page of this user's own is read, whole; the words of a moment may be a few commits apart.
//! - Only Linux has it; elsewhere there is never a page.

use std::io;

use crate::lock_file::Byte;
use crate::shared_page::PageKind;

/// How often the locks are read again, at most.
#[cfg(target_os = "linux")]
const READINGS: usize = 10;

/// What the page of one database held when it was read.
pub struct SharedPageView {
    words: Vec<u64>,
    /// By which numbers the system knows the page.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    device: u64,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    inode: u64,
}

impl SharedPageView {
    /// One of its words.
    ///
    /// # Panics
    ///
    /// If there is none of that number.
    pub fn word(&self, number: usize) -> u64 {
        self.words[number]
    }
}

/// Whether there is a file of the user's own, or one may be.
#[cfg(target_os = "linux")]
fn may_be_ours(path: &std::path::Path, user: u32) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    match std::fs::symlink_metadata(path) {
        Ok(status) => Ok(status.is_file() && status.uid() == user),
        // Nobody finds anything in a folder that he may not look into.
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::PermissionDenied => Ok(false),
            _ => Err(error),
        },
    }
}

#[cfg(target_os = "linux")]
impl SharedPageView {
    /// Reads this user's page for the file of that device and inode; `None` if there is none.
    pub fn read(kind: PageKind, device: u64, inode: u64) -> io::Result<Option<Self>> {
        use std::fs::OpenOptions;
        use std::io::Read;
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

        use crate::shared_page::LINE_BYTES;

        // SAFETY: may always be called.
        let user = unsafe { libc::geteuid() };
        let path = kind.path(user, device, inode);
        let open = || {
            OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(&path)
        };
        let mut file = match open() {
            Ok(file) => file,
            // That it cannot be opened does not say that there is none.
            Err(_) if !may_be_ours(&path, user)? => return Ok(None),
            // Or it has been made just now.
            Err(_) => open()?,
        };
        let status = file.metadata()?;
        let is_ours = status.is_file() && status.uid() == user && status.mode() & 0o077 == 0;
        // A shorter one is being made.
        if !is_ours || status.len() != kind.size_bytes() as u64 {
            return Ok(None);
        }
        let mut bytes = vec![0; kind.words * LINE_BYTES];
        file.read_exact(&mut bytes)?;
        let words = bytes
            .chunks_exact(LINE_BYTES)
            .filter_map(|line| line.first_chunk().copied().map(u64::from_ne_bytes))
            .collect();
        Ok(Some(Self {
            words,
            device: status.dev(),
            inode: status.ino(),
        }))
    }

    /// How many have a byte of it locked, alone or together; `None` where the system does not tell.
    ///
    /// Asking for the lock would name one of them, and no more. The list of all locks is given out a part
    /// at a time, and what changes meanwhile shifts the next part: a line is missing or comes twice. So it
    /// is read until two readings agree.
    pub fn holders(&self, byte: Byte) -> Option<usize> {
        let (major, minor) = (libc::major(self.device), libc::minor(self.device));
        let file = format!("{major:02x}:{minor:02x}:{}", self.inode);
        let count = || Some(holders_among(&all_locks().ok()?, &file, byte));
        let mut last = count()?;
        for _ in 0..READINGS {
            let again = count()?;
            if again == last {
                break;
            }
            last = again;
        }
        Some(last)
    }
}

/// The locks of all processes, in as few parts as the system gives.
#[cfg(target_os = "linux")]
fn all_locks() -> io::Result<String> {
    use std::io::Read;

    let mut list = std::fs::File::open("/proc/locks")?;
    let mut text = Vec::new();
    let mut part = [0; 16 * 1024];
    loop {
        match list.read(&mut part)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            length => text.extend_from_slice(&part[..length]),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl SharedPageView {
    /// There is none.
    pub fn read(_kind: PageKind, _device: u64, _inode: u64) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Never called.
    pub fn holders(&self, _byte: Byte) -> Option<usize> {
        None
    }
}

/// Counts the lines of `/proc/locks` that are of a lock on that byte of that file.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn holders_among(locks: &str, file: &str, byte: Byte) -> usize {
    let is_held = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // `1: OFDLCK ADVISORY READ -1 00:1b:42 0 0`; who waits has `->` before the kind.
        let [_, "OFDLCK", _, _, _, of, first, last] = fields[..] else {
            return false;
        };
        let first = first.parse::<u64>();
        let last = last.parse::<u64>().unwrap_or(u64::MAX);
        of == file && first.is_ok_and(|first| (first..=last).contains(&u64::from(byte.0)))
    };
    locks.lines().filter(is_held).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_that_file_and_byte_are_counted() {
        let locks = "\
1: OFDLCK ADVISORY  READ -1 00:1b:42 0 0
1: -> OFDLCK ADVISORY  WRITE -1 00:1b:42 0 0
2: OFDLCK ADVISORY  READ -1 00:1b:42 0 EOF
3: OFDLCK ADVISORY  WRITE -1 00:1b:42 1 1
4: OFDLCK ADVISORY  READ -1 00:1b:421 0 0
5: POSIX  ADVISORY  READ 77 00:1b:42 0 0
";
        assert_eq!(holders_among(locks, "00:1b:42", Byte(0)), 2);
        assert_eq!(holders_among(locks, "00:1b:42", Byte(1)), 2);
        assert_eq!(holders_among("", "00:1b:42", Byte(0)), 0);
    }
}
