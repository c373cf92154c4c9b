//! What a connection is used for, as other threads see it: who holds a snapshot that keeps a log from
//! being begun anew.
//!
//! A connection that is watched notes its thread and the time whenever a statement begins; what it runs
//! is looked for only when somebody asks. The connection at rest is looked at directly; one in the
//! middle of a step is asked, and answers from its progress handler.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::callbacks::Callbacks;
use crate::clock::coarse_milliseconds;
use crate::connection::{Connection, Handle, TransactionState};
use crate::fork;

/// For how long a connection in the middle of a step is waited for, and how often it is looked at.
const ANSWER_WITHIN: Duration = Duration::from_millis(5);
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// What a connection notes for those who watch it.
#[derive(Default)]
pub(crate) struct Usage {
    is_watched: AtomicBool,
    /// The thread that used it last, as the operating system numbers it.
    thread_id: AtomicU32,
    /// When a statement last began with no transaction open, in milliseconds of the coarse clock.
    since_ms: AtomicU64,
    is_asked: AtomicBool,
    answer: Mutex<Option<String>>,
}

impl Usage {
    pub(crate) fn begin(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// In the middle of a statement, some thousand times a second.
    pub(crate) fn answer<'s>(&self, statement: impl FnOnce() -> Option<&'s CStr>) {
        if self.is_asked.load(Ordering::Relaxed)
            && let Some(statement) = statement()
        {
            let text = statement.to_string_lossy().into_owned();
            *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            self.is_asked.store(false, Ordering::Release);
        }
    }

    fn ask(&self) -> Option<String> {
        let take = || {
            let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
            answer.take()
        };
        drop(take());
        self.is_asked.store(true, Ordering::Release);
        let began = Instant::now();
        while self.is_asked.load(Ordering::Acquire) && began.elapsed() < ANSWER_WITHIN {
            thread::sleep(LOOK_EVERY);
        }
        self.is_asked.store(false, Ordering::Relaxed);
        take()
    }
}

impl Callbacks {
    /// Before a statement begins.
    #[inline]
    pub(crate) fn note_use(&self) {
        if self.usage.is_watched.load(Ordering::Relaxed) {
            self.note_use_now();
        }
    }

    fn note_use_now(&self) {
        let usage = &self.usage;
        usage.thread_id.store(current_thread(), Ordering::Relaxed);
        let is_in_transaction = !self.is_autocommit();
        if is_in_transaction && self.has_snapshot.get() {
            return; // which it keeps to the end of the transaction
        }
        let has_snapshot = self.main_transaction_state() != TransactionState::None;
        self.has_snapshot.set(is_in_transaction && has_snapshot);
        if !has_snapshot {
            let now_ms = coarse_milliseconds();
            usage.since_ms.store(now_ms, Ordering::Relaxed);
            self.observed.note_use(now_ms);
        }
    }
}

/// A connection that reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The thread that used it last, as the operating system numbers it; 0 if unknown.
    pub thread_id: u32,
    /// For how long it has had its snapshot.
    pub held_for: Duration,
    /// The statement it is in the middle of; `None` between the statements of a transaction.
    pub statement: Option<String>,
}

/// Sees what a connection reads. Does not keep it open.
#[derive(Clone)]
pub struct Watch {
    handle: Weak<Handle>,
    usage: Arc<Usage>,
}

impl Watch {
    pub(crate) fn new(handle: Weak<Handle>, usage: Arc<Usage>) -> Self {
        Self { handle, usage }
    }

    /// Whether the connection is gone for good.
    pub fn is_over(&self) -> bool {
        self.handle.strong_count() == 0
    }

    /// What it reads, if it has a snapshot. Waits some milliseconds at most.
    pub fn reading(&self) -> Option<Reading> {
        // One that waits, or does something else than running a statement, does not answer.
        self.look(|usage| usage.ask().map(Some))
    }

    /// The same without waiting: of one in the middle of a step it is not known what that does.
    pub fn reading_now(&self) -> Option<Reading> {
        self.look(|_| Some(None))
    }

    fn look(
        &self,
        in_the_middle: impl FnOnce(&Usage) -> Option<Option<String>>,
    ) -> Option<Reading> {
        let connection = Connection::of(self.handle.upgrade()?);
        let statement = match connection.try_glance() {
            Some(Ok(glance)) if glance.is_reading() => glance.running_statement(),
            Some(_) => return None,
            None => in_the_middle(&self.usage)?,
        };
        let since_ms = self.usage.since_ms.load(Ordering::Relaxed);
        let held_ms = coarse_milliseconds().saturating_sub(since_ms);
        Some(Reading {
            thread_id: self.usage.thread_id.load(Ordering::Relaxed),
            held_for: Duration::from_millis(held_ms),
            statement,
        })
    }
}

thread_local! {
    /// This thread's number, and the generation of processes for which it holds.
    static THREAD: Cell<(u32, u32)> = const { Cell::new((u32::MAX, 0)) };
}

/// This thread, as the operating system numbers it; 0 if unknown.
#[inline]
fn current_thread() -> u32 {
    let generation = fork::generation();
    let (known_in, number) = THREAD.get();
    if known_in == generation {
        return number;
    }
    let number = thread_number();
    THREAD.set((generation, number));
    number
}

#[cfg(target_os = "linux")]
fn thread_number() -> u32 {
    // SAFETY: takes nothing and always succeeds.
    unsafe { libc::gettid() }.unsigned_abs()
}

#[cfg(not(target_os = "linux"))]
fn thread_number() -> u32 {
    0
}
