//! A bell that an event loop hears: a file descriptor that becomes readable.
//!
//! Invariant: as often as it is rung before it is silenced, it is heard at least once after the first.

use std::io;
use std::time::Duration;

/// A descriptor to wait for, and how it is made readable.
#[derive(Debug)]
pub struct Bell(imp::Bell);

impl Bell {
    /// A silent one. The error is the system's, or that this platform has nothing of the kind.
    pub fn new() -> io::Result<Self> {
        imp::Bell::new().map(Self)
    }

    /// Makes it readable; from any thread.
    pub fn ring(&self) {
        self.0.ring();
    }

    /// Makes it unreadable again; whether it had been rung.
    pub fn silence(&self) -> bool {
        self.0.silence()
    }

    /// Waits until it is readable, for `at_most` at the longest; returns early where the thread is signalled.
    pub fn wait(&self, at_most: Option<Duration>) -> io::Result<()> {
        self.0.wait(at_most)
    }

    /// What to wait for, together with others.
    #[cfg(unix)]
    pub(crate) fn borrowed(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.borrowed()
    }

    /// What to wait for.
    pub fn descriptor(&self) -> i32 {
        self.0.descriptor()
    }
}

/// Waits until something can be read.
#[cfg(unix)]
fn wait_for(descriptor: &std::os::fd::OwnedFd, at_most: Option<Duration>) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut watched = [PollFd::new(descriptor, PollFlags::IN)];
    // What is longer than can be said is for ever.
    let limit = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
    match poll(&mut watched, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
    use std::time::Duration;

    use rustix::event::{EventfdFlags, eventfd};

    #[derive(Debug)]
    pub(super) struct Bell(OwnedFd);

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Self(descriptor))
        }

        pub(super) fn ring(&self) {
            // It fails only where it is readable already, for the count is at its end.
            let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
        }

        pub(super) fn silence(&self) -> bool {
            let mut count = [0; 8];
            rustix::io::read(&self.0, &mut count).is_ok()
        }

        pub(super) fn wait(&self, at_most: Option<Duration>) -> io::Result<()> {
            super::wait_for(&self.0, at_most)
        }

        pub(super) fn borrowed(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        pub(super) fn descriptor(&self) -> i32 {
            self.0.as_raw_fd()
        }
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod imp {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
    use std::time::Duration;

    use rustix::io::{ioctl_fioclex, ioctl_fionbio};

    #[derive(Debug)]
    pub(super) struct Bell {
        readable: OwnedFd,
        writable: OwnedFd,
    }

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            let (readable, writable) = rustix::pipe::pipe()?;
            for descriptor in [&readable, &writable] {
                ioctl_fioclex(descriptor)?;
                ioctl_fionbio(descriptor, true)?;
            }
            Ok(Self { readable, writable })
        }

        pub(super) fn ring(&self) {
            // It fails only where it is full, hence readable.
            let _ = rustix::io::write(&self.writable, &[0]);
        }

        pub(super) fn silence(&self) -> bool {
            let mut bytes = [0; 64];
            let mut was_rung = false;
            while rustix::io::read(&self.readable, &mut bytes).is_ok_and(|count| count > 0) {
                was_rung = true;
            }
            was_rung
        }

        pub(super) fn wait(&self, at_most: Option<Duration>) -> io::Result<()> {
            super::wait_for(&self.readable, at_most)
        }

        pub(super) fn borrowed(&self) -> BorrowedFd<'_> {
            self.readable.as_fd()
        }

        pub(super) fn descriptor(&self) -> i32 {
            self.readable.as_raw_fd()
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::io;
    use std::time::Duration;

    #[derive(Debug)]
    pub(super) struct Bell;

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn ring(&self) {}

        pub(super) fn silence(&self) -> bool {
            false
        }

        pub(super) fn wait(&self, _at_most: Option<Duration>) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn descriptor(&self) -> i32 {
            -1
        }
    }
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_heard_once_however_often_it_was_rung() {
        let bell = Bell::new().expect("this platform has one");
        assert!(!bell.silence());
        bell.ring();
        bell.ring();
        assert!(bell.silence());
        assert!(!bell.silence());
        assert!(bell.descriptor() >= 0);
    }
}
