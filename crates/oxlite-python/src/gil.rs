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
///
/// The clock is not read at every step: in a fetch of 100 short rows that was a sixth of the time.
/// As long as steps prove short, twice as many go by before the next look; one slow stretch and
/// every step is looked at again. A lone step, the common `fetchone`, never asks the clock.
pub(crate) struct Hold {
    /// Steps to go before the clock is read.
    unwatched: u32,
    /// How many steps went by between the latest two looks.
    stride: u32,
    /// When the hold was first seen, and when the clock was last read.
    watch: Option<(Instant, Instant)>,
}

/// No more steps than this go by unwatched.
const STRIDE_AT_MOST: u32 = 64;

impl Default for Hold {
    fn default() -> Self {
        Self {
            unwatched: 1,
            stride: 1,
            watch: None,
        }
    }
}

impl Hold {
    /// Runs one step, holding the GIL unless it has been held for long.
    #[inline]
    pub(crate) fn step<T>(&mut self, py: Python<'_>, work: impl FnOnce() -> T) -> T {
        if self.unwatched > 0 {
            self.unwatched -= 1;
            return work();
        }
        if self.is_too_long() {
            let result = detached(py, work);
            *self = Self::default();
            return result;
        }
        work()
    }

    fn is_too_long(&mut self) -> bool {
        let now = Instant::now();
        let (began, looked) = self.watch.unwrap_or((now, now));
        if now.duration_since(began) >= HOLD_AT_MOST {
            return true;
        }
        let steps_are_short = now.duration_since(looked) < HOLD_AT_MOST / 16;
        self.stride = match steps_are_short {
            true => (self.stride * 2).min(STRIDE_AT_MOST),
            false => 1,
        };
        self.unwatched = self.stride - 1;
        self.watch = Some((began, now));
        false
    }
}
