//! What stands in front of SQLite's write lock: asked before a connection takes it, told when the
//! connection has let it go.
//!
//! It decides about order alone. Whether a connection gets the lock, SQLite decides.
//!
//! Invariants:
//! - A queue that has let a connection in is told when it has let the lock go, however the transaction
//!   has ended: after the statement that ended it, or at the latest when the connection's guard goes.
//! - A connection that has read in its transaction and now writes asks it only in WAL mode, where nobody
//!   waits for its reads: in a rollback journal's the two would wait for one another.
//! - Nor by a statement inside another one of this thread that has asked (in a function, a tracer, a
//!   signal handler): it would wait for itself.
//! - A statement that turns out to write to another database is let go in its midst.
//! - In a forked child nothing inherited is asked or told.

use std::cell::{Cell, OnceCell};
use std::ffi::CStr;

use libsqlite3_sys as ffi;

use crate::callbacks::{BusyWait, Callbacks, call};
use crate::connection::{Locked, TransactionState};
use crate::error::Result;
use crate::fork;

/// The queue in front of the write lock of a connection's main database.
pub trait WriteQueue: Send {
    /// Called before a statement begins that may write, with no transaction open. Waits for its turn.
    /// An error becomes the statement's, and [`leave`](Self::leave) is not called then.
    fn enter(&self, wait: &BusyWait<'_>) -> Result<()>;

    /// Called by who has been let in and does not try the lock: waits until nobody else is to try it.
    /// Whether that is so; not if the time to wait was over before.
    fn lead(&self, wait: &BusyWait<'_>) -> bool;

    /// Called now and then while that statement works, where there is a progress handler. `sql` is its
    /// text, looked for when asked.
    fn work<'s>(&self, sql: &dyn Fn() -> Option<&'s CStr>);

    /// Called when that statement, or a later one of the same transaction, has ended and the lock is
    /// still held. Whether this is what others can read of it now: the same statement need not tell it
    /// again.
    fn hold(&self, sql: &CStr) -> bool;

    /// Called when the lock has been let go, or was not taken.
    fn leave(&self);
}

/// How often a statement that is run again and again does not tell, where it was too early for news: the queue
/// looks at its clock.
const NOT_AGAIN: u32 = 31;

/// A connection's queue, and whether it has let the connection in.
pub(crate) struct Place {
    queue: OnceCell<Box<dyn WriteQueue>>,
    has_entered: Cell<bool>,
    /// Whether the statement that follows tells that the lock is held.
    is_told_later: Cell<bool>,
    /// The number of the statement that has told last; 0 if it is unknown. Others can read of it, or it was
    /// too early for news.
    told: Cell<u64>,
    /// How often it need not tell again, in this transaction.
    not_again: Cell<u32>,
    /// That of the process that opened the connection.
    generation: u32,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            queue: OnceCell::new(),
            has_entered: Cell::new(false),
            is_told_later: Cell::new(false),
            told: Cell::new(0),
            not_again: Cell::new(0),
            generation: fork::generation(),
        }
    }
}

thread_local! {
    /// How many statements of this thread have asked a queue and not ended, one inside the other.
    static ENTERING: Cell<u32> = const { Cell::new(0) };
}

/// A statement that has asked its queue, until its step is done.
pub(crate) struct Entering {
    /// Whether its transaction has read before. SQLite calls no busy handler for it then.
    pub(crate) has_read: bool,
}

impl Entering {
    fn begin(has_read: bool) -> Self {
        ENTERING.set(ENTERING.get() + 1);
        Self { has_read }
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        ENTERING.set(ENTERING.get() - 1);
    }
}

impl Callbacks {
    /// Before a statement that may write begins.
    #[inline]
    pub(crate) fn before_writing(&self) -> Result<Option<Entering>> {
        match self.write_queue.queue.get() {
            // Who only reads is refused by SQLite, and need not wait for that.
            Some(_) if self.only_reading.is_so() => Ok(None),
            Some(queue) if !self.write_queue.has_entered.get() => self.enter(queue.as_ref()),
            _ => Ok(None),
        }
    }

    fn enter(&self, queue: &dyn WriteQueue) -> Result<Option<Entering>> {
        if ENTERING.get() > 0 || self.is_queue_inherited() {
            return Ok(None);
        }
        let has_read = match self.main_transaction_state() {
            TransactionState::None => false,
            TransactionState::Read if self.log_file().is_some() => true,
            TransactionState::Read | TransactionState::Write => return Ok(None),
        };
        let entering = Entering::begin(has_read);
        // What runs while it waits, a signal handler, must not use the connection, as in a callback.
        let was_running = self.is_running.replace(true);
        let wait = BusyWait::before_the_first_try(self);
        let outcome = self.observed.waiting(|| queue.enter(&wait));
        self.is_running.set(was_running);
        outcome?;
        self.write_queue.has_entered.set(true);
        Ok(Some(entering))
    }

    /// Waits for the write lock where SQLite does not; whether to try it again.
    pub(crate) fn wait_to_write(&self, wait: &mut BusyWait<'_>) -> bool {
        let waits = || call(self, &self.busy, false, |busy| busy(wait));
        let is_again = self.observed.waiting(waits);
        wait.calls += 1;
        is_again
    }

    fn is_queue_inherited(&self) -> bool {
        self.write_queue.generation != fork::generation()
    }

    /// After a statement that may have written. `sql` is asked for the text of it while the lock is
    /// still held.
    #[inline]
    pub(crate) fn after_writing<'s>(&self, sql: impl FnOnce() -> Option<&'s CStr>) {
        self.after_statement(0, sql);
    }

    /// The same, for the statement of that number.
    #[inline]
    pub(crate) fn after_statement<'s>(&self, number: u64, sql: impl FnOnce() -> Option<&'s CStr>) {
        let (told, not_again) = (&self.write_queue.told, &self.write_queue.not_again);
        if number != 0 && told.get() == number && not_again.get() > 0 && !self.is_autocommit() {
            not_again.set(not_again.get() - 1);
            return; // it goes on in the transaction in which it has told
        }
        if number == 0 && not_again.get() <= NOT_AGAIN {
            // Between two uses of the connection any time may pass.
            told.set(0);
        }
        // A statement of our own is none of those that have asked.
        if !self.write_queue.has_entered.get() || self.is_silent.get() || self.is_queue_inherited()
        {
            return;
        }
        let Some(queue) = self.write_queue.queue.get() else {
            return;
        };
        if self.main_transaction_state() == TransactionState::Write {
            if !self.write_queue.is_told_later.get()
                && let Some(sql) = sql()
            {
                let is_noted = queue.hold(sql);
                told.set(number);
                not_again.set(if is_noted { u32::MAX } else { NOT_AGAIN });
            }
        } else {
            self.write_queue.has_entered.set(false);
            told.set(0);
            queue.leave();
        }
    }

    /// Waits until nobody else in the queue is to try the lock, and says whether that is so.
    pub(crate) fn lead_write_queue(&self) -> bool {
        if self.write_queue.has_entered.get()
            && !self.is_queue_inherited()
            && let Some(queue) = self.write_queue.queue.get()
        {
            let was_running = self.is_running.replace(true);
            let wait = BusyWait::before_the_first_try(self);
            let leads = self.observed.waiting(|| queue.lead(&wait));
            self.is_running.set(was_running);
            return leads;
        }
        true
    }

    /// In the middle of what writes without being a statement.
    pub(crate) fn tell_write_queue(&self, sql: &CStr) {
        if self.write_queue.has_entered.get()
            && !self.is_queue_inherited()
            && let Some(queue) = self.write_queue.queue.get()
        {
            self.write_queue.told.set(0);
            queue.hold(sql);
        }
    }

    /// In the middle of a statement.
    pub(crate) fn while_writing(&self) {
        if !self.write_queue.has_entered.get() || self.is_queue_inherited() {
            return;
        }
        match self.write_queue.queue.get() {
            // A statement takes its locks first, so this one writes elsewhere: to a temporary table, to
            // an attached database, to the file of VACUUM INTO.
            Some(_) if self.main_transaction_state() != TransactionState::Write => {
                self.after_writing(|| None);
            }
            Some(queue) => {
                self.write_queue.told.set(0);
                queue.work(&|| self.writing_statement());
            }
            None => {}
        }
    }

    /// The text of the statement that is writing.
    fn writing_statement(&self) -> Option<&CStr> {
        self.find_running(|is_read_only| !is_read_only)
    }

    /// The text of a statement that is in the middle of its work, or of its rows.
    pub(crate) fn running_statement(&self) -> Option<&CStr> {
        self.find_running(|_| true)
    }

    /// Stops the reads that are in the middle of their rows, whoever has them: from now on no snapshot is
    /// kept by one, and their next row is an error. Whether nothing is in the middle of its work then.
    pub(crate) fn end_reads(&self) -> bool {
        let Some(database) = self.database() else {
            return true;
        };
        self.reads_ended.set(self.reads_ended.get() + 1);
        let mut is_idle = true;
        let mut statement = std::ptr::null_mut();
        loop {
            // SAFETY: as in `find_running`; a statement of this connection may be reset under its lock, and
            // nobody holds a row of it, which would borrow it.
            unsafe {
                statement = ffi::sqlite3_next_stmt(database.as_ptr(), statement);
                if statement.is_null() {
                    return is_idle;
                }
                if ffi::sqlite3_stmt_busy(statement) == 0 {
                    continue;
                }
                match ffi::sqlite3_stmt_readonly(statement) != 0 {
                    // What went wrong with it was said when it was stepped.
                    true => drop(ffi::sqlite3_reset(statement)),
                    false => is_idle = false,
                }
            }
        }
    }

    fn find_running(&self, is_wanted: impl Fn(bool) -> bool) -> Option<&CStr> {
        let database = self.database()?.as_ptr();
        let mut statement = std::ptr::null_mut();
        loop {
            // SAFETY: open, and this thread has its lock; NULL asks for the first of its statements. The
            // text lives as long as its statement, which is running.
            unsafe {
                statement = ffi::sqlite3_next_stmt(database, statement);
                if statement.is_null() {
                    return None;
                }
                let sql = ffi::sqlite3_sql(statement);
                if ffi::sqlite3_stmt_busy(statement) != 0
                    && is_wanted(ffi::sqlite3_stmt_readonly(statement) != 0)
                    && !sql.is_null()
                {
                    return Some(CStr::from_ptr(sql));
                }
            }
        }
    }

    /// When the connection has been closed, and its locks are gone.
    pub(crate) fn leave_write_queue(&self) {
        self.write_queue.told.set(0);
        if self.write_queue.has_entered.take()
            && let Some(queue) = self.write_queue.queue.get()
        {
            queue.leave();
        }
    }

    pub(crate) fn main_transaction_state(&self) -> TransactionState {
        let Some(database) = self.database() else {
            return TransactionState::None;
        };
        // SAFETY: called while the connection is open and locked by this thread; "main" always exists.
        let state = |schema| unsafe { ffi::sqlite3_txn_state(database.as_ptr(), schema) };
        // Where no database has one, "main" need not be looked for by its name.
        match state(std::ptr::null()) {
            ffi::SQLITE_TXN_NONE => TransactionState::None,
            _ => TransactionState::of(state(c"main".as_ptr())),
        }
    }

    /// Whether no transaction is open.
    #[inline]
    pub(crate) fn is_autocommit(&self) -> bool {
        // SAFETY: called while the connection is open and locked by this thread.
        self.database()
            .is_none_or(|database| unsafe { ffi::sqlite3_get_autocommit(database.as_ptr()) != 0 })
    }
}

impl Locked<'_> {
    /// Puts a queue in front of the write lock. The first one stays.
    pub fn set_write_queue(&self, queue: Box<dyn WriteQueue>) {
        let _ = self.callbacks().write_queue.queue.set(queue);
    }

    /// Runs a statement that only begins the transaction of the one that follows at once: that one tells
    /// what the lock is held for.
    pub fn beginning<T>(&self, begin: impl FnOnce() -> T) -> T {
        let is_told_later = &self.callbacks().write_queue.is_told_later;
        is_told_later.set(true);
        let result = begin();
        is_told_later.set(false);
        result
    }
}
