//! NOTIFY and LISTEN of a database in this process: who listens to what, from where on.
//!
//! Invariants:
//! - A listener begins where the database stands when it is made. What is committed before it has said what it
//!   wants is read afterwards.
//! - A forked child is refused.

use std::sync::Arc;

use super::channel::{EVERYBODY, Pattern};
use super::inbox::{End, Inbox, Lost, lost};
use super::position::Position;
use super::source::{Source, no_signals};
use super::subscription::{Hearing, Subscription};
use crate::connection::Connection;
use crate::error::Result;
use crate::signals::Topic;

/// Reads the notifications of a database for all who listen, until it is dropped.
pub struct Feed(Arc<Source>);

impl Feed {
    /// Reads by this connection, which is used for nothing else.
    pub fn new(connection: Arc<Connection>) -> Result<Self> {
        Source::new(connection).map(|source| Self(Arc::new(source)))
    }

    /// Whether the table of notifications is there. [`Error::Locked`](crate::Error::Locked) soon, as for the others:
    /// whoever asks waits by himself.
    pub fn is_prepared(&self) -> Result<bool> {
        self.0.check()?;
        self.0.is_prepared()
    }

    /// Listens to channels from now on, or from after `since`.
    pub fn listen(
        &self,
        patterns: Vec<Pattern>,
        since: Option<Position>,
    ) -> Result<Result<Subscription, Lost>> {
        let source = &self.0;
        source.check()?;
        let inbox = Arc::new(Inbox::new(patterns).map_err(|error| no_signals(&error))?);
        let found = source.state_now()?;
        let begins = match (since, found) {
            (None, found) => found.map_or(0, |found| found.latest),
            (Some(since), Some(found)) => match lost(since.number, Some(since.epoch), &found) {
                Some(lost) => return Ok(Err(lost)),
                None => since.number,
            },
            // Where there is no table yet, and none can be made.
            (Some(since), None) => match Position::before_the_first(source.path())? {
                position if position == since => 0,
                position => {
                    return Ok(Err(Lost {
                        resume_from: position,
                        is_of_another_epoch: true,
                    }));
                }
            },
        };
        inbox.begin(begins, found.map(|found| found.epoch));
        source.read_also_for(&inbox, found.map_or(0, |found| found.latest))?;
        Ok(Ok(Subscription::new(Arc::clone(source), inbox)))
    }

    /// Hears whenever rows come to a table of Oxlite's that names one of `topics`, whoever commits them.
    pub fn hear(&self, mut topics: Vec<Topic>) -> Result<Hearing> {
        let source = &self.0;
        source.check()?;
        // By which it hears that the file was replaced.
        topics.push(EVERYBODY);
        let listener = source.hear(topics)?;
        Ok(Hearing::new(Arc::clone(source), listener))
    }

    /// Ends all listeners, and waits for the threads to end: a process that goes on to its own end leaves nothing
    /// behind. To be called by whoever holds no lock that a log message may want.
    pub fn close(&self) {
        self.0.end(&End::Closed);
        self.0.join();
    }

    /// As [`close`](Self::close), for the end of the process: no listener is told, its iteration ends.
    pub fn leave(&self) {
        self.0.end(&End::Left);
        self.0.join();
        self.0.abandon();
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.end(&End::Closed);
    }
}
