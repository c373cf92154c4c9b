//! The owner of a `sqlite3*`: opening, locking, closing. By subject below: what is shared (`handle`), what one
//! asks (`state`) and sets (`settings`), how it is interrupted (`interrupt`), guards with fewer rights (`restricted`),
//! what its lock protects beside it (`cell`).
//!
//! Invariants, which every unsafe block below leans on:
//! - `State::database` is non-NULL and open until `State::availability` says that it is closed.
//! - It is used only by the thread that holds `Handle::state`; `sqlite3_interrupt` alone is called
//!   without it, under `Handle::interruptible`, which closing empties first.
//! - `State::depth` counts the guards alive. Closing needs exactly one, so no frame further up the
//!   stack can hold a row or a statement in mid-step.
//! - `State::statements` are the statements we prepared and have not finalised; a statement is
//!   finalised by whoever takes it out of there, under the lock, so once. `State::sessions` are our
//!   sessions in the same way, except that a session is deleted only while SQLite is not running on
//!   the connection: the hook of the sessions, which may be further up the stack, walks their list.
//! - While it is the target of a backup, SQLite is called on it by the backup alone, through
//!   `BackupTarget`; nobody else has a `Locked`. What loses its owner meanwhile waits for the end of the
//!   backup: finalising a statement may commit.
//! - In a forked child nothing of an inherited handle is touched, least of all a mutex of it, which
//!   another thread of the parent may have had; whoever shares the handle leaks his share.

mod cell;
mod handle;
mod interrupt;
mod restricted;
mod settings;
mod state;

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use libsqlite3_sys as ffi;

use self::handle::{Availability, State};
use crate::callbacks::Callbacks;
use crate::error::{Error, Result};
use crate::mutex::ReentrantMutexGuard;
use crate::statement::Statement;
use crate::usage::Watch;
use crate::{fork_duties, vfs};

pub use self::cell::ConnectionCell;
pub(crate) use self::handle::Handle;
pub use self::interrupt::InterruptHandle;
pub use self::restricted::{BackupTarget, Glance};

/// How a database is opened (<https://sqlite.org/c3ref/open.html>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// Refuse writes; the file must exist.
    pub read_only: bool,
    /// Read the name as a URI when it begins with `file:`.
    pub uri: bool,
    /// Share the page cache with the process's other connections that ask for it.
    pub shared_cache: bool,
    /// Make no file: it must exist, as where it is only read.
    pub must_exist: bool,
}

impl OpenFlags {
    fn bits(self) -> c_int {
        // Our lock serialises all use of a connection, so SQLite's own mutex would be a second one.
        let mut bits = ffi::SQLITE_OPEN_NOMUTEX | ffi::SQLITE_OPEN_EXRESCODE;
        bits |= if self.read_only {
            ffi::SQLITE_OPEN_READONLY
        } else if self.must_exist {
            ffi::SQLITE_OPEN_READWRITE
        } else {
            ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE
        };
        if self.uri {
            bits |= ffi::SQLITE_OPEN_URI;
        }
        if self.shared_cache {
            bits |= ffi::SQLITE_OPEN_SHAREDCACHE;
        }
        bits
    }
}

/// How far a transaction has gone (<https://sqlite.org/c3ref/txn_state.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionState {
    /// No lock, no snapshot.
    None,
    /// A read snapshot is held.
    Read,
    /// The write lock is held.
    Write,
}

impl TransactionState {
    #[inline]
    pub(crate) fn of(state: c_int) -> Self {
        match state {
            ffi::SQLITE_TXN_WRITE => Self::Write,
            ffi::SQLITE_TXN_READ => Self::Read,
            _ => Self::None,
        }
    }
}

/// An open SQLite connection; clones share it. Closed when the last clone and the last statement
/// are gone, or at once by [`Locked::close`].
///
/// In a forked child it can only be dropped, which does nothing there.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.handle.leak_inherited();
    }
}

impl Connection {
    /// Opens a database file, `:memory:`, or a temporary database (the empty name).
    pub fn open(name: &CStr, flags: OpenFlags) -> Result<Self> {
        vfs::install(fork_duties::install)?;
        if flags.bits() & ffi::SQLITE_OPEN_SHAREDCACHE != 0 {
            vfs::cache_is_shared();
        }
        let mut database = ptr::null_mut();
        // SAFETY: a NUL-terminated name, a place for the handle, the default VFS.
        let code = unsafe {
            ffi::sqlite3_open_v2(name.as_ptr(), &raw mut database, flags.bits(), ptr::null())
        };
        if code != ffi::SQLITE_OK {
            // SAFETY: NULL, or a handle in the "sick" state that nobody else knows; it still
            // carries the message and must be closed.
            let error = unsafe { Error::of(database, code) };
            // SAFETY: as above; NULL is a no-op.
            unsafe { ffi::sqlite3_close(database) };
            return Err(error);
        }
        let callbacks = Box::new(Callbacks::new(database));
        let connection = Self::of(Arc::new(Handle::new(database, callbacks)));
        // Not before the callbacks are where they stay: SQLite keeps a pointer to them.
        if let Ok(locked) = connection.lock() {
            locked.hear_of_commits();
        }
        Ok(connection)
    }

    /// Locks the connection for this thread, waiting while another thread holds it.
    pub fn lock(&self) -> Result<Locked<'_>, LockError> {
        // Asked before waiting: in a child nobody lets go of what another thread of the parent held.
        if self.is_inherited() {
            return Err(LockError::Forked);
        }
        Locked::new(&self.handle, self.handle.state.lock())
    }

    /// Like [`lock`](Self::lock), without waiting: `None` when another thread holds it.
    pub fn try_lock(&self) -> Option<Result<Locked<'_>, LockError>> {
        if self.is_inherited() {
            return Some(Err(LockError::Forked));
        }
        let state = self.handle.state.try_lock()?;
        Some(Locked::new(&self.handle, state))
    }

    /// Locks the target of a backup that is not finished, for a step of it; waits as
    /// [`lock`](Self::lock) does, which refuses it.
    pub fn lock_as_backup_target(&self) -> Result<BackupTarget<'_>, LockError> {
        if self.is_inherited() {
            return Err(LockError::Forked);
        }
        BackupTarget::new(&self.handle, self.handle.state.lock())
    }

    /// Like [`lock_as_backup_target`](Self::lock_as_backup_target), without waiting: `None` when
    /// another thread holds it.
    pub fn try_lock_as_backup_target(&self) -> Option<Result<BackupTarget<'_>, LockError>> {
        if self.is_inherited() {
            return Some(Err(LockError::Forked));
        }
        let state = self.handle.state.try_lock()?;
        Some(BackupTarget::new(&self.handle, state))
    }

    /// Locks the connection only to look at it, which one may also in a callback that must not use
    /// it, and between the steps of a backup over it; waits as [`lock`](Self::lock) does.
    pub fn glance(&self) -> Result<Glance<'_>, LockError> {
        if self.is_inherited() {
            return Err(LockError::Forked);
        }
        Glance::new(&self.handle, self.handle.state.lock())
    }

    /// Like [`glance`](Self::glance), without waiting: `None` when another thread holds the lock.
    pub fn try_glance(&self) -> Option<Result<Glance<'_>, LockError>> {
        if self.is_inherited() {
            return Some(Err(LockError::Forked));
        }
        let state = self.handle.state.try_lock()?;
        Some(Glance::new(&self.handle, state))
    }

    /// Whether whoever had the connection last has left a transaction open. For those who do not wait:
    /// somebody who has it now may have begun or ended one.
    pub fn was_in_transaction(&self) -> bool {
        self.handle.left.is_in_transaction.load(Ordering::Relaxed)
    }

    /// How many rows had been changed since the connection was opened, when somebody had it last.
    pub fn changes_so_far(&self) -> i64 {
        self.handle.left.total_changes.load(Ordering::Relaxed)
    }

    /// Whether it has not been closed. Another thread may close it the next moment. An inherited one
    /// is not open.
    pub fn is_open(&self) -> bool {
        !self.is_inherited() && !self.handle.interruptible.lock().database.is_null()
    }

    /// Whether this process is a forked child of the one that opened the connection, which cannot be
    /// used here.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.handle.is_inherited()
    }

    /// Whether `statement` is one of this connection's.
    pub fn has_prepared(&self, statement: &Statement) -> bool {
        statement.is_of(&self.handle)
    }

    /// Sees from any thread what this connection reads, and does not keep it open. From now on the
    /// connection notes who uses it.
    pub fn watch(&self, locked: &Locked<'_>) -> Watch {
        let usage = Arc::clone(&locked.callbacks().usage);
        usage.begin();
        Watch::new(Arc::downgrade(&self.handle), usage)
    }

    pub(crate) fn of(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Whether the step that runs may be broken off with nothing lost: it only reads, or waits to begin.
    /// Of use to the thread that runs it, in a callback: for any other it may be over.
    pub fn is_breakable(&self) -> bool {
        let target = self.handle.interruptible.lock();
        target.is_breakable.load(Ordering::Relaxed)
    }

    /// A handle that can interrupt this connection from any thread and does not keep it open.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle {
            handle: Arc::downgrade(&self.handle),
        }
    }
}

/// Why a connection could not be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// It has been closed.
    Closed,
    /// This thread is in one of its callbacks that must not use it (a busy handler, an authorizer,
    /// a progress handler, a trace or a hook): SQLite says what would happen is undefined. Or it is
    /// in a function or collation that a session calls while it reads.
    InCallback,
    /// It is the target of a backup that is not finished, and must not be used before.
    BackupTarget,
    /// It was opened before a fork, in the parent process.
    Forked,
}

/// The right to use an open connection, on this thread, until dropped. May be taken again by the
/// same thread (SQL functions do).
pub struct Locked<'c> {
    handle: &'c Arc<Handle>,
    /// Given up by `drop`, which then has one more thing to do.
    state: ManuallyDrop<ReentrantMutexGuard<'c, State>>,
    /// Neither `Send` nor `Sync`: the lock belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl<'c> Locked<'c> {
    #[inline]
    fn new(
        handle: &'c Arc<Handle>,
        state: ReentrantMutexGuard<'c, State>,
    ) -> Result<Self, LockError> {
        match state.availability.get() {
            Availability::Open => Self::guarding(handle, state),
            Availability::BackupTarget => Err(LockError::BackupTarget),
            Availability::Closed => Err(LockError::Closed),
        }
    }

    #[inline]
    fn guarding(
        handle: &'c Arc<Handle>,
        state: ReentrantMutexGuard<'c, State>,
    ) -> Result<Self, LockError> {
        if state.callbacks.is_running.get() {
            return Err(LockError::InCallback);
        }
        Ok(Self::counted(handle, state))
    }

    #[inline]
    fn counted(handle: &'c Arc<Handle>, state: ReentrantMutexGuard<'c, State>) -> Self {
        state.depth.set(state.depth.get() + 1);
        Self {
            handle,
            state: ManuallyDrop::new(state),
            _not_send: PhantomData,
        }
    }

    /// The open database. Valid, and ours to use, for as long as this guard lives.
    #[inline]
    pub(crate) fn database(&self) -> *mut ffi::sqlite3 {
        self.state.database
    }

    #[inline]
    pub(crate) fn handle(&self) -> &'c Arc<Handle> {
        self.handle
    }

    /// `Ok` for `SQLITE_OK`, else the connection's error.
    pub(crate) fn check(&self, code: c_int) -> Result<()> {
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            // SAFETY: open and locked by this guard.
            Err(unsafe { Error::of(self.database(), code) })
        }
    }

    pub(crate) fn callbacks(&self) -> &Callbacks {
        &self.state.callbacks
    }

    /// Remembers a statement of ours, so that closing the connection finalises it.
    pub(crate) fn adopt_statement(&self, statement: NonNull<ffi::sqlite3_stmt>) {
        self.state.statements.borrow_mut().insert(statement);
    }

    /// Finalises a statement of ours, whose only owner gives it up.
    pub(crate) fn finalize_statement(&self, statement: NonNull<ffi::sqlite3_stmt>) {
        if self.state.statements.borrow_mut().remove(&statement) {
            // SAFETY: a statement of this open connection, which this guard locks; it has just been
            // forgotten, so it is finalised once.
            unsafe { ffi::sqlite3_finalize(statement.as_ptr()) };
            self.callbacks().after_writing(|| None);
            self.callbacks().settle_silently();
        }
    }

    /// Remembers a session, so that closing the connection deletes it.
    pub(crate) fn adopt_session(&self, session: NonNull<ffi::sqlite3_session>) {
        self.state.sessions.borrow_mut().insert(session);
    }

    /// Whether there are sessions, other than those that can be deleted now since their owner is
    /// gone.
    pub fn has_sessions(&self) -> bool {
        // Who holds the only guard calls us, so no statement up the stack is recording a change: no
        // callback can get hold of an outer guard.
        self.handle.finalize_orphans(1);
        !self.state.sessions.borrow().is_empty()
    }

    /// Remembers an open blob, so that closing the connection closes it.
    pub(crate) fn adopt_blob(&self, blob: NonNull<ffi::sqlite3_blob>) {
        self.state.blobs.borrow_mut().push(blob);
    }

    /// Counts the backups that keep this connection from being closed.
    pub(crate) fn count_backups(&self, change: i32) {
        let backups = self.state.backups.get();
        self.state
            .backups
            .set(backups.saturating_add_signed(change));
    }

    /// Whether it is the source or the target of a backup that is not finished.
    pub(crate) fn is_in_backup(&self) -> bool {
        self.state.backups.get() > 0
    }

    /// Whether it is source or target of a backup that is not finished.
    pub fn has_backups(&self) -> bool {
        self.state.backups.get() > 0
    }

    /// Leaves the connection to a backup alone, whose target it is from now on. No other guard is
    /// alive: that is what the caller has asked for.
    pub(crate) fn become_backup_target(self) {
        self.count_backups(1);
        self.state.availability.set(Availability::BackupTarget);
    }

    pub(crate) fn require_outermost(&self, what: &str) -> Result<()> {
        if self.state.depth.get() == 1 {
            return Ok(());
        }
        Err(Error::new(
            ffi::SQLITE_MISUSE,
            format!("{what} from inside a callback of the same connection is not possible"),
        ))
    }

    /// Closes the connection: finalises every statement, rolls back an open transaction.
    ///
    /// Fails, and changes nothing, when an outer guard of this thread is alive.
    pub fn close(self) -> Result<()> {
        self.require_outermost("closing")?;
        if self.is_in_backup() {
            return Err(Error::new(
                ffi::SQLITE_BUSY,
                "unable to close due to unfinalized statements or unfinished backups",
            ));
        }
        self.handle.interruptible.lock().database = ptr::null_mut();
        let database = self.database();
        for statement in self.state.statements.take() {
            // SAFETY: a live statement of this connection, forgotten by the line above. Its owner
            // can no longer touch it: every method needs a guard, and after `closed` is set there
            // is none.
            unsafe { ffi::sqlite3_finalize(statement.as_ptr()) };
        }
        for session in self.state.sessions.take() {
            // SAFETY: as for the statements; the outermost guard calls, so SQLite is not using it.
            unsafe { ffi::sqlite3session_delete(session.as_ptr()) };
        }
        for blob in self.state.blobs.take() {
            // SAFETY: open, of this connection, and forgotten by the line above; its owner can no
            // longer touch it, as for the statements.
            unsafe { ffi::sqlite3_blob_close(blob.as_ptr()) };
        }
        self.state.availability.set(Availability::Closed);
        // SAFETY: open until this line, which nobody passes twice: no statement, blob or backup of ours is
        // left to keep it busy.
        let code = unsafe { self.state.callbacks.close(database) };
        self.state.callbacks.clear();
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            Err(Error::from_code(code))
        }
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        let outer_guards = self.state.depth.get() - 1;
        self.state.depth.set(outer_guards);
        if outer_guards == 0 && self.state.availability.get() != Availability::Closed {
            // Whatever has ended the transaction: a blob, a backup, a statement that was dropped.
            self.state.callbacks.after_writing(|| None);
            self.state.callbacks.settle_silently();
            let left = &self.handle.left;
            left.is_in_transaction
                .store(!self.is_autocommit(), Ordering::Relaxed);
            left.total_changes
                .store(self.total_changes(), Ordering::Relaxed);
        }
        // SAFETY: dropped here and nowhere else; the field is not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.state) };
        // A statement dropped by another thread in the meantime was left to us. Looking after the
        // lock has been let go, not before, leaves no moment in which neither side sees it.
        self.handle.finalize_orphans(0);
    }
}

/// A column or parameter name as text; names come from the SQL text, which was UTF-8.
///
/// # Safety
///
/// `name` is NULL or NUL-terminated and lives as long as `'a`.
pub(crate) unsafe fn name_from_c<'a>(name: *const c_char) -> Option<&'a str> {
    if name.is_null() {
        return None;
    }
    // SAFETY: see this function's contract.
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}
