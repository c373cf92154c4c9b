//! What a process may write beside its turns, while others stand in line: what it has saved up.
//!
//! Who stands in line costs all the others two context switches. That is worth it for those who write all the
//! time, and would keep one another out. Who writes now and then takes nobody's share, if he goes first.

use std::time::{Duration, Instant};

/// How long it takes to earn one transaction, and how many can be saved up. How they were measured:
/// docs/decisions/0009-write-queue-times.md.
const EARNED_IN: Duration = Duration::from_millis(1);
const SAVED_AT_MOST: u32 = 4;

/// The transactions that are saved up.
pub(super) struct Allowance {
    transactions: u32,
    /// Until when it has been earned.
    earned: Instant,
}

impl Allowance {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            transactions: 0,
            earned: now,
        }
    }

    /// Takes one transaction of it, if there is one.
    pub(super) fn spend(&mut self, now: Instant) -> bool {
        let times = now.duration_since(self.earned).as_nanos() / EARNED_IN.as_nanos();
        let most = SAVED_AT_MOST - self.transactions;
        match u32::try_from(times) {
            Ok(times) if times < most => {
                self.transactions += times;
                self.earned += EARNED_IN * times;
            }
            _ => {
                self.transactions = SAVED_AT_MOST;
                self.earned = now;
            }
        }
        let is_enough = self.transactions > 0;
        self.transactions -= u32::from(is_enough);
        is_enough
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
}
