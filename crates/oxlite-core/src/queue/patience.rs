//! How long a writer waits: to its timeout, to the deadline of its statement, or until it is
//! interrupted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxlite_sqlite::BusyWait;

use crate::deadline::Deadline;

pub(super) struct Patience<'w> {
    deadline: &'w Arc<Deadline>,
    ends: Instant,
    wait: &'w BusyWait<'w>,
}

impl<'w> Patience<'w> {
    pub(super) fn new(deadline: &'w Arc<Deadline>, ends: Instant, wait: &'w BusyWait<'w>) -> Self {
        Self {
            deadline,
            ends,
            wait,
        }
    }

    pub(super) fn deadline(&self) -> &'w Arc<Deadline> {
        self.deadline
    }

    pub(super) fn remaining(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// Whether the wait must end.
    pub(super) fn is_over(&self) -> bool {
        self.remaining().is_zero() || self.wait.is_interrupted() || self.deadline.is_over()
    }

    /// Sleeps until woken ([`Deadline::wake`]), for `pause` at most.
    pub(super) fn sleep(&self, pause: Duration, is_woken: impl Fn() -> bool) {
        // The layer above is asked about its signals now and then.
        const ASK_EVERY: Duration = Duration::from_millis(50);
        let pause = pause.min(self.remaining()).min(ASK_EVERY);
        let wait = self.wait;
        self.deadline
            .sleep(pause, || wait.is_interrupted() || is_woken());
    }
}
