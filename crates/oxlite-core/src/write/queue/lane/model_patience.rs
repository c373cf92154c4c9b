//! In place of `patience.rs` in the model of the lane: nobody is interrupted, and nobody looks up now and
//! then, which would hide a lost wake-up.

use std::sync::Arc;
use std::time::Duration;

use oxlite_sqlite::BusyWait;

use crate::sync::Instant;
use crate::wait::deadline::Deadline;

pub(super) struct Patience<'w> {
    deadline: &'w Arc<Deadline>,
    ends: Instant,
}

impl<'w> Patience<'w> {
    pub(super) fn new(
        _: &'w Arc<Deadline>,
        _: std::time::Instant,
        _: Duration,
        _: &'w BusyWait<'w>,
    ) -> Self {
        unreachable!("the models run no SQLite")
    }

    pub(super) fn of(deadline: &'w Arc<Deadline>, timeout: Duration) -> Self {
        let ends = Instant::now() + timeout;
        Self { deadline, ends }
    }

    pub(super) fn deadline(&self) -> &'w Arc<Deadline> {
        self.deadline
    }

    pub(super) fn remaining(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    pub(super) fn is_over(&self) -> bool {
        self.remaining().is_zero() || self.deadline.is_over()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        false
    }

    pub(super) fn sleep(&self, pause: Duration, is_woken: impl Fn() -> bool) {
        self.deadline.sleep(pause.min(self.remaining()), is_woken);
    }
}
