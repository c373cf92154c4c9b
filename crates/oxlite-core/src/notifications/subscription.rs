//! What is given to those who listen: notifications, or that there is news in another table of Oxlite's.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::inbox::{End, Inbox, Notification};
use super::source::{Source, no_signals};
use crate::error::Result;
use crate::signals::Listener;

/// A listener: what is notified in its channels waits here until it is taken. Ends when it is dropped.
pub struct Subscription {
    source: Arc<Source>,
    inbox: Arc<Inbox>,
}

impl Subscription {
    pub(super) fn new(source: Arc<Source>, inbox: Arc<Inbox>) -> Self {
        Self { source, inbox }
    }

    /// The next one; `None` if none waits. From any thread.
    pub fn take(&self) -> std::result::Result<Option<Arc<Notification>>, End> {
        self.source.check().map_err(End::Failed)?;
        let (notification, has_room_again) = self.inbox.take()?;
        if has_room_again {
            self.source.read_on();
        }
        Ok(notification)
    }

    /// Waits until one may be there, for `at_most` at the longest; returns early where the thread is signalled.
    pub fn wait(&self, at_most: Option<Duration>) -> io::Result<()> {
        oxlite_sqlite::about_to_wait();
        match self.source.read_alone(&self.inbox, at_most) {
            true => Ok(()),
            false => self.inbox.bell.wait(at_most),
        }
    }

    /// Whether it has come to its end, and nothing waits any more.
    pub fn has_ended(&self) -> bool {
        self.inbox.is_over()
    }

    /// For an event loop, which calls it before it waits: readable while one waits, and after the end.
    pub fn descriptor(&self) -> Result<i32> {
        self.source.check()?;
        self.source.read_by_thread()?;
        Ok(self.inbox.bell.descriptor())
    }

    /// Listens no longer, and wakes whoever waits. What was not taken is forgotten.
    pub fn close(&self) {
        if self.source.check().is_err() {
            return;
        }
        self.inbox.leave();
        self.source.forget(&self.inbox);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.close();
    }
}

/// Hears of rows in tables of Oxlite's, until it is dropped.
///
/// What is asked first is the number of the latest signal ([`seen`](Self::seen)), then the database, and then whether
/// there is a newer one.
pub struct Hearing {
    source: Arc<Source>,
    listener: Listener,
}

impl Hearing {
    pub(super) fn new(source: Arc<Source>, listener: Listener) -> Self {
        Self { source, listener }
    }

    /// The number of the latest signal.
    pub fn seen(&self) -> u64 {
        self.listener.seen()
    }

    /// Whether there is a signal with a greater number; if not, the descriptor is readable when there is one.
    pub fn has_newer(&self, seen: u64) -> Result<bool> {
        self.source.check()?;
        self.listener
            .wait(seen, Some(Duration::ZERO))
            .map_err(|error| no_signals(&error))
    }

    /// For an event loop: readable when there is news.
    pub fn descriptor(&self) -> i32 {
        self.listener.descriptor()
    }

    /// Whether the name of the database leads to another file, or to none.
    pub fn is_replaced(&self) -> bool {
        self.source.is_replaced()
    }
}
