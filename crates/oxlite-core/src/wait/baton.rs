//! Fairness among busy threads for a lock that is not fair, such as an interpreter's: one of them competes for
//! it, the others are parked and follow in order.
//!
//! A thread that has had that lock for long lets it go and calls [`Baton::take`]. The thread that has the baton
//! goes on and competes for the lock; the others sleep until they get the baton, in the order in which they
//! came. Below it is "the lock".
//!
//! Invariants:
//! - Who has the baton is not parked, and nobody is parked twice.
//! - A holder who is not seen for a while (its thread has ended, or does something else) loses the
//!   baton to the first of those who wait, so nobody waits for ever. A baton too many costs fairness,
//!   never correctness.
//! - Time alone has to help only where the holder has gone: `baton/model.rs` goes through all orders in
//!   which threads can meet here.

use std::collections::VecDeque;
use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Instant, Mutex, sleep};

#[cfg(all(test, loom))]
mod model;

/// How long the baton's holder keeps away before anybody goes on: long enough for a thread that waits for
/// the lock to wake up and take it.
const NAP: Duration = Duration::from_micros(50);

/// A holder not seen for so long has lost the baton.
const HOLDER_LOST: Duration = Duration::from_millis(1);

/// How much longer it has from when it got the baton: it competes for the lock, which others may
/// have for long. Otherwise one more thread after the other would compete with it.
const COMPETES: Duration = Duration::from_millis(100);

/// Nobody's number.
const NOBODY: u64 = 0;

/// Who goes on, and who waits.
pub struct Baton {
    order: Mutex<Order>,
    /// Told when the baton has changed hands.
    passed_on: Condvar,
    /// The holder, for a look without the lock.
    holder: AtomicU64,
    /// When the holder was last seen, in nanoseconds since `epoch`.
    holder_seen: AtomicU64,
    epoch: Instant,
}

/// Who has the baton and who waits for it, by number of thread.
struct Order {
    holder: u64,
    parked: VecDeque<u64>,
}

impl Baton {
    /// Nobody has the baton.
    #[expect(clippy::new_without_default, reason = "it reads the clock")]
    pub fn new() -> Self {
        Self {
            order: Mutex::new(Order {
                holder: NOBODY,
                parked: VecDeque::new(),
            }),
            passed_on: Condvar::new(),
            holder: AtomicU64::new(NOBODY),
            holder_seen: AtomicU64::new(0),
            epoch: Instant::now(),
        }
    }

    /// The time since this baton was made.
    #[inline]
    pub fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// To be called by a thread that does not want to lose the baton, if it has it: it is still there. Also
    /// once it has got what it competed for.
    #[inline]
    pub fn see(&self, thread: u64, now: Duration) {
        if self.holder.load(Ordering::Relaxed) == thread {
            self.see_holder(now);
        }
    }

    /// Lets others go on; returns when this thread has the baton. A thread's number is not zero
    /// and no other thread's.
    pub fn take(&self, me: u64) {
        let mut order = self.order.lock();
        if order.holder == me || (order.parked.is_empty() && self.is_holder_lost()) {
            // Nobody goes on meanwhile: who waits for the lock would lose the race against one who
            // has just been woken.
            self.give(&mut order, me);
            drop(order);
            sleep(NAP);
            order = self.order.lock();
            if order.holder == me {
                let Some(next) = order.parked.pop_front() else {
                    return;
                };
                self.give(&mut order, next);
                self.passed_on.notify_all();
            }
        }
        while order.holder != me {
            // It may have been given to this thread and, before that woke up, lost again to another.
            if !order.parked.contains(&me) {
                order.parked.push_back(me);
            }
            self.passed_on.wait_for(&mut order, HOLDER_LOST);
            if order.holder != me && order.parked.front() == Some(&me) && self.is_holder_lost() {
                order.parked.pop_front();
                self.give(&mut order, me);
            }
        }
    }

    fn give(&self, order: &mut Order, thread: u64) {
        order.holder = thread;
        self.holder.store(thread, Ordering::Relaxed);
        self.see_holder(self.now() + COMPETES);
    }

    fn see_holder(&self, now: Duration) {
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.holder_seen.store(nanoseconds, Ordering::Relaxed);
    }

    fn is_holder_lost(&self) -> bool {
        let seen = Duration::from_nanos(self.holder_seen.load(Ordering::Relaxed));
        self.now().saturating_sub(seen) > HOLDER_LOST
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn everybody_gets_it_and_nobody_waits_for_one_who_has_gone() {
        let baton = &Baton::new();
        let take = |thread, count: usize| {
            for _ in 0..count {
                baton.take(thread);
            }
        };
        std::thread::scope(|scope| {
            for (thread, count) in [(1, 1), (2, 50), (3, 50), (4, 100)] {
                scope.spawn(move || take(thread, count));
            }
        });
        take(5, 3);
        assert!(baton.order.lock().parked.is_empty());
    }
}
