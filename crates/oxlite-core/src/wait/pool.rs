//! Things that are lent, one at a time each, and waited for in order: the connections of a database.
//!
//! Invariants:
//! - What is given back goes to whoever has waited longest, if anybody waits.
//! - What is lent is counted, so closing knows when all has come back.
//! - Of several idle ones, that which was used last is lent first: its caches are warm.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Condvar, Instant, Mutex};

#[cfg(all(test, loom))]
mod model;

/// How often whoever waits is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A fixed number of things to lend.
pub struct Pool<T> {
    state: Mutex<State<T>>,
    /// Told when something has come back to a pool that is closed.
    returned: Condvar,
}

struct State<T> {
    idle: Vec<T>,
    waiting: VecDeque<Arc<Seat<T>>>,
    lent: usize,
    is_closed: bool,
}

/// Where somebody waits.
struct Seat<T> {
    handed: Mutex<Handed<T>>,
    changed: Condvar,
}

enum Handed<T> {
    Nothing,
    Thing(T),
    /// The pool has been closed.
    Closed,
}

/// Why nothing was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// Nothing has come back in time.
    TimedOut,
    /// Whoever waits was told to go on no longer.
    Cancelled,
    /// The pool is closed.
    Closed,
}

/// What a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Things that can be had at once.
    pub idle: usize,
    /// Things that are lent.
    pub lent: usize,
    /// Threads that wait for one.
    pub waiting: usize,
}

impl<T> Pool<T> {
    /// A pool of these.
    pub fn new(things: Vec<T>) -> Self {
        Self {
            state: Mutex::new(State {
                idle: things,
                waiting: VecDeque::new(),
                lent: 0,
                is_closed: false,
            }),
            returned: Condvar::new(),
        }
    }

    /// Borrows one if that can be had at once.
    pub fn try_take(&self) -> Result<Option<T>, PoolError> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(PoolError::Closed);
        }
        // Nobody goes ahead of those who wait: what comes back is handed to them.
        let taken = state.idle.pop();
        state.lent += usize::from(taken.is_some());
        Ok(taken)
    }

    /// Borrows one, waiting for at most `timeout`; now and then asks whether to go on waiting.
    pub fn take(&self, timeout: Duration, may_go_on: impl Fn() -> bool) -> Result<T, PoolError> {
        let ends = Instant::now() + timeout;
        let seat = {
            let mut state = self.state.lock();
            if state.is_closed {
                return Err(PoolError::Closed);
            }
            if let Some(idle) = state.idle.pop() {
                state.lent += 1;
                return Ok(idle);
            }
            let seat = Arc::new(Seat {
                handed: Mutex::new(Handed::Nothing),
                changed: Condvar::new(),
            });
            state.waiting.push_back(Arc::clone(&seat));
            seat
        };
        loop {
            let remaining = ends.saturating_duration_since(Instant::now());
            let handed = {
                let mut handed = seat.handed.lock();
                if matches!(*handed, Handed::Nothing) {
                    seat.changed.wait_for(&mut handed, remaining.min(ASK_EVERY));
                }
                std::mem::replace(&mut *handed, Handed::Nothing)
            };
            match handed {
                Handed::Thing(thing) => return Ok(thing),
                Handed::Closed => return Err(PoolError::Closed),
                Handed::Nothing => {}
            }
            let goes_on = may_go_on();
            if goes_on && ends > Instant::now() {
                continue;
            }
            // Whoever hands something over has the pool's lock, so it has come before this or never.
            let mut state = self.state.lock();
            state.waiting.retain(|other| !Arc::ptr_eq(other, &seat));
            return match std::mem::replace(&mut *seat.handed.lock(), Handed::Nothing) {
                Handed::Thing(thing) => Ok(thing),
                Handed::Closed => Err(PoolError::Closed),
                Handed::Nothing if goes_on => Err(PoolError::TimedOut),
                Handed::Nothing => Err(PoolError::Cancelled),
            };
        }
    }

    /// Gives one back; returned to the caller if the pool is closed, who disposes of it.
    pub fn give(&self, thing: T) -> Option<T> {
        let mut state = self.state.lock();
        if state.is_closed {
            state.lent -= 1;
            self.returned.notify_all();
            return Some(thing);
        }
        match state.waiting.pop_front() {
            Some(seat) => {
                *seat.handed.lock() = Handed::Thing(thing);
                seat.changed.notify_one();
            }
            None => {
                state.lent -= 1;
                state.idle.push(thing);
            }
        }
        None
    }

    /// Lends nothing any more. Returns what is idle, for the caller to dispose of.
    pub fn close(&self) -> Vec<T> {
        let mut state = self.state.lock();
        state.is_closed = true;
        for seat in std::mem::take(&mut state.waiting) {
            *seat.handed.lock() = Handed::Closed;
            seat.changed.notify_one();
        }
        std::mem::take(&mut state.idle)
    }

    /// Waits until all that is lent has come back; tells whether it has, in time.
    pub fn wait_for_all(&self, timeout: Duration, may_go_on: impl Fn() -> bool) -> bool {
        let ends = Instant::now() + timeout;
        let mut state = self.state.lock();
        loop {
            let remaining = ends.saturating_duration_since(Instant::now());
            if state.lent == 0 || remaining.is_zero() {
                return state.lent == 0;
            }
            self.returned.wait_for(&mut state, remaining.min(ASK_EVERY));
            if state.lent > 0 {
                // It may run code of the layer above.
                drop(state);
                if !may_go_on() {
                    return false;
                }
                state = self.state.lock();
            }
        }
    }

    /// What it has now.
    pub fn statistics(&self) -> PoolStatistics {
        let state = self.state.lock();
        PoolStatistics {
            idle: state.idle.len(),
            lent: state.lent,
            waiting: state.waiting.len(),
        }
    }

    /// Looks at those that are idle, if nobody is using the pool right now.
    pub fn look(&self, mut look: impl FnMut(&T)) {
        if let Some(state) = self.state.try_lock() {
            state.idle.iter().for_each(&mut look);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_last_one_back_is_lent_first() {
        let pool = Pool::new(vec![1, 2]);
        assert_eq!(pool.take(LONG, || true), Ok(2));
        assert_eq!(pool.take(LONG, || true), Ok(1));
        assert_eq!(pool.take(Duration::ZERO, || true), Err(PoolError::TimedOut));
        assert_eq!(pool.take(LONG, || false), Err(PoolError::Cancelled));
        assert_eq!(pool.give(1), None);
        assert_eq!(pool.try_take(), Ok(Some(1)));
        assert_eq!(pool.try_take(), Ok(None));
        let PoolStatistics {
            idle,
            lent,
            waiting,
        } = pool.statistics();
        assert_eq!((idle, lent, waiting), (0, 2, 0));
    }

    #[test]
    fn whoever_waits_longest_is_next() {
        let pool = Arc::new(Pool::new(vec![()]));
        pool.take(LONG, || true).expect("idle");
        let order = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (waiter, list) = (Arc::clone(&pool), Arc::clone(&order));
                let thread = std::thread::spawn(move || {
                    waiter.take(LONG, || true).expect("comes back");
                    list.lock().push(number);
                    waiter.give(());
                });
                while pool.statistics().waiting <= number {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        pool.give(());
        for thread in threads {
            thread.join().expect("ends");
        }
        assert_eq!(*order.lock(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn closing_sends_everybody_away_and_waits_for_what_is_lent() {
        let pool = Pool::new(vec![1, 2]);
        let lent = pool.take(LONG, || true).expect("idle");
        assert_eq!(pool.close(), [1]);
        assert_eq!(pool.take(LONG, || true), Err(PoolError::Closed));
        assert_eq!(pool.try_take(), Err(PoolError::Closed));
        assert!(!pool.wait_for_all(Duration::ZERO, || true));
        assert!(!pool.wait_for_all(LONG, || false));
        assert_eq!(pool.give(lent), Some(2));
        assert!(pool.wait_for_all(LONG, || true));
    }
}
