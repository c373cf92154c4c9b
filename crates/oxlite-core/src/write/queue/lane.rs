//! The line of one database's writers in this process: first come, first served, in turns.
//!
//! Invariants:
//! - There is one [`Pass`] at a time. Who has it stands at the gate for the whole process, or writes.
//! - Whoever waits is woken: by the pass being handed over, or by the timer that the first in line sets
//!   for the end of the present turn.
//! - A lane belongs to the process that made it; a forked child makes its own.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use super::gate::{self, Behind, Gate, Refusal};
use super::holder::{self, Held, Holder, Note, this_thread};
use super::patience::Patience;
use crate::process::per_file::PerFile;
use crate::sync::Instant;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::poisoning::{Mutex, MutexGuard};
use crate::wait::deadline::Deadline;

#[cfg(all(test, loom))]
mod model;

/// How long a thread may go on while another waits.
const TURN: Duration = Duration::from_micros(500);

/// The queue of one database's writers.
pub(crate) struct Lane {
    line: Mutex<Line>,
    database: PathBuf,
    /// What stands between this process and others. Opened for the first write, since it leaves a file.
    gate: OnceLock<Mutex<Gate>>,
    /// Why nothing does: it is tried again now and then. Taken by who has the pass, and by who looks.
    refusal: std::sync::Mutex<Option<Refusal>>,
    counters: Counters,
}

struct Line {
    is_taken: bool,
    /// The thread that alone can give the pass back, while it is taken; 0 if any may.
    taken_by: u32,
    waiting: VecDeque<Arc<Waiter>>,
    turn: Turn,
    /// What whoever has the pass holds the lock for, once that is so.
    note: Option<Note>,
}

/// The time for which one connection goes first.
struct Turn {
    /// The connection, by the address of its deadline.
    of: usize,
    began: Instant,
    /// Whether the first in line knows when it ends.
    is_timed: bool,
}

impl Turn {
    fn of(connection: &Arc<Deadline>) -> Self {
        Self {
            of: Arc::as_ptr(connection).addr(),
            began: Instant::now(),
            is_timed: false,
        }
    }

    fn remaining(&self) -> Duration {
        TURN.saturating_sub(self.began.elapsed())
    }
}

/// A connection that wants to write.
#[derive(Clone, Copy)]
pub(super) struct Comer<'c> {
    /// By which it is known, and woken.
    pub(super) deadline: &'c Arc<Deadline>,
    /// The only thread that uses it, as the system numbers it; 0 if any may.
    pub(super) thread: u32,
}

/// The pass is held by this very thread, which would wait for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldByThisThread;

/// A connection in line.
struct Waiter {
    deadline: Arc<Deadline>,
    thread: u32,
    has_pass: AtomicBool,
    /// Whether it has become the first, or its turn is asked for, since it last looked. Without it a
    /// call between its look and its sleep would be lost.
    is_called: AtomicBool,
}

#[derive(Default)]
struct Counters {
    admissions: AtomicU64,
    thread_waits: AtomicU64,
    gate: gate::Counters,
}

/// What the queue of one database has done in this process, for all its connections together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Connections that are in line in this process now.
    pub waiting: usize,
    /// How often a connection was let through to the lock.
    pub admissions: u64,
    /// How often it had to wait for another connection of this process.
    pub thread_waits: u64,
    /// How often the process had to wait for other processes.
    pub process_waits: u64,
    /// How often a turn of the process among others began.
    pub turns: u64,
    /// How often it took the lock without having come to the head of the queue, since those before it
    /// did nothing.
    pub queue_skips: u64,
    /// Why there is no queue between processes; `None` if there is one.
    pub process_queue_unavailable: Option<String>,
}

static LANES: PerFile<Lane> = PerFile::new();

impl Lane {
    /// The lane of the database at `path`, which exists: one for all paths that lead to the file.
    pub(crate) fn of(path: &Path) -> std::io::Result<Arc<Self>> {
        LANES.of(path, || Self::new(path.to_owned()))
    }

    fn new(database: PathBuf) -> Self {
        Self {
            line: Mutex::new(Line {
                is_taken: false,
                taken_by: 0,
                waiting: VecDeque::new(),
                turn: Turn {
                    of: 0,
                    began: Instant::now(),
                    is_timed: false,
                },
                note: None,
            }),
            database,
            gate: OnceLock::new(),
            refusal: std::sync::Mutex::new(None),
            counters: Counters::default(),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gate(&self) -> Option<MutexGuard<'_, Gate>> {
        let gate = match self.gate.get() {
            Some(gate) => gate,
            None => {
                let gate = self.open_gate()?;
                self.gate.get_or_init(|| Mutex::new(gate))
            }
        };
        Some(gate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn refusal(&self) -> std::sync::MutexGuard<'_, Option<Refusal>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_gate(&self) -> Option<Gate> {
        if self.refusal().as_ref().is_some_and(Refusal::is_fresh) {
            return None;
        }
        let reason = match Gate::open(&self.database) {
            Ok(gate) => return Some(gate),
            Err(reason) => reason,
        };
        let before = self.refusal().replace(Refusal::new(reason.clone()));
        if before.is_none_or(|before| before.reason() != reason) {
            // With nothing locked: whoever is told may have to wait for the GIL.
            log::warn!(
                "The writers of {} do not stand in line with those of other processes: {reason}. They \
                 wait as with busy=\"fair\", until that has been mended.",
                self.database.display()
            );
        }
        None
    }

    /// What the gate has to do with.
    fn behind(self: &Arc<Self>) -> Behind<'_, Self> {
        Behind {
            counters: &self.counters.gate,
            kept: self,
        }
    }

    /// Waits in line, then at the gate. `None` when patience has ended before a pass was to be had.
    ///
    /// Whoever `is_forward` goes through the gate without a look. Whoever has a pass may not be at the head of
    /// the queue of processes: see [`Pass::stand_in_line`].
    pub(super) fn enter(
        self: &Arc<Self>,
        comer: Comer<'_>,
        patience: &Patience<'_>,
        is_forward: bool,
    ) -> Result<Option<Pass>, HeldByThisThread> {
        if !self.line().take(comer) && !self.wait_in_line(comer, patience)? {
            return Ok(None);
        }
        self.counters.admissions.fetch_add(1, Ordering::Relaxed);
        let pass = Pass {
            lane: Arc::clone(self),
            since: Instant::now(),
        };
        if !is_forward && let Some(mut gate) = self.gate() {
            gate.arrive(patience, self.behind());
        }
        Ok(Some(pass))
    }

    /// Whether a connection of this thread, and of no other, holds the pass.
    pub(super) fn is_held_by_this_thread(&self) -> bool {
        self.line().is_taken_by_this_thread()
    }

    fn wait_in_line(
        &self,
        comer: Comer<'_>,
        patience: &Patience<'_>,
    ) -> Result<bool, HeldByThisThread> {
        if patience.is_over() {
            return Ok(false);
        }
        // It cannot become so while this thread waits.
        if self.is_held_by_this_thread() {
            return Err(HeldByThisThread);
        }
        self.counters.thread_waits.fetch_add(1, Ordering::Relaxed);
        let waiter = Arc::new(Waiter {
            deadline: Arc::clone(comer.deadline),
            thread: comer.thread,
            has_pass: AtomicBool::new(false),
            is_called: AtomicBool::new(false),
        });
        let has_pass = || waiter.has_pass.load(Ordering::Acquire);
        self.line().waiting.push_back(Arc::clone(&waiter));
        loop {
            // Not with the line locked: see there.
            let is_over = patience.is_over();
            let pause = {
                let mut line = self.line();
                waiter.is_called.store(false, Ordering::Relaxed);
                if has_pass() {
                    return Ok(true);
                }
                if is_over {
                    line.withdraw(&waiter);
                    return Ok(false);
                }
                let is_first = line
                    .waiting
                    .front()
                    .is_some_and(|first| Arc::ptr_eq(first, &waiter));
                match line.turn.remaining() {
                    _ if !is_first => Duration::MAX,
                    remaining if !remaining.is_zero() => {
                        line.turn.is_timed = true;
                        remaining
                    }
                    // Handed over when it is let go.
                    _ if line.is_taken => Duration::MAX,
                    _ => {
                        line.hand_over();
                        return Ok(true);
                    }
                }
            };
            patience.sleep(pause, || {
                has_pass() || waiter.is_called.load(Ordering::Acquire)
            });
        }
    }

    /// Gives the pass back.
    fn release(&self) {
        let mut line = self.line();
        line.is_taken = false;
        line.note = None;
        if line.waiting.is_empty() {
            return;
        }
        if line.turn.remaining().is_zero() {
            line.hand_over();
        } else if !line.turn.is_timed {
            line.turn.is_timed = true;
            line.wake_first();
        }
    }

    /// Who has the write lock, so far as is known; if it has told nothing, it is looked for that long.
    pub(crate) fn holder(&self, look_for: Duration) -> Held {
        let note = || self.line().note.as_ref().map(Note::as_holder);
        if self.is_held_by_this_thread() {
            return Held::ByThisThread(note());
        }
        if let Some(holder) = note().or_else(|| self.published()) {
            return Held::Told(holder);
        }
        let processes = match look_for.is_zero() {
            true => Vec::new(),
            false => holder::that_write(&self.database, look_for),
        };
        match processes.is_empty() {
            true => Held::Unknown,
            false => Held::Seen(processes),
        }
    }

    /// What another process has told.
    fn published(&self) -> Option<Holder> {
        let published = match self.gate.get()?.try_lock() {
            Ok(gate) => gate.published(),
            // A thread of this process stands there, perhaps for long.
            Err(_) => Gate::open(&self.database).ok()?.published(),
        };
        // Through that second file it may be this process's own.
        match &self.line().note {
            Some(note) => Some(note.as_holder()),
            None => published.and_then(|note| Holder::read(&note)),
        }
    }

    /// What it has done so far.
    pub(crate) fn statistics(&self) -> QueueStatistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QueueStatistics {
            waiting: self.line().waiting.len(),
            admissions: count(&self.counters.admissions),
            thread_waits: count(&self.counters.thread_waits),
            process_waits: count(&self.counters.gate.process_waits),
            turns: count(&self.counters.gate.turns),
            queue_skips: count(&self.counters.gate.queue_skips),
            process_queue_unavailable: match self.gate.get() {
                Some(_) => None,
                None => self
                    .refusal()
                    .as_ref()
                    .map(|refusal| refusal.reason().into()),
            },
        }
    }
}

impl Line {
    fn is_taken_by_this_thread(&self) -> bool {
        self.is_taken && self.taken_by != 0 && self.taken_by == this_thread()
    }

    /// Takes the pass if it is free and this connection may go first.
    fn take(&mut self, comer: Comer<'_>) -> bool {
        if self.is_taken {
            return false;
        }
        let connection = comer.deadline;
        let is_its_turn = self.turn.of == Arc::as_ptr(connection).addr();
        if self.waiting.is_empty() {
            if !is_its_turn || self.turn.remaining().is_zero() {
                self.turn = Turn::of(connection);
            }
        } else if !is_its_turn || self.turn.remaining().is_zero() {
            return false;
        }
        self.is_taken = true;
        self.taken_by = comer.thread;
        true
    }

    /// Gives the pass, which is free, to the first in line.
    fn hand_over(&mut self) {
        if let Some(first) = self.waiting.pop_front() {
            self.is_taken = true;
            self.taken_by = first.thread;
            self.turn = Turn::of(&first.deadline);
            first.has_pass.store(true, Ordering::Release);
            first.deadline.wake();
        }
    }

    fn wake_first(&self) {
        if let Some(first) = self.waiting.front() {
            first.is_called.store(true, Ordering::Release);
            first.deadline.wake();
        }
    }

    /// Takes one out of the line who waits no longer.
    fn withdraw(&mut self, waiter: &Arc<Waiter>) {
        self.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
        // The next one may have become the first, who looks at the clock.
        self.wake_first();
    }
}

/// The right of one connection to try for the write lock, and to keep it.
pub(super) struct Pass {
    lane: Arc<Lane>,
    since: Instant,
}

impl Pass {
    /// That thread alone can give it back, or any if it is 0.
    pub(super) fn confine(&self, thread: u32) {
        self.lane.line().taken_by = thread;
    }

    /// For how long it has been held.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether this process is at the head of the queue of processes, or there is none.
    pub(super) fn is_head(&self) -> bool {
        self.lane.gate().is_none_or(|gate| gate.is_head())
    }

    /// For how long it has been.
    pub(super) fn waited_at_the_head(&self) -> Duration {
        self.lane
            .gate()
            .map_or(Duration::MAX, |gate| gate.waited_at_the_head())
    }

    /// Waits to become the head; returns from time to time though it is not.
    pub(super) fn stand_in_line(&mut self, patience: &Patience<'_>) {
        if let Some(mut gate) = self.lane.gate() {
            gate.stand_in_line(patience, self.lane.behind());
        }
    }

    /// Notes for others that the lock is held, and for what; whether it need not be told again.
    pub(super) fn hold(&mut self, sql: &CStr) -> bool {
        let note = {
            let mut line = self.lane.line();
            let note = line.note.get_or_insert_with(Note::new);
            if !note.is_news() {
                return false;
            }
            note.set_statement(sql);
            note.to_bytes()
        };
        // With the line unlocked: writing to a file may take its time.
        self.lane.gate().is_some_and(|mut gate| gate.publish(&note))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(mut gate) = self.lane.gate() {
            gate.leave(&self.lane.counters.gate);
        }
        self.lane.release();
    }
}
