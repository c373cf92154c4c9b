//! The write-ahead log kept in bounds: when a connection of a production profile makes a checkpoint, how
//! far that goes, and what is told when it cannot.
//!
//! A checkpoint has two halves. The **bulk** is a passive one, made by the connection whose commit has
//! brought the log to [`BEGIN_AT`] frames, after it has let the next writer go on: what it has to sync
//! and to copy delays nobody else. The **finish** follows with the next commit of this process, in its
//! turn: it copies the few frames that have come since, under the write lock, so that the next writer
//! begins the log anew. Beyond its limit the file is cut as well, and readers that come and go are waited for
//! while nobody writes: whoever begins to read once all is in the database reads that alone, and is in
//! nobody's way.
//!
//! While somebody replicates the database, he makes the checkpoints, once he has read what they take away
//! (`python/oxlite/replication/guard.py`). Here none is made then.
//!
//! Invariants:
//! - A checkpoint that comes to no end is not tried again before the log has grown by [`BEGIN_AT`] frames
//!   more, or an eighth of its length: never once for each commit.
//! - A finish waits for at most [`FINISH_WITHIN`], or, where the log is beyond its limit, for
//!   [`WAIT_FOR_READERS`]: that only after a bulk which has shown that nobody reads for long, and rarely where
//!   it was in vain (`overlap`).
//! - No failure of a checkpoint becomes one of the commit before it. It is counted, kept and logged.
//! - What is logged is logged outside the queue, and with no lock held but the connection's own.

mod overlap;
mod readers;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oxlite_sqlite::{
    Byte, Checkpoint, CheckpointMode, LockFile, Locked, LogKeeper, Reading, Watch, codes,
};

use crate::error::Result;
use crate::file::beside;
use crate::open::setting::{Setting, are_of_wal_mode};
use crate::process::per_file::PerFile;
use crate::text::nearest::unknown;

use overlap::{Overlap, Readers};

/// With so many frames in the log a checkpoint is made, as SQLite's own default has it.
const BEGIN_AT: u32 = 1000;

/// How far the log grows, beyond the next checkpoint, before this process steps in for another one that
/// is at it.
const LEAVE_TO_OTHERS: u32 = 3 * BEGIN_AT;

/// A bulk that has left no more frames than this is worth an end: whoever was in the way has begun to read
/// just now, and may be a writer in its transaction.
const WORTH_FINISHING: u32 = BEGIN_AT / 2;

/// How long the end of a checkpoint waits, for the writer that has come between and for readers, and how
/// often it is tried, commit after commit.
const FINISH_WITHIN: Duration = Duration::from_millis(5);
const FINISH_TRIES: u32 = 3;

/// The size that a log should not exceed, in bytes, where `journal_size_limit` sets none.
const DEFAULT_LIMIT_BYTES: u64 = 64 << 20;

/// How long readers of a log beyond its limit are waited for, with the write lock. Those of older snapshots
/// have to end, and then those that have begun meanwhile: this is enough where none reads for more than 50 ms.
const WAIT_FOR_READERS: Duration = Duration::from_millis(110);

/// So many checkpoints in a row that come to no end are no chance: a writer in the middle of its
/// transaction reads as well.
const TELL_AFTER: u32 = 2;

/// How often it is told that a log cannot be kept short, or that a checkpoint has failed.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Of the file beside the database of who replicates it: locked while he does.
const REPLICATOR: Byte = Byte(0);

/// The log of one database, as this process sees it.
pub(crate) struct Log {
    database: PathBuf,
    /// Whether a connection has been told to keep it short, which counts commits and checkpoints.
    is_kept: AtomicBool,
    /// After the latest commit of this process.
    frames: AtomicU32,
    /// How many frames call for the next checkpoint.
    next_at: AtomicU32,
    /// Whether a thread is at it.
    is_tended: AtomicBool,
    /// Whether the bulk is done, and how often its end has been tried.
    is_finishing: AtomicBool,
    finish_tries: AtomicU32,
    counters: Counters,
    last_error: Mutex<Option<String>>,
    overlap: Mutex<Overlap>,
    told: Mutex<Option<Instant>>,
    /// How many checkpoints in a row have come to no end.
    held_back: AtomicU32,
    /// The connections of this process that may read it.
    watches: Mutex<Vec<Watch>>,
}

#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    checkpoints: AtomicU64,
    incomplete: AtomicU64,
    errors: AtomicU64,
    waits: AtomicU64,
    readers_named: AtomicU64,
}

/// What has become of the log of one database, by all connections of this process together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalStatistics {
    /// The frames in the log after this process's latest commit.
    pub frames: u32,
    /// The commits of this process, where it makes the checkpoints.
    pub commits: u64,
    /// Checkpoints that brought all of the log into the database.
    pub checkpoints: u64,
    /// Checkpoints that somebody was in the way of: a reader of an older snapshot, or a writer.
    pub incomplete: u64,
    /// Checkpoints that failed.
    pub errors: u64,
    /// The text of the latest failure.
    pub last_error: Option<String>,
    /// Checkpoints for which nobody could write until readers had ended, or the wait for them was over.
    pub waits: u64,
    /// How often it was told who keeps the log beyond its limit.
    pub readers_named: u64,
}

/// The mode of that name.
pub fn checkpoint_mode(name: &str) -> Result<CheckpointMode> {
    const NAMED: [(&str, CheckpointMode); 4] = [
        ("passive", CheckpointMode::Passive),
        ("full", CheckpointMode::Full),
        ("restart", CheckpointMode::Restart),
        ("truncate", CheckpointMode::Truncate),
    ];
    let known = NAMED.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, mode)| *mode)
        .ok_or_else(|| unknown("checkpoint mode", name, NAMED.map(|(known, _)| known)))
}

static LOGS: PerFile<Log> = PerFile::new();

/// What is to be told once the queue has been left.
enum Told {
    Readers { bytes: u64, limit_bytes: u64 },
    Failure(String),
}

impl Log {
    /// That of the database at `path`, which exists.
    pub(crate) fn of(path: &Path) -> std::io::Result<Arc<Self>> {
        LOGS.of(path, || Self::new(path.to_owned()))
    }

    fn new(database: PathBuf) -> Self {
        Self {
            database,
            is_kept: AtomicBool::new(false),
            frames: AtomicU32::new(0),
            next_at: AtomicU32::new(BEGIN_AT),
            is_tended: AtomicBool::new(false),
            is_finishing: AtomicBool::new(false),
            finish_tries: AtomicU32::new(0),
            counters: Counters::default(),
            last_error: Mutex::new(None),
            overlap: Mutex::default(),
            told: Mutex::new(None),
            held_back: AtomicU32::new(0),
            watches: Mutex::new(Vec::new()),
        }
    }

    /// Notes a connection that may read the log.
    pub(crate) fn watch(&self, watch: Watch) {
        let mut watches = lock(&self.watches);
        watches.retain(|watch| !watch.is_over());
        watches.push(watch);
    }

    /// Whether its commits and checkpoints are counted.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// What has become of it.
    pub(crate) fn statistics(&self) -> WalStatistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WalStatistics {
            frames: self.frames.load(Ordering::Relaxed),
            commits: count(&self.counters.commits),
            checkpoints: count(&self.counters.checkpoints),
            incomplete: count(&self.counters.incomplete),
            errors: count(&self.counters.errors),
            last_error: lock(&self.last_error).clone(),
            waits: count(&self.counters.waits),
            readers_named: count(&self.counters.readers_named),
        }
    }

    /// The connections of this process that have had a snapshot for at least `held_for`, the oldest first. Of one in
    /// the middle of a step it is not known what that runs.
    pub(crate) fn readings(&self, held_for: Duration) -> Vec<Reading> {
        let watches = lock(&self.watches).clone();
        let readings = watches.iter().filter_map(Watch::reading_now);
        let mut readings: Vec<_> = readings
            .filter(|reading| reading.held_for >= held_for)
            .collect();
        readings.sort_by_key(|reading| std::cmp::Reverse(reading.held_for));
        readings
    }

    /// Counts a checkpoint that the application has made.
    pub(crate) fn count(&self, outcome: &oxlite_sqlite::Result<Checkpoint>) {
        match outcome {
            Ok(checkpoint) if checkpoint.is_complete() && !checkpoint.is_busy => {
                self.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
            }
            Ok(checkpoint) if checkpoint.frames.is_some() || checkpoint.is_busy => {
                self.counters.incomplete.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {}
            Err(error) => self.note_error(error),
        }
    }

    fn note_error(&self, error: &oxlite_sqlite::Error) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        *lock(&self.last_error) = Some(error.to_string());
    }

    /// Whether a log of so many frames calls for a checkpoint.
    fn is_due(&self, frames: u32) -> bool {
        let before = self.frames.swap(frames, Ordering::Relaxed);
        // Two threads may tell in another order than they have committed in; a log begun anew is short.
        if frames < before / 2 {
            self.next_at.store(BEGIN_AT, Ordering::Relaxed);
            self.is_finishing.store(false, Ordering::Relaxed);
            lock(&self.overlap).forget();
        }
        frames >= self.next_at.load(Ordering::Relaxed)
    }

    /// Makes a checkpoint, or the second half of one.
    fn tend(&self, locked: &Locked<'_>, schema: &CStr, frames: u32, limit_bytes: u64) {
        if self.is_tended.swap(true, Ordering::Acquire) {
            return;
        }
        let told = match self.is_finishing.load(Ordering::Relaxed) {
            _ if self.is_replicated() => {
                self.start_over(frames);
                None
            }
            false => {
                locked.leave_write_queue();
                let outcome = locked.checkpoint(Some(schema), CheckpointMode::Passive);
                self.conclude_bulk(outcome, frames, limit_bytes)
            }
            true => {
                let is_long = self.bytes() > limit_bytes;
                let is_wait = is_long && lock(&self.overlap).may_wait(Instant::now());
                let outcome = self.finish(locked, schema, is_long, is_wait);
                self.conclude_finish(outcome, frames, limit_bytes, is_wait)
            }
        };
        self.is_tended.store(false, Ordering::Release);
        if let Some(told) = told.filter(|_| is_time(&self.told, TELL_EVERY)) {
            locked.leave_write_queue();
            self.tell(&told);
        }
    }

    /// Whether somebody replicates the database now, and so makes the checkpoints.
    fn is_replicated(&self) -> bool {
        LockFile::is_locked(&beside::replica(&self.database), REPLICATOR)
    }

    /// The second half. Cuts a file that is too long; may wait for all readers of the log.
    fn finish(
        &self,
        locked: &Locked<'_>,
        schema: &CStr,
        is_long: bool,
        is_wait: bool,
    ) -> oxlite_sqlite::Result<Checkpoint> {
        let mode = match is_long {
            true => CheckpointMode::Truncate,
            false => CheckpointMode::Full,
        };
        let patience = match is_wait {
            true => {
                locked.tell_write_queue(c"PRAGMA wal_checkpoint");
                WAIT_FOR_READERS
            }
            false => FINISH_WITHIN,
        };
        let outcome = locked.checkpoint_within(schema, mode, patience, false);
        if is_wait && !matches!(outcome, Ok(Checkpoint { frames: None, .. })) {
            self.counters.waits.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    fn conclude_bulk(
        &self,
        outcome: oxlite_sqlite::Result<Checkpoint>,
        frames: u32,
        limit_bytes: u64,
    ) -> Option<Told> {
        let readers = match &outcome {
            Ok(Checkpoint {
                frames: Some(all),
                checkpointed: Some(checkpointed),
                ..
            }) => lock(&self.overlap).look(Instant::now(), *all, *checkpointed),
            _ => Readers::Unknown,
        };
        match outcome {
            Ok(checkpoint) if checkpoint.is_complete() => {
                self.completed();
                self.finish_next(frames);
                None
            }
            Ok(checkpoint) if checkpoint.frames.is_none() => {
                self.next_at
                    .store(frames.saturating_add(LEAVE_TO_OTHERS), Ordering::Relaxed);
                None
            }
            Ok(checkpoint) if checkpoint.remaining() <= WORTH_FINISHING => {
                self.finish_next(frames);
                None
            }
            Ok(_) => {
                let told = self.held_back(frames, limit_bytes, readers == Readers::Stay);
                if self.bytes() > limit_bytes {
                    self.hurry(frames, readers);
                }
                told
            }
            Err(error) => self.failed(error, frames, limit_bytes),
        }
    }

    fn conclude_finish(
        &self,
        outcome: oxlite_sqlite::Result<Checkpoint>,
        frames: u32,
        limit_bytes: u64,
        is_wait: bool,
    ) -> Option<Told> {
        let is_in_vain = |checkpoint: &Checkpoint| checkpoint.is_busy || !checkpoint.is_complete();
        if is_wait && outcome.as_ref().map_or(true, is_in_vain) {
            lock(&self.overlap).waited_in_vain(Instant::now(), frames);
        }
        match outcome {
            Ok(checkpoint) if checkpoint.is_complete() && !checkpoint.is_busy => {
                self.completed();
                self.start_over(frames);
                None
            }
            // A writer came between, or readers of the newest snapshot are there: they go soon.
            Ok(checkpoint)
                if checkpoint.is_complete()
                    && !is_wait
                    && self.finish_tries.fetch_add(1, Ordering::Relaxed) < FINISH_TRIES =>
            {
                None
            }
            Ok(checkpoint) if checkpoint.frames.is_none() => {
                self.start_over(frames.saturating_add(LEAVE_TO_OTHERS - BEGIN_AT));
                None
            }
            Ok(_) => self.held_back(frames, limit_bytes, is_wait),
            Err(error) => self.failed(error, frames, limit_bytes),
        }
    }

    fn completed(&self) {
        self.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.held_back.store(0, Ordering::Relaxed);
    }

    /// The bulk is done: the next commit finishes it.
    fn finish_next(&self, frames: u32) {
        self.finish_tries.store(0, Ordering::Relaxed);
        self.next_at.store(frames, Ordering::Relaxed);
        self.is_finishing.store(true, Ordering::Relaxed);
    }

    /// The next checkpoint is made once the log has grown.
    fn start_over(&self, frames: u32) {
        let growth = BEGIN_AT.max(frames / 8);
        self.next_at
            .store(frames.saturating_add(growth), Ordering::Relaxed);
        self.is_finishing.store(false, Ordering::Relaxed);
    }

    /// Readers were in the way. They are told of where they read for long.
    fn held_back(&self, frames: u32, limit_bytes: u64, is_for_long: bool) -> Option<Told> {
        self.counters.incomplete.fetch_add(1, Ordering::Relaxed);
        self.start_over(frames);
        let in_a_row = self.held_back.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes();
        let is_news = is_for_long && bytes > limit_bytes && in_a_row >= TELL_AFTER;
        is_news.then_some(Told::Readers { bytes, limit_bytes })
    }

    /// The log is beyond its limit: a wait for its readers comes with the next commit, where it promises
    /// something.
    fn hurry(&self, frames: u32, readers: Readers) {
        if lock(&self.overlap).may_wait(Instant::now()) {
            self.finish_next(frames);
        } else if readers == Readers::MayComeAndGo {
            self.next_at
                .store(frames.saturating_add(BEGIN_AT), Ordering::Relaxed);
        }
    }

    fn failed(&self, error: oxlite_sqlite::Error, frames: u32, limit_bytes: u64) -> Option<Told> {
        match error.primary_code() {
            // This very connection reads, or has been told to stop.
            code @ (codes::SQLITE_LOCKED | codes::SQLITE_INTERRUPT) => {
                self.held_back(frames, limit_bytes, code == codes::SQLITE_LOCKED)
            }
            _ => {
                self.note_error(&error);
                self.start_over(frames);
                Some(Told::Failure(error.to_string()))
            }
        }
    }

    /// The size of the log's file. It is looked at, never opened.
    fn bytes(&self) -> u64 {
        std::fs::metadata(beside::wal(&self.database)).map_or(0, |file| file.len())
    }

    fn tell(&self, told: &Told) {
        let database = self.database.display();
        match told {
            Told::Failure(error) => log::warn!(
                target: REPEATED,
                "A checkpoint of {database} has failed: {error}. What was committed is safe in \
                 {database}-wal, which grows until one succeeds."
            ),
            Told::Readers { bytes, limit_bytes } => {
                let watches = lock(&self.watches).clone();
                let readers = readers::describe(&watches, &self.database);
                self.counters.readers_named.fetch_add(1, Ordering::Relaxed);
                log::warn!(
                    target: REPEATED,
                    "{database}-wal has grown to {:.1} MiB, beyond its limit of {:.1} MiB, since it \
                     cannot be begun anew while it is read: {readers}. It shrinks when they have \
                     ended their transactions.",
                    mebibytes(*bytes),
                    mebibytes(*limit_bytes),
                );
            }
        }
    }
}

/// The target of what is logged again while it lasts, at intervals of its own.
pub const REPEATED: &str = "oxlite::wal";

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether it is time to do something again, which is noted.
fn is_time(last: &Mutex<Option<Instant>>, every: Duration) -> bool {
    let mut last = lock(last);
    let is_time = last.is_none_or(|last| last.elapsed() >= every);
    if is_time {
        *last = Some(Instant::now());
    }
    is_time
}

/// One connection as the keeper of the logs that it writes to.
struct Keeper {
    log: Arc<Log>,
    limit_bytes: u64,
    /// The frames after a commit to the main database; 0 if there was none.
    frames: Cell<u32>,
    /// The attached databases that have been written to, with theirs.
    attached: RefCell<Vec<(CString, u32)>>,
}

/// Has a connection keep its logs short, in place of SQLite's automatic checkpoints.
pub(crate) fn keep(log: Arc<Log>, locked: &Locked<'_>, settings: &[Setting]) {
    if are_of_wal_mode(settings) {
        log.is_kept.store(true, Ordering::Relaxed);
    }
    locked.set_log_keeper(Box::new(Keeper {
        log,
        limit_bytes: limit_bytes(settings),
        frames: Cell::new(0),
        attached: RefCell::default(),
    }));
}

fn limit_bytes(settings: &[Setting]) -> u64 {
    let setting = settings
        .iter()
        .find(|setting| setting.name == "journal_size_limit");
    let limit = setting.and_then(|setting| setting.effective.parse().ok());
    limit.unwrap_or(DEFAULT_LIMIT_BYTES) // -1 is none
}

impl LogKeeper for Keeper {
    fn committed(&self, schema: &CStr, frames: u32) {
        if schema == c"main" {
            self.log.counters.commits.fetch_add(1, Ordering::Relaxed);
            self.frames.set(frames);
        } else if frames >= BEGIN_AT {
            self.attached.borrow_mut().push((schema.to_owned(), frames));
        }
    }

    fn tend(&self, locked: &Locked<'_>) {
        let frames = self.frames.take();
        if frames > 0 && self.log.is_due(frames) {
            self.log.tend(locked, c"main", frames, self.limit_bytes);
        }
        // Taken out first: what is logged may run code that commits.
        for (schema, frames) in self.attached.take() {
            if let Some(path) = locked.path_of(&schema)
                && let Ok(log) = Log::of(&path)
                && log.is_due(frames)
            {
                log.tend(locked, &schema, frames, self.limit_bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: u64 = u64::MAX;

    fn log() -> Log {
        Log::new(PathBuf::from("/nowhere/app.db"))
    }

    fn came_to(frames: u32, checkpointed: u32, is_busy: bool) -> oxlite_sqlite::Result<Checkpoint> {
        Ok(Checkpoint {
            is_busy,
            frames: Some(frames),
            checkpointed: Some(checkpointed),
        })
    }

    fn another_is_at_it() -> oxlite_sqlite::Result<Checkpoint> {
        Ok(Checkpoint {
            is_busy: true,
            frames: None,
            checkpointed: None,
        })
    }

    #[test]
    fn a_checkpoint_has_two_halves_and_then_the_log_is_begun_anew() {
        let log = log();
        assert!(!log.is_due(BEGIN_AT - 1));
        assert!(log.is_due(BEGIN_AT));
        assert!(
            log.conclude_bulk(came_to(1000, 1000, false), 1000, NO_LIMIT)
                .is_none()
        );
        assert!(log.is_due(1003), "its end comes with the next commit");
        assert!(log.is_finishing.load(Ordering::Relaxed));
        assert!(
            log.conclude_finish(came_to(1003, 1003, false), 1003, NO_LIMIT, false)
                .is_none()
        );
        assert!(!log.is_due(1004));
        assert!(!log.is_due(2));
        assert!(log.is_due(BEGIN_AT));
        assert!(!log.is_finishing.load(Ordering::Relaxed));
        assert_eq!(log.statistics().checkpoints, 2);
    }

    #[test]
    fn a_log_begun_anew_after_the_bulk_needs_no_end() {
        let log = log();
        assert!(log.is_due(1500));
        log.conclude_bulk(came_to(1500, 1500, false), 1500, NO_LIMIT);
        assert!(!log.is_due(4));
        assert!(!log.is_finishing.load(Ordering::Relaxed));
    }

    #[test]
    fn one_that_comes_to_no_end_is_not_tried_at_every_commit() {
        let log = log();
        let attempts = (1..=50_000).filter(|frames| {
            let is_due = log.is_due(*frames);
            if is_due {
                assert!(!log.is_finishing.load(Ordering::Relaxed));
                log.conclude_bulk(came_to(*frames, 10, false), *frames, NO_LIMIT);
            }
            is_due
        });
        let attempts = attempts.count();
        assert!((8..=24).contains(&attempts), "{attempts}");
        assert_eq!(log.statistics().incomplete, attempts as u64);
    }

    #[test]
    fn an_end_that_meets_others_is_tried_again_but_not_for_ever() {
        let log = log();
        log.conclude_bulk(came_to(1000, 1000, false), 1000, NO_LIMIT);
        let mut commits = 1001..;
        let tries = commits.by_ref().take(500).filter(|frames| {
            let is_due = log.is_due(*frames);
            if is_due {
                log.conclude_finish(came_to(*frames, *frames, true), *frames, NO_LIMIT, false);
            }
            is_due
        });
        assert_eq!(tries.count(), FINISH_TRIES as usize + 1);
        assert_eq!(log.statistics().incomplete, 1);
    }

    #[test]
    fn few_frames_left_are_worth_an_end_and_many_are_not() {
        let log = log();
        log.conclude_bulk(came_to(2000, 2000 - WORTH_FINISHING, false), 2000, NO_LIMIT);
        assert!(log.is_finishing.load(Ordering::Relaxed));
        log.conclude_finish(came_to(2000, 1500, true), 2000, NO_LIMIT, false);
        assert!(!log.is_finishing.load(Ordering::Relaxed));
        log.conclude_bulk(came_to(4000, 1500, false), 4000, NO_LIMIT);
        assert!(!log.is_finishing.load(Ordering::Relaxed));
        assert_eq!(log.statistics().incomplete, 2);
    }

    #[test]
    fn another_process_that_is_at_it_is_left_to_it() {
        let log = log();
        assert!(log.is_due(1000));
        assert!(
            log.conclude_bulk(another_is_at_it(), 1000, NO_LIMIT)
                .is_none()
        );
        assert!(!log.is_due(1000 + LEAVE_TO_OTHERS - 1));
        assert!(log.is_due(1000 + LEAVE_TO_OTHERS));
        log.finish_next(5000);
        assert!(
            log.conclude_finish(another_is_at_it(), 5000, NO_LIMIT, false)
                .is_none()
        );
        assert!(!log.is_due(5000 + BEGIN_AT));
        assert_eq!(log.statistics().incomplete, 0);
    }

    #[test]
    fn failures_are_kept_and_readings_of_ones_own_are_none() {
        let log = log();
        let failure = || Err(oxlite_sqlite::Error::from_code(codes::SQLITE_FULL));
        let told = log.conclude_bulk(failure(), 1000, NO_LIMIT);
        assert!(matches!(told, Some(Told::Failure(text)) if text.contains("SQLITE_FULL")));
        assert!(!log.is_due(1001));
        assert!(
            log.conclude_finish(failure(), 2000, NO_LIMIT, false)
                .is_some()
        );
        let own = Err(oxlite_sqlite::Error::from_code(codes::SQLITE_LOCKED));
        assert!(log.conclude_bulk(own, 3000, NO_LIMIT).is_none());
        let statistics = log.statistics();
        assert_eq!((statistics.errors, statistics.incomplete), (2, 1));
        let text = statistics.last_error.expect("kept");
        assert_eq!(text, "database or disk is full (SQLITE_FULL)");
    }

    #[test]
    fn modes_have_names() {
        assert_eq!(checkpoint_mode("truncate"), Ok(CheckpointMode::Truncate));
        let error = checkpoint_mode("restrat").expect_err("unknown");
        assert!(
            error.to_string().contains("did you mean 'restart'"),
            "{error}"
        );
    }

    #[test]
    fn a_limit_that_is_none_is_that_of_the_profiles() {
        let setting = |effective: &str| Setting {
            name: "journal_size_limit",
            requested: effective.into(),
            effective: effective.into(),
            skipped: None,
        };
        assert_eq!(limit_bytes(&[setting("4096")]), 4096);
        assert_eq!(limit_bytes(&[setting("-1")]), DEFAULT_LIMIT_BYTES);
        assert_eq!(limit_bytes(&[]), DEFAULT_LIMIT_BYTES);
    }
}
