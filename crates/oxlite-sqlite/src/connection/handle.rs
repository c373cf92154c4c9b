//! What a connection and all that belongs to it share: the open database, what has been made on it, and how
//! that is let go.
//!
//! The invariants are those of `connection.rs`.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use libsqlite3_sys as ffi;

use crate::callbacks::Callbacks;
use crate::error::{Error, Result};
use crate::fork;
use crate::mutex::{Mutex, ReentrantMutex};

/// Who may use an open connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Availability {
    /// Whoever has its lock.
    Open,
    /// The backup whose target it is. SQLite does not notice anybody else, and corrupts its memory
    /// (<https://sqlite.org/c3ref/backup_finish.html>).
    BackupTarget,
    /// Nobody any more.
    Closed,
}

/// Hashes addresses, which nobody outside chooses. A statement that is prepared for one use is put into its set
/// and taken out again.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    #[inline]
    fn write_usize(&mut self, address: usize) {
        // By the golden ratio, which spreads what differs in few bits; the lowest ones are all the same.
        let mixed = (self.0 ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed.rotate_left(32);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

pub(super) struct State {
    pub(super) database: *mut ffi::sqlite3,
    pub(super) availability: Cell<Availability>,
    /// Guards alive, all on the thread that holds the lock.
    pub(super) depth: Cell<u32>,
    /// Our statements that are not finalised. SQLite's own list also holds those that virtual
    /// tables prepared for themselves, which are theirs to finalise.
    pub(super) statements:
        RefCell<HashSet<NonNull<ffi::sqlite3_stmt>, BuildHasherDefault<AddressHasher>>>,
    /// What SQLite calls back. It points here, so this is boxed; see `callbacks.rs`.
    pub(super) callbacks: Box<Callbacks>,
    /// Our sessions that are not deleted. SQLite must not be left with one when it closes.
    pub(super) sessions: RefCell<HashSet<NonNull<ffi::sqlite3_session>>>,
    /// Open blobs. Closing the connection closes them; what is left of them is never used again.
    pub(super) blobs: RefCell<Vec<NonNull<ffi::sqlite3_blob>>>,
    /// Unfinished backups in which this connection is source or target; it cannot be closed.
    pub(super) backups: Cell<u32>,
}

// SAFETY: `database` is an owned handle without thread affinity (THREADSAFE=2), and so is what the lists
// point to; every callback is `Send`. It is reached through `Handle::state` alone, whose lock gives it to one
// thread at a time.
unsafe impl Send for State {}

/// What lost its owner, perhaps while another thread held the lock.
enum Orphan {
    Statement(NonNull<ffi::sqlite3_stmt>),
    Session(NonNull<ffi::sqlite3_session>),
    Blob(NonNull<ffi::sqlite3_blob>),
}

// SAFETY: neither a prepared statement nor a session nor a blob has thread affinity. `Handle` alone keeps
// orphans, and finalises, deletes and closes them under the lock of `state`.
unsafe impl Send for Orphan {}

/// The target of `sqlite3_interrupt`.
pub(super) struct Interruptible {
    /// NULL once closed.
    pub(super) database: *mut ffi::sqlite3,
    /// How many changesets are being applied, one inside the other. SQLite's own interruption would
    /// also stop what undoes an application, for as long as any statement is active.
    pub(super) applications: u32,
    /// Shared with `Callbacks`: whether an interruption waits for the application to end, and makes it
    /// end soon.
    pub(super) is_postponed: Arc<AtomicBool>,
    /// Shared with `Callbacks`: whether the step that runs may be broken off with nothing lost.
    pub(super) is_breakable: Arc<AtomicBool>,
    /// Shared with `Callbacks`: how many interruptions there have been.
    pub(super) interruptions: Arc<AtomicU64>,
}

// SAFETY: `sqlite3_interrupt` may be called from any thread while the connection is open, and whoever closes
// it makes the pointer NULL first, under the mutex in which `Handle` keeps this.
unsafe impl Send for Interruptible {}

pub(crate) struct Handle {
    /// Protects every use of the connection and of its statements; re-entrant because SQLite calls
    /// back into code that may use the same connection. It does not protect the file: SQLite does.
    pub(super) state: ReentrantMutex<State>,
    /// Statements dropped while somebody else held `state`, finalised when it is let go; sessions
    /// dropped while anybody did, deleted when the outermost guard goes. Those of the target of a
    /// backup, and its blobs, stay here until the backup is finished.
    orphans: Mutex<Vec<Orphan>>,
    has_orphans: AtomicBool,
    pub(super) interruptible: Mutex<Interruptible>,
    pub(super) left: Left,
    /// That of the process that opened the connection.
    generation: u32,
}

/// How whoever had the connection last has left it, for those who do not wait for the lock.
#[derive(Default)]
pub(super) struct Left {
    pub(super) is_in_transaction: AtomicBool,
    pub(super) total_changes: AtomicI64,
}

impl Handle {
    /// Of a database that has just been opened, and that nobody else knows.
    pub(super) fn new(database: *mut ffi::sqlite3, callbacks: Box<Callbacks>) -> Self {
        let interruptible = Interruptible {
            database,
            applications: 0,
            is_postponed: Arc::clone(&callbacks.is_interruption_postponed),
            is_breakable: Arc::clone(&callbacks.is_breakable),
            interruptions: Arc::clone(&callbacks.interruptions),
        };
        Self {
            state: ReentrantMutex::new(State {
                database,
                availability: Cell::new(Availability::Open),
                depth: Cell::new(0),
                statements: RefCell::default(),
                callbacks,
                sessions: RefCell::default(),
                blobs: RefCell::default(),
                backups: Cell::new(0),
            }),
            orphans: Mutex::new(Vec::new()),
            has_orphans: AtomicBool::new(false),
            interruptible: Mutex::new(interruptible),
            left: Left::default(),
            generation: fork::generation(),
        }
    }

    /// Whether this process is a forked child of the one that opened the connection.
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Asked by who shares a handle when he goes: whether there is nothing to be done, since it is
    /// inherited. Then his share is leaked, so that nobody ever closes the connection.
    #[inline]
    pub(crate) fn leak_inherited(self: &Arc<Self>) -> bool {
        let is_inherited = self.is_inherited();
        if is_inherited {
            std::mem::forget(Arc::clone(self));
        }
        is_inherited
    }

    /// Finalises `statement` now if the lock is free or ours, else leaves it to its holder, who
    /// finalises it when letting go.
    pub(crate) fn finalize(&self, statement: NonNull<ffi::sqlite3_stmt>) {
        self.orphans.lock().push(Orphan::Statement(statement));
        self.has_orphans.store(true, Ordering::SeqCst);
        self.finalize_orphans(0);
    }

    /// Deletes `session` now if nobody has the lock, else leaves it to whoever lets it go.
    ///
    /// It does not wait, since nothing outside the process hangs on a session, and its owner may be
    /// dropped where waiting would be a deadlock. It is not deleted under a guard of this thread
    /// either: that may be one up the stack whose statement is just recording a change.
    pub(crate) fn delete_session(&self, session: NonNull<ffi::sqlite3_session>) {
        self.orphans.lock().push(Orphan::Session(session));
        self.has_orphans.store(true, Ordering::SeqCst);
        self.finalize_orphans(0);
    }

    /// Finalises what has lost its owner, unless another thread holds the lock: then that thread
    /// does it, since it looks again after letting go.
    ///
    /// Sessions are left for later while this thread has more guards than `own_guards`, those that
    /// the caller knows not to be inside SQLite.
    #[inline]
    pub(super) fn finalize_orphans(&self, own_guards: u32) {
        if self.has_orphans.load(Ordering::SeqCst) {
            self.finalize_orphans_now(own_guards);
        }
    }

    #[cold]
    fn finalize_orphans_now(&self, own_guards: u32) {
        while self.has_orphans.load(Ordering::SeqCst) && !self.is_inherited() {
            let Some(state) = self.state.try_lock() else {
                return;
            };
            if state.availability.get() == Availability::BackupTarget
                || state.callbacks.is_running.get()
            {
                return; // who finishes the backup looks again, as does who is being called back
            }
            self.has_orphans.store(false, Ordering::SeqCst);
            let orphans = std::mem::take(&mut *self.orphans.lock());
            let mut later = Vec::new();
            // A connection that has been closed has finalised and deleted all that it knew.
            for orphan in orphans {
                match orphan {
                    Orphan::Statement(statement) => {
                        if state.statements.borrow_mut().remove(&statement) {
                            // SAFETY: a statement of this open connection, whose lock we hold; its
                            // only owner gave it up, and it has just been forgotten, so it is
                            // finalised once.
                            unsafe { ffi::sqlite3_finalize(statement.as_ptr()) };
                            state.callbacks.after_writing(|| None);
                            state.callbacks.settle_silently();
                        }
                    }
                    Orphan::Session(_) if state.depth.get() > own_guards => later.push(orphan),
                    Orphan::Session(session) => {
                        if state.sessions.borrow_mut().remove(&session) {
                            // SAFETY: as for a statement; and no frame of SQLite is using it, since
                            // nobody up the stack has a guard.
                            unsafe { ffi::sqlite3session_delete(session.as_ptr()) };
                        }
                    }
                    Orphan::Blob(blob) => {
                        let mut blobs = state.blobs.borrow_mut();
                        if let Some(index) = blobs.iter().position(|known| *known == blob) {
                            blobs.swap_remove(index);
                            // SAFETY: as for a statement.
                            unsafe { ffi::sqlite3_blob_close(blob.as_ptr()) };
                        }
                    }
                }
            }
            if !later.is_empty() {
                // The outer guard looks again when it goes.
                self.orphans.lock().append(&mut later);
                self.has_orphans.store(true, Ordering::SeqCst);
                return;
            }
        }
    }

    /// Closes `blob` if its connection is still open.
    ///
    /// Waits for the connection's lock, since an open blob holds a lock on the file; but not for the
    /// end of a backup over it.
    pub(crate) fn close_blob(&self, blob: NonNull<ffi::sqlite3_blob>) -> Result<()> {
        let state = self.state.lock();
        match state.availability.get() {
            Availability::Open => {
                state.blobs.borrow_mut().retain(|known| *known != blob);
                // SAFETY: an open blob of this open connection, whose lock we hold; it has just been
                // forgotten, so nobody closes it again.
                let code = unsafe { ffi::sqlite3_blob_close(blob.as_ptr()) };
                if code != ffi::SQLITE_OK {
                    // SAFETY: open, and locked above.
                    return Err(unsafe { Error::of(state.database, code) });
                }
                state.callbacks.after_writing(|| None);
                state.callbacks.draw_ticket(false);
                state.callbacks.settle()?;
            }
            Availability::BackupTarget => {
                self.orphans.lock().push(Orphan::Blob(blob));
                self.has_orphans.store(true, Ordering::SeqCst);
            }
            Availability::Closed => {}
        }
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.is_inherited() {
            return; // each share is leaked, so this does not happen
        }
        // Nobody holds a guard or a statement any more: each of them borrows or shares this handle.
        let state = self.state.get_mut();
        if state.availability.get() == Availability::Closed {
            return;
        }
        let database = state.database;
        for statement in state.statements.take() {
            // SAFETY: owned by nobody any more, and the connection is still open.
            unsafe { ffi::sqlite3_finalize(statement.as_ptr()) };
        }
        for session in state.sessions.take() {
            // SAFETY: as for the statements.
            unsafe { ffi::sqlite3session_delete(session.as_ptr()) };
        }
        // SAFETY: open, ours alone, and without statements of ours. An open transaction is rolled back.
        unsafe { state.callbacks.close(database) };
    }
}
