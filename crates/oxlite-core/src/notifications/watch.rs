//! Commits that nobody signals: of other programs, of processes that do not share the page, of writers that were
//! killed before they could.
//!
//! One process of those that listen watches the files (inotify), and signals for all what it finds. The kernel
//! tells of a write before its commit is to be seen, so the watcher looks again, at growing intervals, and for as
//! long as anybody has the write lock.
//!
//! Invariants:
//! - Where nothing is written, nobody wakes.
//! - A file is watched for one write at a time, and again after [`LOOK_EVERY`] at the earliest: who writes all the
//!   time is not held up.
//! - Who watches has a byte of the page locked. When its process ends, the page's file is closed, by which the
//!   others hear that there is nobody.
//! - Neither the database nor its index is opened: the connection that is there is asked.
//! - Where files cannot be watched, one looks every [`POLL_EVERY`], and says so.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use super::channel::EVERYBODY;
use crate::error::{Error, Result};
use crate::file::{beside, network};
use crate::signals::{Signals, WatchRight};
use crate::wait::bell::Bell;

/// How often one looks at most where something is written all the time, and how long after a write one looks first: the
/// kernel tells of it before it is committed, and whoever has been signalled is not to be disturbed meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(4);
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// How soon one looks again after a write; then after twice the time, until it would be longer than the other; then
/// for as long as anybody has the write lock.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(1);
const LOOK_AGAIN_WITHIN: Duration = Duration::from_millis(500);

/// How often one looks where files cannot be watched.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// How soon one tries again to take the place of a watcher that is just going; then after twice the time, until it would
/// be longer than the other. Where processors are few, the end of a process can take longer than it works.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);
const TRY_AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// Finds what nobody has signalled.
pub(super) trait Look: Send {
    /// Signals what there is after that notification; up to which one it has looked.
    fn look(&mut self, watched: i64) -> Result<i64>;
}

/// Watches until the bell rings.
pub(super) fn watch(database: &Path, signals: &Arc<Signals>, look: &mut dyn Look, stop: &Bell) {
    let mut watcher = Watcher {
        files: [database.to_owned(), beside::wal(database)],
        index: beside::shared_memory(database),
        notices: Notices::new(database, signals),
        stop,
    };
    while let Some(right) = watcher.take_right(signals) {
        if watcher.keep_watch(&right, look) {
            return;
        }
    }
}

struct Watcher<'w> {
    files: [PathBuf; 2],
    index: PathBuf,
    notices: Notices,
    stop: &'w Bell,
}

impl Watcher<'_> {
    /// Waits until nobody else watches; `None` when the bell has rung.
    fn take_right(&self, signals: &Arc<Signals>) -> Option<WatchRight> {
        let mut pause = TRY_AGAIN_AFTER;
        loop {
            if let Some(right) = WatchRight::take(signals) {
                return Some(right);
            }
            // The kernel tells that the page is closed a moment before the lock is free.
            match self
                .notices
                .wait(self.stop, (pause <= TRY_AGAIN_WITHIN).then_some(pause))
            {
                Heard::Stop => return None,
                Heard::Nothing => pause *= 2,
                Heard::Something => pause = TRY_AGAIN_AFTER,
            }
        }
    }

    /// Looks whenever something is written, until the bell rings, which is answered by `true`.
    fn keep_watch(&mut self, right: &WatchRight, look: &mut dyn Look) -> bool {
        let mut watched = right.watched();
        let mut pause = LOOK_AGAIN_AFTER;
        loop {
            for file in &self.files {
                self.notices.watch(file, &self.files[0]);
            }
            // After the files are watched again: what is written from here on is told. Before looking: what is
            // committed by the time that nobody writes any more is seen.
            let is_being_written = is_being_written(&self.index);
            let looked = Instant::now();
            let is_seen = match look.look(watched) {
                Ok(now) => {
                    watched = now;
                    right.note_watched(now);
                    true
                }
                // Another program has the file for itself.
                Err(Error::Locked { .. }) => false,
                // Whoever listens is to meet the same error.
                Err(_) => {
                    right.signal(&[EVERYBODY]);
                    true
                }
            };
            let next = match pause <= LOOK_AGAIN_WITHIN || is_being_written || !is_seen {
                true => Some(pause),
                false => None,
            };
            match self.notices.wait(self.stop, next) {
                Heard::Stop => return true,
                Heard::Nothing => pause = (pause * 2).min(LOOK_AGAIN_WITHIN * 2),
                Heard::Something => {
                    pause = LOOK_AGAIN_AFTER;
                    // What is written meanwhile is seen in one look.
                    let next = LOOK_EVERY.saturating_sub(looked.elapsed());
                    std::thread::sleep(next.max(LOOK_AFTER));
                }
            }
        }
    }
}

fn is_being_written(index: &Path) -> bool {
    oxlite_sqlite::is_write_locked(index).unwrap_or(false)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Stop,
    Something,
    Nothing,
}

/// What the kernel tells.
struct Notices(Option<OwnedFd>);

impl Notices {
    fn new(database: &Path, signals: &Signals) -> Self {
        let notices = match network::holds(database) {
            true => Err(network::REASON.to_owned()),
            false => Self::of_page(signals).map_err(|error| error.to_string()),
        };
        match notices {
            Ok(descriptor) => Self(Some(descriptor)),
            Err(why) => {
                warn(database, &why);
                Self(None)
            }
        }
    }

    fn of_page(signals: &Signals) -> std::io::Result<OwnedFd> {
        let descriptor = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // By its descriptor: its name may have been taken away, or be another one's.
        let flags = WatchFlags::CLOSE | WatchFlags::ATTRIB;
        add_watch(&descriptor, signals.page()?, flags)?;
        Ok(descriptor)
    }

    /// Tells of the next write to the file, if there is such a file, and of its end.
    fn watch(&mut self, file: &Path, database: &Path) {
        if let Some(descriptor) = &self.0 {
            let flags = WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONESHOT;
            match add_watch(descriptor, file, flags) {
                Ok(_) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => {
                    warn(database, &error.to_string());
                    self.0 = None;
                }
            }
        }
    }

    /// Waits until something is told or the bell rings, for `at_most` at the longest.
    fn wait(&self, stop: &Bell, at_most: Option<Duration>) -> Heard {
        let at_most = match self.0 {
            Some(_) => at_most,
            None => Some(POLL_EVERY),
        };
        let limit = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
        let mut watched = vec![PollFd::from_borrowed_fd(stop.borrowed(), PollFlags::IN)];
        if let Some(descriptor) = &self.0 {
            watched.push(PollFd::new(descriptor, PollFlags::IN));
        }
        let _ = poll(&mut watched, limit.as_ref());
        let is_told = |number: usize| {
            watched
                .get(number)
                .is_some_and(|entry| !entry.revents().is_empty())
        };
        if is_told(0) {
            return Heard::Stop;
        }
        match (&self.0, is_told(1)) {
            (Some(descriptor), true) => {
                forget_all(descriptor);
                Heard::Something
            }
            (Some(_), false) => Heard::Nothing,
            (None, _) => Heard::Something,
        }
    }
}

fn warn(database: &Path, why: &str) {
    log::warn!(
        "The files of {} cannot be watched: {why}. What other programs commit is looked for every {} ms.",
        database.display(),
        POLL_EVERY.as_millis()
    );
}

/// Takes what is told, which says no more than that one is to look.
fn forget_all(descriptor: &OwnedFd) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(descriptor, &mut buffer);
    while reader.next().is_ok() {}
}
