//! Fairness among threads that run many short statements: the baton.
//!
//! A short statement holds the GIL, which makes it fast, and unfair: a thread that runs one after the
//! other lets the GIL go only when Python's switch interval (5 ms) forces it, and several such threads
//! keep an idle one waiting for longer. So a thread whose streak of statements has become too long
//! lets the GIL go by itself, and among such threads only one at a time, the one with the baton,
//! competes for it; the others are parked, without the GIL (`oxlite_core::Baton`).
//!
//! Invariants:
//! - Nobody waits here with the GIL or with a connection locked.
//! - In a process with a single Python thread nothing happens, at the price of two loads.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oxlite_core::{Baton, PerProcess};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::gil::without;

/// How long a thread may run statements in a row before others go on.
const STREAK_AT_MOST: Duration = Duration::from_millis(3);

/// A pause this long between two statements ends the streak: other threads have run.
const PAUSE: Duration = Duration::from_micros(100);

/// The threads of this process that let the GIL go by themselves.
static BATON: PerProcess<Baton> = PerProcess::new();

static THREADS: AtomicU64 = AtomicU64::new(0);

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
    /// This thread's number among those who take the baton; none has zero.
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
    let Some(baton) = BATON.get_or_make(Baton::new) else {
        return;
    };
    let me = NUMBER.with(|number| *number);
    let now = baton.now();
    let mut streak = STREAK.get();
    // Time that seems to run back is that of a forked child, whose baton is new.
    if now < streak.seen || now - streak.seen > PAUSE {
        streak.began = now;
    }
    streak.seen = now;
    baton.see(me, now);
    if now.saturating_sub(streak.began) >= STREAK_AT_MOST {
        without(py, || baton.take(me));
        let now = baton.now();
        baton.see(me, now);
        streak = Streak {
            began: now,
            seen: now,
        };
    }
    STREAK.set(streak);
}
