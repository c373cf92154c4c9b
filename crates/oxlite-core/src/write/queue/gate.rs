//! The queue of processes in front of a database's write lock: three bytes of a file beside it,
//! `app.db-gate`, that processes lock.
//!
//! - `QUEUE`: locked by the head of the queue, from when it has become that until it has written. The
//!   others wait for it in the kernel, which wakes them in order.
//! - `WAITING`: locked, together, by all those who wait.
//! - `HOLDER`: locked by who has told in the file what it holds SQLite's lock for.
//!
//! In its turn a process does not look at them. Otherwise one question tells whether anybody is in the
//! queue; if not, a new turn begins. If so, the process joins it, unless it has saved up a transaction
//! (`allowance`); and so it does if SQLite's lock is held. Turns end by themselves, so the head is held up
//! for no longer than one turn, one write and what the others have saved up.
//!
//! A lock cannot be waited for with a time limit, nor be given up; so a thread of its own waits for it
//! (`lock_thread`), and whoever wants it waits for that thread.
//!
//! Invariants:
//! - Liveness is the kernel's: a lock goes with its holder. Nothing in the file is waited for.
//! - Whatever fails here lets the process through.

mod allowance;
mod lock_thread;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxlite_sqlite::{Byte, LockFile};

use self::allowance::Allowance;
use self::lock_thread::{Caller, LockThread};
use super::PROBE_EVERY;
use super::holder::NOTE_AT_MOST;
use super::patience::Patience;
use crate::file::{beside, network};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::text::harmless;

const QUEUE: Byte = Byte(0);
const WAITING: Byte = Byte(1);
const HOLDER: Byte = Byte(2);

/// How long a turn lasts, and how many transactions it has: among many processes, and among few, where
/// each change of turns weighs more than the wait. How they were measured:
/// docs/decisions/0009-write-queue-times.md.
const TURN_AMONG_MANY: Turn = Turn {
    length: Duration::from_micros(500),
    writes: 20,
};
const TURN_AMONG_FEW: Turn = Turn {
    length: Duration::from_millis(3),
    writes: 300,
};

/// Whoever has come to the head of the queue within this time has few others before him.
const WAIT_AMONG_FEW: Duration = Duration::from_millis(8);

/// What a process that stood in line may have saved up, so that a stolen turn is made good: the writes of
/// so many turns.
const TURNS_SAVED: u32 = 4;

/// While somebody waits and yet nobody is the head, it has been woken and does not run yet: it is given
/// this time, this often.
const AFTER_YOU: Duration = Duration::from_micros(20);
const AFTER_YOU_TIMES: u32 = 20;

/// How often one looks whether the file is still the one that others find under its name, and may be opened
/// by those who may write the database; and, without one, whether there is one to be had.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a turn allows.
struct Turn {
    length: Duration,
    writes: u32,
}

/// Why a process has no gate.
pub(super) struct Refusal {
    reason: String,
    at: Instant,
}

impl Refusal {
    pub(super) fn new(reason: String) -> Self {
        Self {
            reason,
            at: Instant::now(),
        }
    }

    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether it need not be tried again yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.at.elapsed() < LOOK_EVERY
    }
}

/// A process at the gate of one database.
pub(super) struct Gate {
    database: PathBuf,
    path: PathBuf,
    looked: Instant,
    lock_thread: Arc<LockThread>,
    place: Place,
    turn_began: Instant,
    turn: &'static Turn,
    /// The transactions that are left of the turn.
    writes: u32,
    allowance: Allowance,
    /// When it joined the queue.
    joined: Instant,
    has_published: bool,
    /// When somebody who waits was last given the time to go first in vain.
    nobody_came: Option<Instant>,
}

/// How often what happened at the gate. Read while a thread of the process waits there.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) process_waits: AtomicU64,
    pub(super) turns: AtomicU64,
    pub(super) queue_skips: AtomicU64,
}

/// What the gate counts in, and keeps alive, of whoever comes to it.
pub(super) struct Behind<'l, T> {
    pub(super) counters: &'l Counters,
    /// Kept alive while the process may be in the queue.
    pub(super) kept: &'l Arc<T>,
}

/// Where the process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Not in the queue.
    Outside,
    /// In the queue.
    Waiting,
    /// At its head since then.
    Head(Instant),
}

impl Gate {
    /// The gate of the database at that path; or why there is none.
    pub(super) fn open(database: &Path) -> Result<Self, String> {
        if network::holds(database) {
            return Err(network::REASON.into());
        }
        let path = beside::gate(database);
        let file = LockFile::open(&path, database)
            .map_err(|error| format!("{}: {error}", harmless(&path.to_string_lossy())))?;
        let now = Instant::now();
        Ok(Self {
            database: database.to_owned(),
            path,
            looked: now,
            lock_thread: LockThread::new(file, QUEUE),
            place: Place::Outside,
            turn_began: now,
            turn: &TURN_AMONG_FEW,
            writes: 0,
            allowance: Allowance::new(now),
            joined: now,
            has_published: false,
            nobody_came: None,
        })
    }

    /// What the process that has the write lock of the database at that path has told, if it has; without a place in
    /// the queue.
    pub(super) fn published_at(database: &Path) -> Option<Vec<u8>> {
        let file = LockFile::open_existing(&beside::gate(database), database).ok()?;
        published(&file)
    }

    fn file(&self) -> &LockFile {
        &self.lock_thread.file
    }

    pub(super) fn is_head(&self) -> bool {
        matches!(self.place, Place::Head(_))
    }

    pub(super) fn waited_at_the_head(&self) -> Duration {
        match self.place {
            Place::Head(since) => since.elapsed(),
            Place::Outside | Place::Waiting => Duration::ZERO,
        }
    }

    /// Comes to the gate: goes through in its turn, if nobody waits, or by its allowance; else stands in line.
    pub(super) fn arrive<T: Send + Sync + 'static>(
        &mut self,
        patience: &Patience<'_>,
        behind: Behind<'_, T>,
    ) {
        let now = Instant::now();
        if self.writes > 0 && now.duration_since(self.turn_began) < self.turn.length {
            return;
        }
        self.look(now);
        match self.file().locked_by_another(QUEUE, WAITING) {
            Ok(Some(_)) if self.allowance.spend(now) => {}
            Ok(Some(_)) => self.stand_in_line(patience, behind),
            Ok(None) | Err(_) => {
                behind.counters.turns.fetch_add(1, Ordering::Relaxed);
                self.turn_began = now;
                self.writes = self.writes.max(self.turn.writes);
            }
        }
    }

    /// Opens the file anew if others find another one under its name; else has it follow the database's
    /// permissions.
    fn look(&mut self, now: Instant) {
        if now.duration_since(self.looked) < LOOK_EVERY || self.place != Place::Outside {
            return;
        }
        self.looked = now;
        if self.file().is_at(&self.path) {
            let _ = self.file().follow(&self.database);
        } else if let Ok(file) = LockFile::open(&self.path, &self.database) {
            self.lock_thread.end();
            self.lock_thread = LockThread::new(file, QUEUE);
        }
    }

    /// Waits to become the head, for as long as [`PROBE_EVERY`].
    pub(super) fn stand_in_line<T: Send + Sync + 'static>(
        &mut self,
        patience: &Patience<'_>,
        behind: Behind<'_, T>,
    ) {
        if self.place == Place::Outside {
            behind
                .counters
                .process_waits
                .fetch_add(1, Ordering::Relaxed);
            self.join(patience, behind.kept);
        }
        let began = Instant::now();
        while self.place == Place::Waiting {
            if self.lock_thread.take() {
                // Others are woken by the kernel when this is let go.
                let _ = self.file().unlock(WAITING, WAITING);
                self.become_head();
            } else {
                let pause = PROBE_EVERY.saturating_sub(began.elapsed());
                if pause.is_zero() || patience.is_over() {
                    return;
                }
                patience.sleep(pause, || self.lock_thread.is_ready());
            }
        }
    }

    fn join<T: Send + Sync + 'static>(&mut self, patience: &Patience<'_>, kept: &Arc<T>) {
        self.joined = Instant::now();
        self.let_the_woken_go_first(patience);
        // While the thread is still at it, for an earlier wait, its lock would be ours as well.
        let outcome = match self.lock_thread.is_locking() {
            true => Ok(false),
            false => self.file().try_lock(QUEUE, false),
        };
        match outcome {
            Ok(true) => self.become_head(),
            Ok(false) => {
                let _ = self.file().try_lock(WAITING, true);
                self.place = Place::Waiting;
                self.lock_thread.ask(Caller {
                    deadline: Arc::clone(patience.deadline()),
                    kept: Arc::<T>::clone(kept),
                });
            }
            // No lock, no order: SQLite's own lock is all there is.
            Err(_) => self.become_head(),
        }
    }

    /// Gives whoever has just been woken to become the head the time to do so.
    fn let_the_woken_go_first(&mut self, patience: &Patience<'_>) {
        if self.nobody_came.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        for _ in 0..AFTER_YOU_TIMES {
            let is_free = matches!(self.file().locked_by_another(QUEUE, QUEUE), Ok(None));
            let somebody_waits =
                matches!(self.file().locked_by_another(WAITING, WAITING), Ok(Some(_)));
            if !(is_free && somebody_waits) {
                return;
            }
            patience.sleep(AFTER_YOU, || false);
        }
        // Whoever waits has been stopped.
        self.nobody_came = Some(Instant::now());
    }

    fn become_head(&mut self) {
        self.place = Place::Head(Instant::now());
        self.turn = match self.joined.elapsed() < WAIT_AMONG_FEW {
            true => &TURN_AMONG_FEW,
            false => &TURN_AMONG_MANY,
        };
        let saved = self.turn.writes * TURNS_SAVED;
        self.writes = (self.writes + self.turn.writes).min(saved);
    }

    /// Leaves, after it has written or given up.
    pub(super) fn leave(&mut self, counters: &Counters) {
        let now = Instant::now();
        self.allowance.leave(now);
        match self.place {
            Place::Outside => {
                if self.has_published {
                    let _ = self.file().unlock(HOLDER, HOLDER);
                }
            }
            Place::Head(_) => {
                counters.turns.fetch_add(1, Ordering::Relaxed);
                self.turn_began = now;
                let _ = self.file().unlock(QUEUE, HOLDER);
            }
            Place::Waiting => {
                counters.queue_skips.fetch_add(1, Ordering::Relaxed);
                self.lock_thread.dismiss();
                let _ = self.file().unlock(WAITING, HOLDER);
            }
        }
        self.place = Place::Outside;
        self.has_published = false;
        self.writes = self.writes.saturating_sub(1);
    }

    /// Tells other processes what SQLite's lock is held for; whether that could be told.
    pub(super) fn publish(&mut self, note: &[u8]) -> bool {
        if !self.has_published {
            self.has_published = matches!(self.file().try_lock(HOLDER, false), Ok(true));
        }
        if self.has_published && self.file().write_note(note).is_err() {
            // What stands there is another's.
            let _ = self.file().unlock(HOLDER, HOLDER);
            self.has_published = false;
        }
        self.has_published
    }

    /// What another process has told, if it still holds the lock.
    pub(super) fn published(&self) -> Option<Vec<u8>> {
        published(self.file())
    }
}

fn published(file: &LockFile) -> Option<Vec<u8>> {
    let is_told = || matches!(file.locked_by_another(HOLDER, HOLDER), Ok(Some(_)));
    if !is_told() {
        return None;
    }
    let note = file.read_note(NOTE_AT_MOST).ok()?;
    is_told().then_some(note)
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.lock_thread.end();
    }
}
