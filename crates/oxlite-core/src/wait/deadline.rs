//! When the statement that runs must end, and who wakes it when it waits.
//!
//! A statement works in stretches: `execute` runs it to its first row, each fetch a little further.
//! Time between the stretches is the application's own and does not count. SQLite asks now and then
//! in the middle of a stretch (progress handler) and while it waits for a lock (busy handler) whether
//! it may go on; the layer above can have a reason of its own to end it, such as Ctrl-C.
//!
//! A call that has waited for something else before, such as its turn to have the connection, has less time
//! left for locks: that ends with the call's own time ([`Deadline::wait_at_most`]).

use std::time::Duration;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Instant, Mutex};

#[cfg(all(test, loom))]
mod model;

/// No deadline.
const NEVER: u64 = u64::MAX;

/// The deadline of a connection's work, kept where its callbacks can ask for it.
pub struct Deadline {
    /// What `at` counts from.
    epoch: Instant,
    /// Nanoseconds; written by whoever holds the connection's lock.
    at: AtomicU64,
    /// Until when locks are waited for, whatever the connection's timeout; like `at`.
    locks_until: AtomicU64,
    /// Whether a callback has stopped a statement because of it.
    was_passed: AtomicBool,
    /// Whether the layer above wants the statement ended.
    is_cancelled: fn() -> bool,
    /// Whether it is not asked.
    is_shielded: AtomicBool,
    /// Wakes whoever waits for a lock of the file, since he has been interrupted.
    sleeping: Mutex<()>,
    interrupted: Condvar,
}

impl Deadline {
    pub(crate) fn new(is_cancelled: fn() -> bool) -> Self {
        Self {
            is_cancelled,
            is_shielded: AtomicBool::new(false),
            epoch: Instant::now(),
            at: AtomicU64::new(NEVER),
            locks_until: AtomicU64::new(NEVER),
            was_passed: AtomicBool::new(false),
            sleeping: Mutex::new(()),
            interrupted: Condvar::new(),
        }
    }

    /// Begins a stretch of work that may take `remaining`. A stretch inside another one (a callback
    /// that uses its connection) ends with that one at the latest.
    pub fn begin(&self, remaining: Duration) -> Stretch<'_> {
        let began = Instant::now();
        let outer = self.at.load(Ordering::Relaxed);
        let since_epoch = began.duration_since(self.epoch).saturating_add(remaining);
        let at = u64::try_from(since_epoch.as_nanos()).unwrap_or(NEVER);
        self.at.store(at.min(outer), Ordering::Relaxed);
        Stretch {
            deadline: self,
            began,
            outer,
        }
    }

    /// From now on locks are waited for no longer than that, all together; `None`: for as long as the
    /// connection's timeout says, each.
    pub fn wait_at_most(&self, remaining: Option<Duration>) {
        let until = remaining.map_or(NEVER, |remaining| self.after(remaining));
        self.locks_until.store(until, Ordering::Relaxed);
    }

    /// Runs `work`, in which locks are waited for no longer than `remaining`, nor longer than before.
    pub(crate) fn waiting_at_most<T>(&self, remaining: Duration, work: impl FnOnce() -> T) -> T {
        let before = self.locks_until.load(Ordering::Relaxed);
        let until = self.after(remaining).min(before);
        self.locks_until.store(until, Ordering::Relaxed);
        let outcome = work();
        self.locks_until.store(before, Ordering::Relaxed);
        outcome
    }

    /// How much of that time is left.
    pub(crate) fn remaining_for_locks(&self) -> Duration {
        match self.locks_until.load(Ordering::Relaxed) {
            NEVER => Duration::MAX,
            until => Duration::from_nanos(until).saturating_sub(self.epoch.elapsed()),
        }
    }

    /// That far from now, in nanoseconds since the epoch.
    fn after(&self, remaining: Duration) -> u64 {
        let since_epoch = self.epoch.elapsed().saturating_add(remaining);
        u64::try_from(since_epoch.as_nanos()).unwrap_or(NEVER)
    }

    /// Whether the statement must end now.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_passed() || (!self.is_shielded.load(Ordering::Relaxed) && (self.is_cancelled)())
    }

    /// From now on the layer above is not asked: what runs is not its own affair alone.
    pub(crate) fn shield(&self) -> Shield<'_> {
        self.is_shielded.store(true, Ordering::Relaxed);
        Shield(self)
    }

    /// Whether it has used up its time; the error it ends with is then a timeout.
    #[inline]
    fn is_passed(&self) -> bool {
        let at = self.at.load(Ordering::Relaxed);
        if at == NEVER || u128::from(at) > self.epoch.elapsed().as_nanos() {
            return false;
        }
        self.was_passed.store(true, Ordering::Relaxed);
        true
    }

    /// Whether a statement has been ended, once.
    pub(crate) fn take_passed(&self) -> bool {
        self.was_passed.swap(false, Ordering::Relaxed)
    }

    /// Sleeps for `pause`, at most to the deadline; woken early by an interruption.
    pub(crate) fn sleep(&self, pause: Duration, is_interrupted: impl Fn() -> bool) {
        let at = self.at.load(Ordering::Relaxed);
        let pause = match at {
            NEVER => pause,
            at => pause.min(Duration::from_nanos(at).saturating_sub(self.epoch.elapsed())),
        };
        oxlite_sqlite::about_to_wait();
        let mut sleeping = self.sleeping.lock();
        // Looked at with the lock held, so an interruption is either seen here or wakes us.
        if !is_interrupted() {
            self.interrupted.wait_for(&mut sleeping, pause);
        }
    }

    /// Wakes the sleeper, after the connection has been interrupted.
    pub(crate) fn wake(&self) {
        drop(self.sleeping.lock());
        self.interrupted.notify_all();
    }
}

/// A stretch of work under a deadline. Why it has failed can be asked while it lasts.
pub struct Stretch<'d> {
    deadline: &'d Deadline,
    began: Instant,
    outer: u64,
}

impl Stretch<'_> {
    /// How long it has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Drop for Stretch<'_> {
    fn drop(&mut self) {
        self.deadline.at.store(self.outer, Ordering::Relaxed);
        if self.outer == NEVER {
            // What was not asked about is over: a later error has another cause.
            self.deadline.was_passed.store(false, Ordering::Relaxed);
        }
    }
}

/// A stretch in which the layer above is not asked.
pub(crate) struct Shield<'d>(&'d Deadline);

impl Drop for Shield<'_> {
    fn drop(&mut self) {
        self.0.is_shielded.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_inner_stretch_ends_with_the_outer_one() {
        let deadline = Deadline::new(|| false);
        assert!(!deadline.is_passed());
        let outer = deadline.begin(Duration::ZERO);
        {
            let _inner = deadline.begin(Duration::from_secs(3600));
            assert!(deadline.is_passed());
        }
        assert!(deadline.is_passed());
        assert!(deadline.take_passed());
        assert!(!deadline.take_passed());
        assert!(deadline.is_passed());
        drop(outer);
        assert!(!deadline.is_passed());
        assert!(!deadline.take_passed(), "forgotten with the stretch");
    }

    #[test]
    fn the_time_for_locks_is_no_longer_inside_than_outside() {
        let deadline = Deadline::new(|| false);
        assert_eq!(deadline.remaining_for_locks(), Duration::MAX);
        deadline.wait_at_most(Some(Duration::ZERO));
        deadline.waiting_at_most(Duration::from_secs(3600), || {
            assert!(deadline.remaining_for_locks().is_zero());
        });
        deadline.wait_at_most(None);
        deadline.waiting_at_most(Duration::from_secs(3600), || {
            assert!(deadline.remaining_for_locks() > Duration::from_secs(3000));
        });
        assert_eq!(deadline.remaining_for_locks(), Duration::MAX);
    }

    #[test]
    fn a_sleep_ends_at_the_deadline_or_when_interrupted() {
        let deadline = Deadline::new(|| false);
        let for_ever = Duration::from_secs(3600);
        let stretch = deadline.begin(Duration::from_millis(1));
        deadline.sleep(for_ever, || false);
        drop(stretch);
        deadline.sleep(for_ever, || true);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| deadline.sleep(for_ever, || false));
            while !sleeper.is_finished() {
                deadline.wake();
                std::thread::yield_now();
            }
        });
    }
}
