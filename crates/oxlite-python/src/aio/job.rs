//! One thing to be done for a task of an event loop, which may give it up.
//!
//! Invariants:
//! - What was given up before it began is not done; it begins once.
//! - What reads is interrupted when it is given up; what writes is not, once it has begun.
//! - Whoever waits gets one reply, whatever becomes of the job.
//!
//! SQLite forgets an interruption that comes before its statement has begun, so the thread that works on a
//! job also looks for itself, now and then, whether that was given up.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use oxlite_core::{
    Borrower, Connection as Core, Dispatcher, Mutex, Place, Wanted, fork_generation,
};
use pyo3::prelude::*;

use super::mailbox::{Handover, Inbox, Mailbox, Outcome};
use crate::gil::without;

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
/// Given up before it has begun.
const WITHDRAWN: u8 = 2;
/// Given up after it had begun.
const LEFT: u8 = 3;

thread_local! {
    /// What this thread works on, if it may be broken off.
    static WORKING_ON: RefCell<Option<Arc<Progress>>> = const { RefCell::new(None) };
}

/// Asked while a statement works or waits: whether it may be broken off, since nobody wants it any more.
pub(crate) fn is_given_up() -> bool {
    WORKING_ON.with_borrow(|progress| {
        progress
            .as_ref()
            .is_some_and(|progress| progress.may_break_off())
    })
}

/// How far a job is.
pub(super) struct Progress {
    phase: AtomicU8,
    /// What is interrupted when it is given up: held while it is, so that nothing else is interrupted.
    reading: Mutex<Option<Reading>>,
    /// Where its loop is told of it. With a loop that is closed it is given up.
    inbox: Option<Arc<Inbox>>,
    /// That of the process whose job it is: a forked child knows nothing of it.
    generation: u32,
}

/// A connection that works on a job.
pub(super) enum Reading {
    /// It does nothing but read.
    Always(Arc<Core>),
    /// It may also write.
    AtTimes(Arc<Core>),
}

impl Progress {
    /// Of a job that is done for a loop, or whoever waits.
    pub(super) fn new(mailbox: Option<&Bound<'_, Mailbox>>) -> Arc<Self> {
        Arc::new(Self {
            phase: AtomicU8::new(WAITING),
            reading: Mutex::default(),
            inbox: mailbox.map(|mailbox| Arc::clone(&mailbox.get().inbox)),
            generation: fork_generation(),
        })
    }

    fn has_lost_its_loop(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| inbox.is_closed())
    }

    /// Whether it is still wanted; from now on it has begun. True again for one that has begun.
    pub(super) fn begin(&self) -> bool {
        if self.has_lost_its_loop() && self.phase.load(Ordering::Acquire) == WAITING {
            return false;
        }
        let begun =
            self.phase
                .compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire);
        begun != Err(WITHDRAWN)
    }

    /// Whether nobody wants it any more.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.phase.load(Ordering::Acquire), WITHDRAWN | LEFT)
    }

    /// Runs `work`, in which it may be interrupted.
    pub(super) fn reading<T>(
        self: &Arc<Self>,
        reading: Option<Reading>,
        work: impl FnOnce() -> T,
    ) -> T {
        /// Also if `work` panics.
        struct Ended<'p>(&'p Progress, Option<Arc<Progress>>);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.reading.lock().take();
                WORKING_ON.set(self.1.take());
            }
        }
        *self.reading.lock() = reading;
        let _ended = Ended(self, WORKING_ON.replace(Some(Arc::clone(self))));
        work()
    }

    /// Whether it is that of the process from which this one was forked.
    fn is_inherited(&self) -> bool {
        self.generation != fork_generation()
    }

    /// Gives it up if it has not begun; whether it had not.
    fn withdraw(&self) -> bool {
        self.goes(WAITING, WITHDRAWN)
    }

    /// Gives it up.
    pub(super) fn give_up(&self) {
        if self.is_inherited() || self.withdraw() {
            return;
        }
        if self.goes(BEGUN, LEFT) {
            match &*self.reading.lock() {
                Some(Reading::Always(core)) => drop(core.interrupt()),
                Some(Reading::AtTimes(core)) => core.wake(),
                None => {}
            }
        }
    }

    fn goes(&self, from: u8, to: u8) -> bool {
        let exchanged = self
            .phase
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        exchanged.is_ok()
    }

    /// Whether what this very thread does for it is to be broken off.
    fn may_break_off(&self) -> bool {
        (self.phase.load(Ordering::Acquire) == LEFT || self.has_lost_its_loop())
            && match &*self.reading.lock() {
                Some(Reading::Always(_)) => true,
                Some(Reading::AtTimes(core)) => core.is_breakable(),
                None => false,
            }
    }
}

/// Where the outcome of a job goes: the `asyncio.Future` of who waits, and the inbox of its loop; `None`
/// once it has its reply, and where nobody waits.
pub(super) struct Reply(Option<(Arc<Inbox>, Py<PyAny>)>);

impl Reply {
    pub(super) fn new(mailbox: &Bound<'_, Mailbox>, future: Py<PyAny>) -> Self {
        Self(Some((Arc::clone(&mailbox.get().inbox), future)))
    }

    /// To nobody.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// It is wanted no more; with the GIL.
    pub(super) fn forget(mut self) {
        self.0 = None;
    }

    pub(super) fn send(mut self, outcome: Outcome) {
        if let Some((inbox, future)) = self.0.take() {
            inbox.deliver(future, outcome);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some((inbox, future)) = self.0.take() {
            inbox.deliver(future, Outcome::Lost);
        }
    }
}

/// Takes a job out of the line in which it waits, if it does. Called with the GIL, for which nobody who has the
/// line's lock waits.
pub(super) type Withdrawal = Box<dyn Fn() + Send + Sync>;

/// That of what waits at this place; nobody waits for its reply then.
pub(super) fn withdrawal<M, T, B>(
    dispatcher: &Arc<Dispatcher<M, T, B>>,
    place: Place,
    reply_of: fn(Wanted<T, B>) -> Reply,
) -> Withdrawal
where
    M: Send + 'static,
    T: Send + 'static,
    B: Borrower<M>,
{
    let dispatcher = Arc::clone(dispatcher);
    Box::new(move || {
        if let Some(wanted) = dispatcher.withdraw(place) {
            reply_of(wanted).forget();
        }
    })
}

/// A job that was submitted.
#[pyclass(module = "oxlite._native", frozen)]
pub(crate) struct Job {
    progress: Arc<Progress>,
    /// `None` where it has not come to wait.
    withdrawal: Option<Withdrawal>,
    /// What it lends, if it does.
    handover: Option<Arc<Handover>>,
}

impl Job {
    pub(super) fn new(progress: Arc<Progress>, withdrawal: Option<Withdrawal>) -> Self {
        Self {
            progress,
            withdrawal,
            handover: None,
        }
    }

    pub(super) fn lending(
        progress: Arc<Progress>,
        withdrawal: Option<Withdrawal>,
        handover: Arc<Handover>,
    ) -> Self {
        Self {
            progress,
            withdrawal,
            handover: Some(handover),
        }
    }
}

#[pymethods]
impl Job {
    /// Gives it up: what has not begun is not done, a read that has is interrupted, and what is on its way
    /// to a borrower goes back. Whether it had not begun.
    fn cancel(&self, py: Python<'_>) -> bool {
        if self.progress.is_inherited() {
            return false;
        }
        if self.progress.withdraw() {
            if let Some(withdraw) = &self.withdrawal {
                withdraw();
            }
            return true;
        }
        // Whoever works on it may have the lock that this takes, and wait for the GIL.
        without(py, || {
            self.progress.give_up();
            // After that: whoever puts something there looks once more whether it is wanted.
            if let Some(handover) = &self.handover {
                handover.take_back();
            }
        });
        false
    }
}
