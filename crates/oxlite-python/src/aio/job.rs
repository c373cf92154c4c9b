//! One thing to be done for a task of an event loop, which may give it up.
//!
//! Invariants:
//! - What was given up before it began is not done; it begins once.
//! - What reads is interrupted when it is given up; what writes is not, once it has begun.
//! - Whoever waits gets one reply, whatever becomes of the job.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use oxlite_core::{Connection as Core, Mutex};
use pyo3::prelude::*;

use super::mailbox::{Inbox, Outcome};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// How far a job is.
#[derive(Default)]
pub(super) struct Progress {
    phase: AtomicU8,
    /// What is interrupted when it is given up: held while it is, so that nothing else is interrupted.
    reading: Mutex<Option<Reading>>,
}

/// A connection that works on a job.
pub(super) enum Reading {
    /// It does nothing but read.
    Always(Arc<Core>),
    /// It may also write.
    AtTimes(Arc<Core>),
}

impl Progress {
    /// Whether it is still wanted; from now on it has begun. True again for one that has begun.
    pub(super) fn begin(&self) -> bool {
        let begun =
            self.phase
                .compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire);
        begun.is_ok() || begun == Err(BEGUN)
    }

    /// Runs `work`, in which it may be interrupted.
    pub(super) fn reading<T>(&self, reading: Option<Reading>, work: impl FnOnce() -> T) -> T {
        /// Also if `work` panics.
        struct Ended<'p>(&'p Progress);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.reading.lock().take();
            }
        }
        *self.reading.lock() = reading;
        let _ended = Ended(self);
        work()
    }

    /// Gives it up; whether it had not begun.
    fn give_up(&self) -> bool {
        let given_up =
            self.phase
                .compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
        if given_up == Err(BEGUN) {
            match &*self.reading.lock() {
                Some(Reading::Always(core)) => drop(core.interrupt()),
                Some(Reading::AtTimes(core)) => core.interrupt_reading(),
                None => {}
            }
        }
        given_up.is_ok()
    }
}

/// Where the outcome of a job goes.
pub(super) struct Reply {
    inbox: Arc<Inbox>,
    /// The `asyncio.Future` of who waits; `None` once it has its reply.
    future: Option<Py<PyAny>>,
}

impl Reply {
    pub(super) fn new(inbox: Arc<Inbox>, future: Py<PyAny>) -> Self {
        Self {
            inbox,
            future: Some(future),
        }
    }

    pub(super) fn send(mut self, outcome: Outcome) {
        if let Some(future) = self.future.take() {
            self.inbox.deliver(future, outcome);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.inbox.deliver(future, Outcome::Lost);
        }
    }
}

/// A job that was submitted.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Job {
    pub(super) progress: Arc<Progress>,
}

#[pymethods]
impl Job {
    /// Gives it up: what has not begun is not done, and a read that has is interrupted. Whether it had not
    /// begun.
    fn cancel(&self, py: Python<'_>) -> bool {
        // Whoever works on it may have the lock that this takes, and wait for the GIL.
        let progress = &self.progress;
        py.detach(|| progress.give_up())
    }
}
