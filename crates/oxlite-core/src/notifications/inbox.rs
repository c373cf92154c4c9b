//! What one listener has not taken yet.
//!
//! Invariants:
//! - A listener that takes nothing costs [`WAITING_AT_MOST`] notifications and no more: then nothing is read for
//!   it until it has taken some. What has been deleted by then is lost, and it is told.
//! - After an end (lost, failed, closed) a listener is given nothing more.
//! - A listener's bell rings exactly while something waits for it, or it has come to its end: whoever takes the last
//!   one silences it, under the lock under which others are added.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;

use oxlite_sqlite::{Mutex, Value};

use super::channel::Pattern;
use super::position::{Epoch, Position};
use super::store::State;
use crate::error::Error;
use crate::wait::bell::Bell;

/// What waits for a listener, at most: so many, and bytes of payload, beside the last one.
const WAITING_AT_MOST: usize = 1024;
const WAITING_BYTES_AT_MOST: usize = 4 << 20;

/// A notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// In which channel.
    pub channel: Box<str>,
    /// Text, bytes or NULL, as inserted.
    pub payload: Value,
    /// Which one it is.
    pub position: Position,
}

impl Notification {
    fn bytes(&self) -> usize {
        match &self.payload {
            Value::Text(bytes) | Value::Blob(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// That notifications are not there any more which a listener would have been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Whoever goes on from here is given all that is kept.
    pub resume_from: Position,
    /// Whether the position was of another history.
    pub is_of_another_epoch: bool,
}

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.is_of_another_epoch {
            true => {
                "the position is of another history: the database was replaced or restored, or the machine was \
                 started anew and may have lost commits"
            }
            false => {
                "notifications after this position have been deleted, since they were too old or too many"
            }
        };
        write!(
            formatter,
            "{why}. Read the state that they tell of anew, then listen with since={:?}",
            self.resume_from.to_string()
        )
    }
}

/// Why a listener is given nothing more.
#[derive(Clone, Debug)]
pub enum End {
    /// Some are not there any more.
    Lost(Lost),
    /// They could not be read.
    Failed(Error),
    /// The feed was closed.
    Closed,
    /// The listener itself was.
    Left,
}

/// What one listener has not taken yet.
pub(super) struct Inbox {
    patterns: Box<[Pattern]>,
    pub(super) bell: Bell,
    content: Mutex<Content>,
}

struct Content {
    waiting: VecDeque<Arc<Notification>>,
    bytes: usize,
    /// Of which history; none as long as there was no table.
    epoch: Option<Epoch>,
    /// All up to this one have been read for it.
    read: i64,
    /// Whether there was no room for one that has been read.
    is_full: bool,
    end: Option<End>,
}

/// What of the notifications after that one is not there any more, if any.
pub(super) fn lost(read: i64, epoch: Option<Epoch>, found: &State) -> Option<Lost> {
    let is_of_another_epoch =
        epoch.is_some_and(|epoch| epoch != found.epoch) || read > found.latest;
    (is_of_another_epoch || read.saturating_add(1) < found.first_kept).then_some(Lost {
        resume_from: Position {
            epoch: found.epoch,
            number: found.first_kept - 1,
        },
        is_of_another_epoch,
    })
}

impl Inbox {
    /// An empty one, that has read nothing.
    pub(super) fn new(patterns: Vec<Pattern>) -> io::Result<Self> {
        Ok(Self {
            patterns: patterns.into(),
            bell: Bell::new()?,
            content: Mutex::new(Content {
                waiting: VecDeque::new(),
                bytes: 0,
                epoch: None,
                read: 0,
                is_full: false,
                end: None,
            }),
        })
    }

    /// What it listens to.
    pub(super) fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Reads on from there, before anything is read for it.
    pub(super) fn begin(&self, read: i64, epoch: Option<Epoch>) {
        let mut content = self.content.lock();
        content.read = read;
        content.epoch = epoch;
    }

    /// Whether something waits, or it has come to its end.
    pub(super) fn has_news(&self) -> bool {
        let content = self.content.lock();
        !content.waiting.is_empty() || content.end.is_some()
    }

    /// Whether it has come to its end: what waits is still to be taken.
    pub(super) fn has_ended(&self) -> bool {
        self.content.lock().end.is_some()
    }

    /// Whether it has come to its end, and nothing waits any more.
    pub(super) fn is_over(&self) -> bool {
        let content = self.content.lock();
        content.waiting.is_empty() && content.end.is_some()
    }

    /// The next one, `None` if none waits; and whether there is room again for what was not read.
    pub(super) fn take(&self) -> Result<(Option<Arc<Notification>>, bool), End> {
        let mut content = self.content.lock();
        let Some(notification) = content.waiting.pop_front() else {
            return match &content.end {
                Some(end) => Err(end.clone()),
                None => Ok((None, false)),
            };
        };
        content.bytes -= notification.bytes();
        if content.waiting.is_empty() && content.end.is_none() {
            self.bell.silence();
        }
        // Half of them at a time.
        let is_refilled = content.is_full
            && content.waiting.len() <= WAITING_AT_MOST / 2
            && content.bytes <= WAITING_BYTES_AT_MOST / 2;
        if is_refilled {
            content.is_full = false;
        }
        Ok((Some(notification), is_refilled))
    }

    /// Ends it, and forgets what was not taken.
    pub(super) fn leave(&self) {
        let mut content = self.content.lock();
        content.waiting.clear();
        content.bytes = 0;
        content.end = Some(End::Left);
        self.bell.ring();
    }

    /// Up to which one it has read, if there is room for another.
    pub(super) fn has_room(&self) -> Option<i64> {
        let content = self.content.lock();
        (!content.is_full && content.end.is_none()).then_some(content.read)
    }

    /// Whether it reads that history; if it has read none yet, it does from now on.
    pub(super) fn is_of(&self, epoch: Epoch) -> bool {
        *self.content.lock().epoch.get_or_insert(epoch) == epoch
    }

    /// Offers the notification of that number; whether it may be offered another.
    pub(super) fn offer(
        &self,
        number: i64,
        channel: &str,
        make: impl FnOnce() -> Arc<Notification>,
    ) -> bool {
        let mut content = self.content.lock();
        if content.is_full || content.end.is_some() {
            return false;
        }
        if number <= content.read {
            return true;
        }
        if !self.patterns.iter().any(|pattern| pattern.matches(channel)) {
            content.read = number;
            return true;
        }
        if content.waiting.len() >= WAITING_AT_MOST || content.bytes >= WAITING_BYTES_AT_MOST {
            content.is_full = true;
            return false;
        }
        let notification = make();
        content.read = number;
        content.bytes += notification.bytes();
        content.waiting.push_back(notification);
        if content.waiting.len() == 1 {
            self.bell.ring();
        }
        true
    }

    /// For one of another history, or that has read up to `read`, after which there is not the next one: it is told
    /// what it has lost, or goes on after what somebody else has deleted; whether either is so.
    pub(super) fn skip(&self, read: i64, found: &State, first: Option<i64>) -> bool {
        let mut content = self.content.lock();
        let is_of_another_epoch = *content.epoch.get_or_insert(found.epoch) != found.epoch;
        if content.is_full
            || content.end.is_some()
            || (content.read != read && !is_of_another_epoch)
        {
            return false;
        }
        if let Some(lost) = lost(content.read, content.epoch, found) {
            drop(content);
            self.end(End::Lost(lost));
            return true;
        }
        match first {
            Some(first) => {
                content.read = content.read.max(first - 1);
                true
            }
            None => false,
        }
    }

    pub(super) fn end(&self, end: End) {
        let mut content = self.content.lock();
        if content.end.is_none() {
            content.end = Some(end);
            self.bell.ring();
        }
    }
}
