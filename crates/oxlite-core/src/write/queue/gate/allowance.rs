//! What a process may write beside its turns, while others stand in line: what it has saved up.
//!
//! Who stands in line costs all the others two context switches. That is worth it for those who write all the
//! time, and would keep one another out. Who writes now and then takes nobody's share, if he goes first.
//!
//! Invariants:
//! - It is earned only while the process neither writes nor waits. Else who writes long transactions one after
//!   the other would earn each during the one before, and never stand in line.

use std::time::{Duration, Instant};

/// How long it takes to earn one transaction, and how many can be saved up. How they were measured:
/// docs/decisions/0009-write-queue-times.md.
const EARNED_IN: Duration = Duration::from_millis(1);
const SAVED_AT_MOST: u32 = 4;

/// The transactions that are saved up, as the time in which they are earned.
pub(super) struct Allowance {
    saved: Duration,
    /// When the process last left the gate; the time since then is not in `saved` yet.
    left: Instant,
}

impl Allowance {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            saved: Duration::ZERO,
            left: now,
        }
    }

    /// The process leaves the gate: from now on it earns.
    pub(super) fn leave(&mut self, now: Instant) {
        self.left = now;
    }

    /// The process comes to the gate: takes one transaction of it, if there is one.
    pub(super) fn spend(&mut self, now: Instant) -> bool {
        let earned = now.duration_since(self.left);
        self.saved = (self.saved + earned).min(EARNED_IN * SAVED_AT_MOST);
        self.left = now;
        match self.saved.checked_sub(EARNED_IN) {
            Some(rest) => {
                self.saved = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many transactions it has after that time.
    fn saved_after(elapsed: Duration) -> usize {
        let began = Instant::now();
        let mut allowance = Allowance::new(began);
        let now = began + elapsed;
        (0..100).take_while(|_| allowance.spend(now)).count()
    }

    #[test]
    fn it_is_earned_with_time_and_saved_up_to_a_limit() {
        assert_eq!(saved_after(Duration::ZERO), 0);
        assert_eq!(saved_after(EARNED_IN - Duration::from_nanos(1)), 0);
        assert_eq!(saved_after(EARNED_IN), 1);
        assert_eq!(saved_after(EARNED_IN * 5 / 2), 2);
        assert_eq!(
            saved_after(EARNED_IN * SAVED_AT_MOST),
            SAVED_AT_MOST as usize
        );
        assert_eq!(
            saved_after(Duration::from_secs(3600)),
            SAVED_AT_MOST as usize
        );
    }

    #[test]
    fn what_is_not_yet_a_whole_one_is_not_lost() {
        let began = Instant::now();
        let mut allowance = Allowance::new(began);
        assert!(allowance.spend(began + EARNED_IN * 3 / 2));
        assert!(!allowance.spend(began + EARNED_IN * 3 / 2));
        assert!(allowance.spend(began + EARNED_IN * 2));
    }

    #[test]
    fn nothing_is_earned_while_it_writes_or_waits() {
        let began = Instant::now();
        let mut allowance = Allowance::new(began);
        let mut now = began + EARNED_IN;
        assert!(allowance.spend(now));
        for _ in 0..100 {
            now += EARNED_IN * 20;
            allowance.leave(now);
            assert!(!allowance.spend(now));
        }
        assert!(allowance.spend(now + EARNED_IN));
    }
}
