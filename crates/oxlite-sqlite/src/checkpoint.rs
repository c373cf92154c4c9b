//! Checkpoints of a write-ahead log (<https://sqlite.org/wal.html#ckpt>), and who is told of commits so
//! that he makes them.
//!
//! SQLite's own automatic checkpoint runs inside the step that commits, and discards its errors. A
//! keeper is told of the commit there, does nothing yet, and is called again when the step is done.
//!
//! Invariants:
//! - A keeper is told of a commit in the middle of SQLite, where it uses no connection; it is called for
//!   its work by a statement that has ended, on the thread and under the lock of its connection.
//! - What it does changes nothing about the statement, which has succeeded.
//! - A wal hook of the user's, or `PRAGMA wal_autocheckpoint`, takes its place: SQLite knows one hook.

use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use libsqlite3_sys as ffi;

use crate::callbacks::{callbacks, registration, text};
use crate::connection::Locked;
use crate::error::{Error, Result};
use crate::statement::Step;
use crate::value::ValueRef;
use crate::vfs::about_to_wait;
use crate::write_queue::Entering;

/// The pause between two looks at a lock that a checkpoint waits for.
const PAUSE: Duration = Duration::from_micros(200);

/// How far a checkpoint goes (<https://sqlite.org/c3ref/wal_checkpoint_v2.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointMode {
    /// As far as it comes without waiting for anybody.
    Passive,
    /// Waits for the writer, then for readers of older snapshots: all of the log.
    Full,
    /// The same, then waits for all readers of the log: the next writer begins it anew.
    Restart,
    /// The same, and cuts the file to nothing.
    Truncate,
}

impl CheckpointMode {
    fn code(self) -> c_int {
        match self {
            Self::Passive => ffi::SQLITE_CHECKPOINT_PASSIVE,
            Self::Full => ffi::SQLITE_CHECKPOINT_FULL,
            Self::Restart => ffi::SQLITE_CHECKPOINT_RESTART,
            Self::Truncate => ffi::SQLITE_CHECKPOINT_TRUNCATE,
        }
    }
}

/// What a checkpoint came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Whether somebody was in the way, so that the mode's promise is not kept.
    pub is_busy: bool,
    /// The frames in the log; `None` without a log, or where another checkpoint is under way.
    pub frames: Option<u32>,
    /// How many of them are in the database by now.
    pub checkpointed: Option<u32>,
}

impl Checkpoint {
    /// Whether all of the log is in the database.
    pub fn is_complete(&self) -> bool {
        self.frames.is_some() && self.frames == self.checkpointed
    }

    /// How many frames are not.
    pub fn remaining(&self) -> u32 {
        let checkpointed = self.checkpointed.unwrap_or_default();
        self.frames.unwrap_or_default().saturating_sub(checkpointed)
    }
}

/// Who keeps the logs of a connection short.
pub trait LogKeeper: Send {
    /// Told, in the middle of a commit, that the log of `schema` has so many frames.
    fn committed(&self, schema: &CStr, frames: u32);

    /// Called when the statement that committed has ended; the connection may still have its place in
    /// the queue for the write lock.
    fn tend(&self, locked: &Locked<'_>);
}

/// A connection's keeper, and what it has to know.
#[derive(Default)]
pub(crate) struct Keeping {
    keeper: OnceCell<Box<dyn LogKeeper>>,
    has_news: Cell<bool>,
    /// For how long a checkpoint waits that has a limit of its own.
    patience: Cell<Option<Patience>>,
}

/// How a checkpoint with a limit of its own waits for locks.
#[derive(Clone, Copy)]
struct Patience {
    ends: Instant,
    /// How much of it has not been waited yet: what the checkpoint does between two waits, syncing and
    /// copying, is none of it.
    left: Duration,
    /// Whether the connection's busy handler is asked as well, so that it can end the wait sooner.
    asks_handler: bool,
}

/// What the busy handler is to do.
pub(crate) enum Wait {
    /// As always.
    Ask,
    /// Try again: it has been waited.
    Again,
    /// Give up.
    Over,
}

impl Keeping {
    /// What the busy handler is to do, for a connection that may have been told to stop.
    pub(crate) fn wait(&self, is_interrupted: impl FnOnce() -> bool) -> Wait {
        let Some(patience) = self.patience.get() else {
            return Wait::Ask;
        };
        let began = Instant::now();
        if patience.asks_handler {
            return match began < patience.ends {
                true => Wait::Ask,
                false => Wait::Over,
            };
        }
        if patience.left.is_zero() || is_interrupted() {
            return Wait::Over;
        }
        about_to_wait();
        thread::sleep(PAUSE.min(patience.left));
        let left = patience.left.saturating_sub(began.elapsed());
        self.patience.set(Some(Patience { left, ..patience }));
        Wait::Again
    }
}

impl Locked<'_> {
    /// Makes a checkpoint of one database, or of all attached ones; waits as the busy handler says.
    pub fn checkpoint(&self, schema: Option<&CStr>, mode: CheckpointMode) -> Result<Checkpoint> {
        self.callbacks().check_may_checkpoint()?;
        let (mut frames, mut checkpointed) = (-1, -1);
        // SAFETY: open and locked by this guard; NULL or a NUL-terminated name, and two places.
        let code = unsafe {
            ffi::sqlite3_wal_checkpoint_v2(
                self.database(),
                schema.map_or(ptr::null(), CStr::as_ptr),
                mode.code(),
                &raw mut frames,
                &raw mut checkpointed,
            )
        };
        let is_busy = code & 0xff == ffi::SQLITE_BUSY;
        if code != ffi::SQLITE_OK && !is_busy {
            // SAFETY: open and locked by this guard.
            return Err(unsafe { Error::of(self.database(), code) });
        }
        Ok(Checkpoint {
            is_busy,
            frames: u32::try_from(frames).ok(),
            checkpointed: u32::try_from(checkpointed).ok(),
        })
    }

    /// The same, waiting for `patience` at most, whatever the busy handler; for less, if
    /// `asks_handler` and that gives up sooner, or if the connection is interrupted.
    pub fn checkpoint_within(
        &self,
        schema: &CStr,
        mode: CheckpointMode,
        patience: Duration,
        asks_handler: bool,
    ) -> Result<Checkpoint> {
        if mode == CheckpointMode::Passive {
            return self.checkpoint(Some(schema), mode);
        }
        // SQLite's own handler, which is not zero here, cannot be asked; ours looks at `patience`.
        let own_milliseconds = self.busy_milliseconds()?;
        if own_milliseconds > 0 {
            let milliseconds = c_int::try_from(patience.as_millis()).unwrap_or(c_int::MAX);
            let milliseconds = match asks_handler {
                true => milliseconds.min(own_milliseconds),
                false => milliseconds,
            };
            // SAFETY: open and locked by this guard.
            unsafe { ffi::sqlite3_busy_timeout(self.database(), milliseconds) };
        }
        let keeping = &self.callbacks().keeping;
        let before = keeping.patience.replace(Some(Patience {
            ends: Instant::now() + patience,
            left: patience,
            asks_handler,
        }));
        let outcome = self.checkpoint(Some(schema), mode);
        keeping.patience.set(before);
        if own_milliseconds > 0 {
            // SAFETY: open and locked by this guard.
            unsafe { ffi::sqlite3_busy_timeout(self.database(), own_milliseconds) };
        }
        outcome
    }

    /// What SQLite's own busy handler waits; 0 if another one is set, or none.
    fn busy_milliseconds(&self) -> Result<c_int> {
        self.silently(|| {
            let prepared = self.prepare("PRAGMA busy_timeout", false)?;
            let Some(mut statement) = prepared.statement else {
                return Ok(0);
            };
            if statement.step(self)? == Step::Done {
                return Ok(0);
            }
            let Some(row) = statement.row(self) else {
                return Ok(0);
            };
            match row.get(0)? {
                ValueRef::Integer(value) => Ok(c_int::try_from(value).unwrap_or(c_int::MAX)),
                _ => Ok(0),
            }
        })
    }

    /// Runs a statement of our own, of which neither authorizer nor tracer is told.
    pub fn silently<T>(&self, work: impl FnOnce() -> T) -> T {
        let is_silent = &self.callbacks().is_silent;
        let was_silent = is_silent.replace(true);
        let result = work();
        is_silent.set(was_silent);
        result
    }

    /// Has `keeper` told of commits, in place of SQLite's automatic checkpoints. The first one stays.
    pub fn set_log_keeper(&self, keeper: Box<dyn LogKeeper>) {
        let _ = self.callbacks().keeping.keeper.set(keeper);
        self.restore_log_keeper();
    }

    /// Has the keeper told of commits again, after a wal hook has taken its place; `false` if there is
    /// none.
    pub fn restore_log_keeper(&self) -> bool {
        if self.callbacks().keeping.keeper.get().is_none() {
            return false;
        }
        self.set_wal_hook(None);
        let (trampoline, argument) = registration!(self, true, note_commit);
        // SAFETY: open and locked by this guard; see the first invariant of `callbacks.rs`.
        unsafe { ffi::sqlite3_wal_hook(self.database(), trampoline, argument) };
        true
    }

    /// After a statement that may have committed: lets the keeper do its work.
    #[inline]
    pub(crate) fn tend_log(&self) {
        if self.callbacks().keeping.has_news.get() {
            self.tend_log_now();
        }
    }

    fn tend_log_now(&self) {
        let keeping = &self.callbacks().keeping;
        keeping.has_news.set(false);
        if let Some(keeper) = keeping.keeper.get() {
            keeper.tend(self);
        }
    }

    /// Lets the next one in the queue for the write lock go on, if no transaction holds that lock.
    pub fn leave_write_queue(&self) {
        self.callbacks().after_writing(|| None);
    }

    /// Tells others what the write lock is held for, if the connection has its place in the queue.
    pub fn tell_write_queue(&self, sql: &CStr) {
        self.callbacks().tell_write_queue(sql);
    }

    /// Stands in the queue for the write lock until the result is dropped, as a statement that writes
    /// does; waits as that does.
    pub fn enter_write_queue(&self) -> Result<QueuePlace<'_>> {
        Ok(QueuePlace {
            _entering: self.callbacks().before_writing()?,
            locked: self,
        })
    }
}

/// A place in the queue for the write lock, for what writes without being a statement.
pub struct QueuePlace<'l> {
    locked: &'l Locked<'l>,
    _entering: Option<Entering>,
}

impl QueuePlace<'_> {
    /// Waits until nobody else in the queue is to try the lock, for as long as a statement would wait for it.
    /// Whether that is so.
    pub fn lead(&self) -> bool {
        self.locked.callbacks().lead_write_queue()
    }

    /// Tells others what the lock is held for.
    pub fn tell(&self, sql: &CStr) {
        self.locked.tell_write_queue(sql);
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.locked.leave_write_queue();
    }
}

unsafe extern "C" fn note_commit(
    argument: *mut c_void,
    _database: *mut ffi::sqlite3,
    schema: *const c_char,
    frames: c_int,
) -> c_int {
    // SAFETY: registered with this argument; the text lives for the length of this call.
    let (callbacks, schema) = unsafe { (callbacks(argument), text(schema)) };
    let keeping = &callbacks.keeping;
    if let (Some(keeper), Some(schema)) = (keeping.keeper.get(), schema) {
        keeping.has_news.set(true);
        let frames = frames.unsigned_abs();
        let _ = catch_unwind(AssertUnwindSafe(|| keeper.committed(schema, frames)));
    }
    ffi::SQLITE_OK
}
