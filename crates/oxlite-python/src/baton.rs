//! Fairness among threads that run many short statements: the baton.
//!
//! A short statement holds the GIL, which makes it fast, and unfair: a thread that runs one after the
//! other lets the GIL go only when Python's switch interval (5 ms) forces it, and four such threads
//! keep an idle one waiting for 9 to 14 ms. So a thread whose streak of statements has become too long
//! lets the GIL go by itself, and among such threads only one at a time, the one with the baton,
//! competes for it; the others are parked, without the GIL, and get the baton in the order in which
//! they came.
//!
//! Invariants:
//! - Nobody waits here with the GIL or with a connection locked.
//! - A holder who is not seen for a while (its thread has ended, or does something else) loses the
//!   baton to the first of those who wait, so nobody waits for ever. A baton too many costs fairness,
//!   never correctness.
//! - In a process with a single Python thread nothing happens, at the price of two loads.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::gil::without;

/// How long a thread may run statements in a row before others get their turn.
const STREAK_AT_MOST: Duration = Duration::from_micros(1500);

/// A pause this long between two statements ends the streak: Python has had its turn.
const PAUSE: Duration = Duration::from_micros(100);

/// How long the GIL stays free when nobody else is parked: long enough for a waiting thread to wake up
/// and take it.
const NAP: Duration = Duration::from_micros(50);

/// A holder not seen for so long has lost the baton.
const HOLDER_LOST: Duration = Duration::from_millis(1);

/// Nobody's number.
const NOBODY: u64 = 0;

/// Who has the baton and who waits for it, by number of thread.
struct Baton {
    holder: u64,
    parked: VecDeque<u64>,
}

static BATON: Mutex<Baton> = Mutex::new(Baton {
    holder: NOBODY,
    parked: VecDeque::new(),
});

/// Told when the baton has changed hands.
static PASSED_ON: Condvar = Condvar::new();

/// The holder, for a look without the lock.
static HOLDER: AtomicU64 = AtomicU64::new(NOBODY);

/// When the holder was last seen, in nanoseconds since `EPOCH`.
static HOLDER_SEEN: AtomicU64 = AtomicU64::new(0);

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

static THREADS: AtomicU64 = AtomicU64::new(NOBODY);

/// The statements of a thread that follow one another closely.
#[derive(Clone, Copy)]
struct Streak {
    began: Duration,
    seen: Duration,
}

thread_local! {
    static STREAK: Cell<Streak> = const {
        Cell::new(Streak { began: Duration::ZERO, seen: Duration::ZERO })
    };
    /// This thread's number.
    static NUMBER: u64 = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
}

/// Whether no other thread has anything to do with this interpreter.
#[inline]
fn is_alone(_py: Python<'_>) -> bool {
    // SAFETY: the GIL is held, with which alone thread states are taken out of the list that these
    // read; new ones are put in front of it.
    unsafe {
        let newest = ffi::PyInterpreterState_ThreadHead(ffi::PyInterpreterState_Get());
        ffi::PyThreadState_Next(newest).is_null()
    }
}

/// To be called after each statement, with the GIL and with no connection locked: gives way to other
/// threads if it is time.
#[inline]
pub(crate) fn give_way(py: Python<'_>) {
    if !is_alone(py) {
        give_way_if_due(py);
    }
}

fn give_way_if_due(py: Python<'_>) {
    let now = EPOCH.elapsed();
    let mut streak = STREAK.get();
    if now.saturating_sub(streak.seen) > PAUSE {
        streak.began = now;
    }
    streak.seen = now;
    if HOLDER.load(Ordering::Relaxed) == NUMBER.with(|number| *number) {
        see_holder(now);
    }
    if now.saturating_sub(streak.began) >= STREAK_AT_MOST {
        without(py, take_turns);
        let now = EPOCH.elapsed();
        streak = Streak {
            began: now,
            seen: now,
        };
    }
    STREAK.set(streak);
}

/// Lets others have their turn; returns when it is this thread's again.
fn take_turns() {
    let me = NUMBER.with(|number| *number);
    // In a forked child somebody who is not there may have the lock.
    let Some(mut baton) = BATON.try_lock_for(HOLDER_LOST) else {
        return;
    };
    if baton.parked.is_empty() && (baton.holder == me || is_holder_lost()) {
        baton.give_to(me);
        drop(baton);
        std::thread::sleep(NAP);
        return;
    }
    if baton.holder == me
        && let Some(next) = baton.parked.pop_front()
    {
        baton.give_to(next);
        PASSED_ON.notify_all();
    }
    while baton.holder != me {
        // It may have been given to this thread and, before that woke up, lost again to another.
        if !baton.parked.contains(&me) {
            baton.parked.push_back(me);
        }
        PASSED_ON.wait_for(&mut baton, HOLDER_LOST);
        if baton.holder != me && baton.parked.front() == Some(&me) && is_holder_lost() {
            baton.parked.pop_front();
            baton.give_to(me);
        }
    }
}

impl Baton {
    fn give_to(&mut self, thread: u64) {
        self.holder = thread;
        HOLDER.store(thread, Ordering::Relaxed);
        see_holder(EPOCH.elapsed());
    }
}

fn see_holder(now: Duration) {
    let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    HOLDER_SEEN.store(nanoseconds, Ordering::Relaxed);
}

fn is_holder_lost() -> bool {
    let seen = Duration::from_nanos(HOLDER_SEEN.load(Ordering::Relaxed));
    EPOCH.elapsed().saturating_sub(seen) > HOLDER_LOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gets_a_turn_and_nobody_waits_for_one_who_has_gone() {
        let turns = |count: usize| {
            for _ in 0..count {
                take_turns();
            }
        };
        std::thread::scope(|scope| {
            for count in [1, 50, 50, 100] {
                scope.spawn(move || turns(count));
            }
        });
        turns(3);
        assert!(BATON.lock().parked.is_empty());
    }
}
