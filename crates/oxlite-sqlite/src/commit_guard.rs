//! What stands between a commit and its answer: asked before a connection writes, told when a commit has
//! returned, and waited for before whoever committed is told so.
//!
//! Invariants:
//! - A commit is noticed however it has come about: by the end of a statement, by stopping one
//!   (INSERT … RETURNING), by a script, a changeset, a blob, or a statement that was dropped. SQLite's
//!   commit hook says that one begins; and every statement that may write counts, outside a transaction,
//!   although it has changed nothing: what it has found there may be another one's commit.
//! - The guard's ticket is drawn after the commit has returned. It is waited for once the queue for the
//!   write lock has been left, so nobody waits for another one's answer in order to write.
//! - If the wait fails, the statement has: its commit has an unknown outcome
//!   ([`Error::is_of_commit`](crate::Error::is_of_commit)). Where nobody is there to be told, as for a
//!   statement that was dropped, the guard remembers, and refuses what comes next.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use libsqlite3_sys as ffi;

use crate::callbacks::Callbacks;
use crate::connection::Locked;
use crate::error::{Error, Result};
use crate::transaction_end::EndedTransactions;
use crate::vfs::about_to_wait;

/// Vouches for commits. Tickets grow with every one that is drawn.
pub trait CommitGuard: Send {
    /// Asked before a statement that may write or commit: an error refuses it.
    fn check(&self) -> Result<()>;

    /// Told that a commit has returned; its ticket.
    fn committed(&self) -> u64;

    /// Waits until the commit of that ticket may be acknowledged. Called with the connection locked.
    fn wait(&self, ticket: u64) -> Result<()>;
}

/// A connection's guard, and what it has not been waited for.
#[derive(Default)]
pub(crate) struct Guarding {
    guard: RefCell<Option<Rc<dyn CommitGuard>>>,
    is_set: Cell<bool>,
    /// Whether a commit has begun that has no ticket yet.
    owes_ticket: Cell<bool>,
    /// The latest ticket that has not been waited for.
    ticket: Cell<Option<u64>>,
    /// Whether somebody has said that he will wait for the ticket himself.
    is_deferred: Cell<bool>,
}

impl Guarding {
    fn guard(&self) -> Option<Rc<dyn CommitGuard>> {
        self.guard.borrow().clone()
    }

    /// A commit begins.
    pub(crate) fn note_commit(&self) {
        self.owes_ticket.set(self.is_set.get());
    }

    /// The commit that had begun has failed.
    pub(crate) fn forget_commit(&self) {
        self.owes_ticket.set(false);
    }

    /// Lets go of the guard, when the connection has been closed.
    pub(crate) fn clear(&self) {
        self.is_set.set(false);
        drop(self.guard.take());
    }
}

impl Callbacks {
    /// Before a statement begins that may write or commit.
    #[inline]
    pub(crate) fn check_guard(&self) -> Result<()> {
        match self.guarding.is_set.get() {
            true => self.check_guard_now(),
            false => Ok(()),
        }
    }

    fn check_guard_now(&self) -> Result<()> {
        match self.guarding.guard() {
            Some(guard) if !self.is_silent.get() => guard.check(),
            _ => Ok(()),
        }
    }

    /// After a statement that `may_commit`, or whatever else may have: draws a ticket if it has.
    #[inline]
    pub(crate) fn draw_ticket(&self, may_commit: bool) {
        if self.guarding.is_set.get() && (may_commit || self.guarding.owes_ticket.get()) {
            self.draw_ticket_now();
        }
    }

    fn draw_ticket_now(&self) {
        let Some(database) = self.database() else {
            return;
        };
        // SAFETY: called while the connection is open and locked by this thread.
        if unsafe { ffi::sqlite3_get_autocommit(database.as_ptr()) } == 0 {
            return; // the transaction goes on
        }
        if let Some(guard) = self.guarding.guard() {
            self.guarding.owes_ticket.set(false);
            self.guarding.ticket.set(Some(guard.committed()));
        }
    }

    /// Waits for the ticket that was drawn, with the queue left, unless somebody else does; then does what is
    /// to be done when a transaction has ended.
    #[inline]
    pub(crate) fn settle(&self) -> Result<()> {
        if self.guarding.is_deferred.get() {
            return Ok(());
        }
        if let Some(ticket) = self.guarding.ticket.get() {
            self.settle_now(ticket)?;
        }
        self.conclude_transaction();
        Ok(())
    }

    fn settle_now(&self, ticket: u64) -> Result<()> {
        self.guarding.ticket.set(None);
        let Some(guard) = self.guarding.guard() else {
            return Ok(());
        };
        about_to_wait();
        guard.wait(ticket).map_err(|error| error.of_commit(true))
    }

    /// When the connection is let go: for commits that nobody is told of.
    #[inline]
    pub(crate) fn settle_silently(&self) {
        self.draw_ticket(false);
        // The guard has kept the error.
        let _ = self.settle();
    }
}

impl Locked<'_> {
    /// Has `guard` vouch for the commits of this connection. Replaces the one before.
    pub fn set_commit_guard(&self, guard: Box<dyn CommitGuard>) {
        self.watch_commits();
        let guarding = &self.callbacks().guarding;
        drop(guarding.guard.replace(Some(Rc::from(guard))));
        guarding.is_set.set(true);
    }

    /// Whether the guard, if there is one, lets anything be written.
    pub fn check_commit_guard(&self) -> Result<()> {
        self.callbacks().check_guard()
    }

    /// Whether there is one.
    pub fn has_commit_guard(&self) -> bool {
        self.callbacks().guarding.is_set.get()
    }

    /// Runs `work`, whose commits are not waited for: the caller waits for the ticket, if there is one,
    /// before anybody is told of them, and then does what is to be done.
    pub fn deferring_answers<T>(
        &self,
        work: impl FnOnce() -> T,
    ) -> (T, Option<u64>, EndedTransactions) {
        let guarding = &self.callbacks().guarding;
        let was_deferred = guarding.is_deferred.replace(true);
        let result = work();
        guarding.is_deferred.set(was_deferred);
        self.callbacks().draw_ticket(false);
        (
            result,
            guarding.ticket.take(),
            self.callbacks().take_ended(),
        )
    }
}

/// The error of a target for a backup, whose commits are none of a statement's.
pub(crate) fn refuse_backup() -> Error {
    Error::new(
        ffi::SQLITE_MISUSE,
        "a connection with durable_commit=\"shared\" cannot be the target of a backup: open one without",
    )
}
