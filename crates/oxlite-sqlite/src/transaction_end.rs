//! What is done once the transaction that is open has ended and its end may be told: waking those who listen
//! for a commit.
//!
//! Invariants:
//! - It is done after the commit has returned, with the queue for the write lock left, and where commits share
//!   their syncs, after the sync.
//! - It is done also where the transaction was rolled back: it must do no harm then.
//! - It is done once, by the thread that has the connection locked, and never in the middle of SQLite.

use std::cell::{Cell, RefCell};

use libsqlite3_sys as ffi;

use crate::callbacks::Callbacks;
use crate::connection::Locked;

type Work = Box<dyn FnOnce() + Send>;

/// What a connection has to do then.
#[derive(Default)]
pub(crate) struct Ending {
    has_work: Cell<bool>,
    work: RefCell<Vec<Work>>,
}

impl Ending {
    /// Lets go of it, when the connection has been closed.
    pub(crate) fn clear(&self) {
        self.has_work.set(false);
        drop(self.work.take());
    }
}

/// What is to be done for transactions that have ended, by whoever waits for their answers himself.
#[derive(Default)]
pub struct EndedTransactions(Vec<Work>);

impl EndedTransactions {
    /// Does it.
    pub fn conclude(self) {
        for work in self.0 {
            work();
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Callbacks {
    /// After a statement that may have ended a transaction, when its end may be told.
    #[inline]
    pub(crate) fn conclude_transaction(&self) {
        if self.ending.has_work.get() {
            self.take_ended().conclude();
        }
    }

    /// What is to be done for the transaction that was open, if it has ended.
    pub(crate) fn take_ended(&self) -> EndedTransactions {
        let Some(database) = self.database() else {
            return EndedTransactions::default();
        };
        // SAFETY: called while the connection is open and locked by this thread.
        if unsafe { ffi::sqlite3_get_autocommit(database.as_ptr()) } == 0 {
            return EndedTransactions::default(); // the transaction goes on
        }
        self.ending.has_work.set(false);
        EndedTransactions(self.ending.work.take())
    }
}

impl Locked<'_> {
    /// Has `work` done when the transaction that is open has ended, however it ends, and its end may be told;
    /// outside of a transaction, after the next statement that may commit. It must not use the connection.
    pub fn when_transaction_has_ended(&self, work: impl FnOnce() + Send + 'static) {
        let ending = &self.callbacks().ending;
        ending.work.borrow_mut().push(Box::new(work));
        ending.has_work.set(true);
    }
}
