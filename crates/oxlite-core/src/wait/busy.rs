//! How a connection waits for a lock that somebody else holds.
//!
//! SQLite asks its busy handler only when no transaction is open yet, so nothing here can turn a
//! deadlock between two upgrading readers into a wait: those fail at once.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxlite_sqlite::{BusyWait, Locked};

use crate::error::Result;
use crate::open::choice::Choice;
use crate::wait::deadline::Deadline;
use crate::write::queue::{Lane, Writer};

/// The pause between two tries of [`BusyPolicy::Fair`].
const FAIR_PAUSE: Duration = Duration::from_millis(1);

/// How to wait for a lock. An interruption, and the deadline of the statement, end the wait at once,
/// except under [`Backoff`](Self::Backoff).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusyPolicy {
    /// Not at all: `SQLITE_BUSY` at once.
    None,
    /// SQLite's own table of growing sleeps, 1 to 100 ms (`sqlite3_busy_timeout`). It counts the
    /// sleep it planned, not the time that passed, punishes whoever has waited longest, and
    /// notices an interruption only when it has the lock. `PRAGMA busy_timeout` shows it.
    Backoff,
    /// A constant millisecond, so that an old waiter is as likely to be next as a new one; the time
    /// limit is measured on the clock.
    Fair,
    /// In a queue, in front of the lock, with the other connections of this process and of others that
    /// wait this way: see `queue.rs`. Beside those that do not, it tries every 30 microseconds to a
    /// millisecond. Needs a database in a file; elsewhere, and for all but the write lock, it is
    /// [`Fair`](Self::Fair).
    Gate,
    /// As the application's own handler says; it does the waiting, and sets the limit.
    Handler(BusyHandler),
}

/// An application's own busy handler: told how often it has been asked for one lock, it waits and
/// answers whether to try again.
#[derive(Clone)]
pub struct BusyHandler(Arc<dyn Fn(u32) -> bool + Send + Sync>);

impl BusyHandler {
    /// From a function.
    pub fn new(handler: impl Fn(u32) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(handler))
    }

    /// Whether to try again, after `calls` earlier questions.
    pub(crate) fn ask(&self, calls: u32) -> bool {
        (self.0)(calls)
    }
}

impl PartialEq for BusyHandler {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for BusyHandler {}

impl fmt::Debug for BusyHandler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BusyHandler")
    }
}

impl Choice for BusyPolicy {
    const WHAT: &'static str = "busy policy";
    const ALL: &'static [Self] = &[Self::None, Self::Backoff, Self::Fair, Self::Gate];

    fn name(&self) -> &'static str {
        self.name()
    }
}

impl BusyPolicy {
    /// The policy of that name.
    pub fn named(name: &str) -> Result<Self> {
        Choice::named(name)
    }

    /// The policy's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Backoff => "backoff",
            Self::Fair => "fair",
            Self::Gate => "gate",
            Self::Handler(_) => "handler",
        }
    }

    /// Makes the connection wait this way, for at most `timeout` each time. Returns its place in the
    /// queue, if it waits in one.
    pub(crate) fn install(
        &self,
        locked: &Locked<'_>,
        timeout: Duration,
        deadline: &Arc<Deadline>,
    ) -> Result<Option<Arc<Writer>>> {
        if let Self::Gate = self
            && let Some(path) = locked.path().filter(|_| !locked.is_read_only())
            && let Ok(lane) = Lane::of(&path)
        {
            return Writer::install(lane, locked, timeout, deadline).map(Some);
        }
        let deadline = Arc::clone(deadline);
        let has_ended =
            |wait: &BusyWait<'_>, deadline: &Deadline| wait.is_interrupted() || deadline.is_over();
        match self {
            Self::None => locked.set_busy_timeout(Duration::ZERO)?,
            Self::Backoff => locked.set_busy_timeout(timeout)?,
            Self::Fair | Self::Gate => {
                let begun = Cell::new(Instant::now());
                locked.set_busy_handler(move |wait| {
                    if wait.calls == 0 {
                        begun.set(Instant::now());
                    }
                    let remaining = timeout
                        .saturating_sub(begun.get().elapsed())
                        .min(deadline.remaining_for_locks());
                    if remaining.is_zero() || has_ended(wait, &deadline) {
                        return false;
                    }
                    deadline.sleep(FAIR_PAUSE.min(remaining), || wait.is_interrupted());
                    !has_ended(wait, &deadline)
                })?;
            }
            Self::Handler(handler) => {
                let handler = handler.clone();
                locked.set_busy_handler(move |wait| {
                    !has_ended(wait, &deadline)
                        && handler.ask(wait.calls)
                        && !has_ended(wait, &deadline)
                })?;
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways_and_unknown_ones_are_refused() {
        for name in BusyPolicy::names() {
            assert_eq!(BusyPolicy::named(name).expect("known").name(), name);
        }
        let error = BusyPolicy::named("fare").expect_err("unknown");
        assert!(error.to_string().contains("did you mean 'fair'"), "{error}");
    }
}
