//! How threads that Python has not started come to the interpreter, and no fork comes between.
//!
//! CPython before 3.12 makes the state of such a thread under a lock that a forked child finds taken, and
//! waits for without end in `PyOS_AfterFork_Child`, if another thread was just making one. So nobody makes
//! one while a thread forks; from 3.12 on CPython sees to that itself.
//!
//! Invariant: whoever is entering has no GIL and gets it, since a thread that is about to fork waits without
//! it; whoever has a thread state already does not enter.

use std::time::{Duration, Instant};

use oxlite_core::{Condvar, Mutex, PerProcess};
use pyo3::ffi;
use pyo3::prelude::*;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Neither side waits longer for the other. Where the interpreter ends, a thread that enters never comes to
/// its end; nor does one that forks, if it is stopped in the middle, or other code that is called before a
/// fork waits for something. A fork itself takes milliseconds.
const WAIT_AT_MOST: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Door {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Threads that may be making their state.
    entering: usize,
    /// Threads that are about to fork, or forking.
    forking: usize,
    /// When the latest of those has had its time.
    closed_until: Option<Instant>,
}

impl State {
    fn is_closed(&self) -> bool {
        self.forking > 0
            && self
                .closed_until
                .is_some_and(|until| Instant::now() < until)
    }

    fn close(&mut self) {
        self.closed_until = Some(Instant::now() + WAIT_AT_MOST);
    }
}

static DOOR: PerProcess<Door> = PerProcess::new();

/// A thread that may be making its state.
struct Entering(&'static Door);

impl Entering {
    fn begin() -> Option<Self> {
        // SAFETY: it asks for a value of this thread, whether or not that has the GIL.
        if !unsafe { ffi::PyGILState_GetThisThreadState() }.is_null() {
            return None;
        }
        let door = DOOR.get_or_make(Door::default)?;
        let ends = Instant::now() + WAIT_AT_MOST;
        let mut state = door.state.lock();
        while state.is_closed() && Instant::now() < ends {
            door.changed.wait_for(&mut state, LOOK_EVERY);
        }
        state.entering += 1;
        Some(Self(door))
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        self.0.state.lock().entering -= 1;
        self.0.changed.notify_all();
    }
}

/// As `Python::try_attach`, for native threads.
pub(crate) fn try_attach<T>(work: impl for<'py> FnOnce(Python<'py>) -> T) -> Option<T> {
    let entering = Entering::begin();
    Python::try_attach(|py| {
        drop(entering);
        work(py)
    })
}

/// Before a fork: waits until nobody makes a thread state, and lets nobody begin to.
#[pyfunction]
pub(crate) fn close_to_threads(py: Python<'_>) {
    let Some(door) = DOOR.get_or_make(Door::default) else {
        return;
    };
    py.detach(|| {
        let ends = Instant::now() + WAIT_AT_MOST;
        let mut state = door.state.lock();
        state.forking += 1;
        state.close();
        while state.entering > 0 && Instant::now() < ends {
            door.changed.wait_for(&mut state, LOOK_EVERY);
        }
        state.close();
    });
}

/// After a fork, in the parent. The child has a door of its own.
#[pyfunction]
pub(crate) fn open_to_threads() {
    if let Some(door) = DOOR.get() {
        let mut state = door.state.lock();
        state.forking = state.forking.saturating_sub(1);
        drop(state);
        door.changed.notify_all();
    }
}
