//! How a connection waits for a lock that somebody else holds.
//!
//! SQLite asks its busy handler only when no transaction is open yet, so nothing here can turn a
//! deadlock between two upgrading readers into a wait: those fail at once.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use oxlite_sqlite::Locked;

use crate::error::Result;
use crate::nearest::unknown;

/// The pause between two tries of [`BusyPolicy::Fair`].
const FAIR_PAUSE: Duration = Duration::from_millis(1);

/// How to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyPolicy {
    /// Not at all: `SQLITE_BUSY` at once.
    None,
    /// SQLite's own table of growing sleeps, 1 to 100 ms (`sqlite3_busy_timeout`). It counts the
    /// sleep it planned, not the time that passed, and punishes whoever has waited longest.
    Backoff,
    /// A constant millisecond, so that an old waiter is as likely to be next as a new one; the time
    /// limit is measured on the clock.
    Fair,
}

impl BusyPolicy {
    const NAMES: [(&'static str, Self); 3] = [
        ("none", Self::None),
        ("backoff", Self::Backoff),
        ("fair", Self::Fair),
    ];

    /// The policy of that name.
    pub fn named(name: &str) -> Result<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, policy)| *policy)
            .ok_or_else(|| unknown("busy policy", name, Self::NAMES.map(|(known, _)| known)))
    }

    /// The policy's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Backoff => "backoff",
            Self::Fair => "fair",
        }
    }

    /// Makes the connection wait this way, for at most `timeout` each time.
    pub fn install(self, locked: &Locked<'_>, timeout: Duration) -> Result<()> {
        match self {
            Self::None => locked.set_busy_timeout(Duration::ZERO)?,
            Self::Backoff => locked.set_busy_timeout(timeout)?,
            Self::Fair => {
                let begun = Cell::new(Instant::now());
                locked.set_busy_handler(move |calls| {
                    if calls == 0 {
                        begun.set(Instant::now());
                    }
                    let remaining = timeout.saturating_sub(begun.get().elapsed());
                    if remaining.is_zero() {
                        return false;
                    }
                    thread::sleep(FAIR_PAUSE.min(remaining));
                    true
                })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways_and_unknown_ones_are_refused() {
        for (name, policy) in BusyPolicy::NAMES {
            assert_eq!(BusyPolicy::named(name), Ok(policy));
            assert_eq!(policy.name(), name);
        }
        let error = BusyPolicy::named("fare").expect_err("unknown");
        assert!(error.to_string().contains("did you mean 'fair'"), "{error}");
    }
}
