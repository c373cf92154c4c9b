//! Who holds the GIL while SQLite works.
//!
//! - Everything that can wait for a lock or for the disk runs **without** it: opening, preparing,
//!   the first step of an execution, BEGIN, COMMIT, ROLLBACK, closing.
//! - Further steps (the next row, the next parameter set) run **with** it, for at most about a
//!   millisecond in a row: giving it up at each step would let another thread take it away 100 times
//!   in a fetch of 100 rows, and each time it costs up to a switch interval to get it back.
//! - The connection's lock is never *waited for* with the GIL held. Its holder may be waiting for
//!   the GIL.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How long steps may go on holding the GIL before one of them gives others a chance.
const HOLD_AT_MOST: Duration = Duration::from_millis(1);

/// Vouches that a value is used without the GIL only in ways that need none.
struct WithoutGil<T>(T);

// SAFETY: `Python::detach` asks for `Send` as a stand-in for "touches no Python object". The closure
// is not sent anywhere: it runs on this very thread, before `detach` returns. That it touches no
// Python object is upheld by the callers of `detached`, all of them in this crate, which pass calls
// into `oxlite-core` and `oxlite-sqlite` only; neither crate knows Python.
unsafe impl<T> Send for WithoutGil<T> {}

/// Runs `work`, which must not touch Python objects, without the GIL.
pub(crate) fn detached<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    let work = WithoutGil(work);
    py.detach(move || {
        // Moved as a whole: closures capture fields, and the field alone is not `Send`.
        let work = work;
        WithoutGil((work.0)())
    })
    .0
}

/// A run of steps that hold the GIL, interrupted when it has become too long.
#[derive(Default)]
pub(crate) struct Hold {
    since: Since,
}

/// Since when the GIL has been held; a lone step, the common `fetchone`, never asks the clock.
#[derive(Default)]
enum Since {
    #[default]
    Begin,
    OneStep,
    Time(Instant),
}

impl Hold {
    /// Runs one step, holding the GIL unless it has been held for long.
    #[inline]
    pub(crate) fn step<T>(&mut self, py: Python<'_>, work: impl FnOnce() -> T) -> T {
        match self.since {
            // The clock is first read by the second step.
            Since::Begin => self.since = Since::OneStep,
            Since::OneStep => self.since = Since::Time(Instant::now()),
            Since::Time(since) if since.elapsed() < HOLD_AT_MOST => {}
            Since::Time(_) => {
                let result = detached(py, work);
                self.since = Since::Time(Instant::now());
                return result;
            }
        }
        work()
    }
}
