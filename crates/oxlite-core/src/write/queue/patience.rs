//! How long a writer waits: to its timeout, to the end of its call's time for locks, to the deadline of
//! its statement, or until it is interrupted.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxlite_sqlite::BusyWait;

use crate::wait::deadline::Deadline;

pub(super) struct Patience<'w> {
    deadline: &'w Arc<Deadline>,
    /// `None`: so late that the clock does not reach it.
    ends: Option<Instant>,
    wait: &'w BusyWait<'w>,
    /// Whether it has been seen that somebody wants the wait ended: a signal is told of once.
    was_cancelled: Cell<bool>,
}

impl<'w> Patience<'w> {
    /// That of a connection which has waited since `began`.
    pub(super) fn new(
        deadline: &'w Arc<Deadline>,
        began: Instant,
        timeout: Duration,
        wait: &'w BusyWait<'w>,
    ) -> Self {
        Self {
            deadline,
            ends: began.checked_add(timeout),
            wait,
            was_cancelled: Cell::new(false),
        }
    }

    pub(super) fn deadline(&self) -> &'w Arc<Deadline> {
        self.deadline
    }

    pub(super) fn remaining(&self) -> Duration {
        let remaining = self.ends.map_or(Duration::MAX, |ends| {
            ends.saturating_duration_since(Instant::now())
        });
        remaining.min(self.deadline.remaining_for_locks())
    }

    /// Whether the wait must end.
    ///
    /// May run code of the layer above, such as Python's signal handlers: asked with no lock held that
    /// another thread takes.
    pub(super) fn is_over(&self) -> bool {
        if self.wait.is_interrupted() || self.deadline.is_over() {
            self.was_cancelled.set(true);
        }
        self.was_cancelled.get() || self.remaining().is_zero()
    }

    /// Whether it has been interrupted, or [`is_over`](Self::is_over) has found another reason than the
    /// timeout.
    pub(super) fn is_cancelled(&self) -> bool {
        self.was_cancelled.get() || self.wait.is_interrupted()
    }

    /// Sleeps until woken ([`Deadline::wake`]), for `pause` at most.
    pub(super) fn sleep(&self, pause: Duration, is_woken: impl Fn() -> bool) {
        // The layer above is asked about its signals now and then.
        const ASK_EVERY: Duration = Duration::from_millis(50);
        let pause = pause.min(self.remaining()).min(ASK_EVERY);
        let wait = self.wait;
        wait.note_use();
        self.deadline
            .sleep(pause, || wait.is_interrupted() || is_woken());
    }
}
