//! Who is told of what a connection does: that it is in use, now and then, and how long each statement has
//! taken.
//!
//! An observer says for how long it is to be left alone and whether statements are timed meanwhile. Without
//! one, and while it wants no times, a statement costs one look at a flag more.
//!
//! Invariants:
//! - It is told of a statement that has ended, on the thread and under the lock of its connection; the
//!   statement has been reset, and what it came to does not change any more.
//! - The time of a statement is what SQLite worked on it and waited for it: not what passes between two of
//!   its rows. A step after the first is timed by the coarse clock: right on the average, to a tick.
//! - Statements of our own ([`Locked::silently`]) are nobody's business.

use std::cell::{Cell, OnceCell};
use std::ffi::CStr;
use std::time::{Duration, Instant};

use crate::callbacks::{BusyWait, Callbacks};
use crate::clock::coarse_milliseconds;
use crate::connection::Locked;

/// Who is told of what a connection does.
pub trait Observer: Send {
    /// Told that the connection is in use: that a statement begins with no transaction open, or that one waits.
    /// `now_ms` is the coarse clock's. It uses no connection.
    fn used(&self, now_ms: u64) -> Attention;

    /// Told of a statement that was timed and has ended.
    fn ended(&self, locked: &Locked<'_>, statement: &EndedStatement<'_>);
}

/// What an observer wants to be told next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Before this it need not be told that the connection is in use, in milliseconds of the coarse clock.
    pub next_ms: u64,
    /// Whether statements are timed.
    pub times_statements: bool,
}

/// A statement that has ended, however it went.
#[derive(Clone, Copy, Debug)]
pub struct EndedStatement<'s> {
    /// Its text as prepared.
    pub sql: &'s CStr,
    /// What it has taken, with what it has waited.
    pub took: Duration,
    /// What it has waited for locks.
    pub waited: Duration,
}

/// A connection's observer, and what that wants.
#[derive(Default)]
pub(crate) struct Observed {
    observer: OnceCell<Box<dyn Observer>>,
    /// `None` without an observer.
    next_ms: Cell<Option<u64>>,
    times_statements: Cell<bool>,
    /// What the statement that runs has waited.
    waited: Cell<Duration>,
}

impl Observed {
    #[inline]
    pub(crate) fn times_statements(&self) -> bool {
        self.times_statements.get()
    }

    /// At that time of the coarse clock the connection is in use.
    #[inline]
    pub(crate) fn note_use(&self, now_ms: u64) {
        if self.next_ms.get().is_some_and(|next_ms| now_ms >= next_ms) {
            self.tell_of_use(now_ms);
        }
    }

    #[cold]
    fn tell_of_use(&self, now_ms: u64) {
        if let Some(observer) = self.observer.get() {
            let Attention {
                next_ms,
                times_statements,
            } = observer.used(now_ms);
            self.next_ms.set(Some(next_ms));
            self.times_statements.set(times_statements);
        }
    }

    /// Adds what `wait` takes to what the statement that runs has waited.
    #[inline]
    pub(crate) fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        if !self.times_statements.get() {
            return wait();
        }
        let began = Instant::now();
        let outcome = wait();
        self.waited.set(self.waited.get() + began.elapsed());
        outcome
    }
}

/// What a statement has taken so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stopwatch {
    /// Whether the statement has begun with its time taken, so that it ends so.
    is_running: bool,
    took: Duration,
    waited: Duration,
}

impl Stopwatch {
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Runs a step of its statement: the first, or one after it.
    pub(crate) fn time<T>(
        &mut self,
        callbacks: &Callbacks,
        is_first: bool,
        step: impl FnOnce() -> T,
    ) -> T {
        if is_first {
            *self = Self {
                is_running: true,
                ..Self::default()
            };
        }
        // A statement inside this one, in a function, waits for both.
        let waited_before = callbacks.observed.waited.take();
        let (outcome, took) = match is_first {
            true => {
                let began = Instant::now();
                (step(), began.elapsed())
            }
            false => {
                let began_ms = coarse_milliseconds();
                let outcome = step();
                let took_ms = coarse_milliseconds().saturating_sub(began_ms);
                (outcome, Duration::from_millis(took_ms))
            }
        };
        let waited = callbacks.observed.waited.get();
        callbacks.observed.waited.set(waited_before + waited);
        self.took += took;
        self.waited += waited;
        outcome
    }

    /// The statement has ended: tells of it.
    pub(crate) fn end(&mut self, locked: &Locked<'_>, sql: Option<&CStr>) {
        self.is_running = false;
        if let (Some(observer), Some(sql)) = (locked.callbacks().observed.observer.get(), sql) {
            let ended = EndedStatement {
                sql,
                took: self.took,
                waited: self.waited,
            };
            observer.ended(locked, &ended);
        }
    }
}

impl Locked<'_> {
    /// Has `observer` told of what the connection does, which it may be told of at once. The first one stays.
    pub fn set_observer(&self, observer: Box<dyn Observer>) {
        let observed = &self.callbacks().observed;
        if observed.observer.set(observer).is_ok() {
            observed.tell_of_use(coarse_milliseconds());
        }
    }
}

impl BusyWait<'_> {
    /// The connection is in use, and waits.
    pub fn note_use(&self) {
        self.callbacks.observed.note_use(coarse_milliseconds());
    }
}
