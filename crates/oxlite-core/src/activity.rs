//! What this process does with a database, told to others while they watch.
//!
//! Whoever watches makes a file beside the database, `app.db-activity`, and has its byte [`WATCHERS`] locked. A
//! process that uses the database looks for it once a second, when a transaction of its own begins or waits. If
//! somebody watches, it takes a place in the file, times its statements, and writes ten times a second what it has
//! counted. It leaves when nobody watches any more.
//!
//! Invariants:
//! - Without a watcher it costs one look for a name each second.
//! - Who may read the file follows the database: it holds statements (`oxlite_sqlite::LockFile`).
//! - Who has told what is known by its place's lock, which goes with its process. Nothing in the file is waited
//!   for, and nothing of it is believed but shown.
//! - Nothing that fails here is told, or fails anything else.

mod note;
mod observer;
mod slow_statements;
mod slowest;
mod watcher;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use oxlite_sqlite::{Attention, Byte, EndedStatement, LockFile, Mutex};

use crate::file::{beside, network};
use crate::process::per_file::PerFile;
use crate::write::queue::Lane;
use crate::write::wal::Log;

use note::{Author, write_note};
pub use note::{ProcessActivity, ReadingActivity, StatementActivity};
pub(crate) use observer::observe;
pub use slow_statements::{SlowStatement, SlowStatements};
use slowest::Slowest;
pub use watcher::ActivityWatcher;

/// Locked, together, by all who watch.
const WATCHERS: Byte = Byte(0);

/// So many processes can tell what they do; each has the byte after its number locked.
const PLACES: u8 = 128;

fn byte_of(place: u8) -> Byte {
    Byte(place + 1)
}

/// How often one looks whether somebody watches.
const LOOK_EVERY_MS: u64 = 1000;
/// How often one tells, while somebody does.
const TELL_EVERY_MS: u64 = 100;

/// Snapshots that were taken just now are nobody's trouble, and no more than some are told.
const READING_WORTH_TELLING: Duration = Duration::from_millis(100);
const READINGS_AT_MOST: usize = 4;

/// What this process does with one database.
pub(crate) struct Activity {
    database: PathBuf,
    lane: Arc<Lane>,
    log: Arc<Log>,
    batches: AtomicU64,
    batched_writes: AtomicU64,
    /// Those that have ended while somebody watched.
    statements: AtomicU64,
    slowest: Slowest,
    /// When it is to be looked again, in milliseconds of the coarse clock.
    next_ms: AtomicU64,
    is_watched: AtomicBool,
    place: Mutex<Option<Place>>,
}

/// A place in the file of those who watch.
struct Place {
    file: LockFile,
    number: u8,
    looked_ms: u64,
    notes: u64,
    author: Author,
}

static ACTIVITIES: PerFile<Activity> = PerFile::new();

impl Activity {
    /// That of the database at `path`, which exists.
    pub(crate) fn of(path: &Path) -> std::io::Result<Arc<Self>> {
        let (lane, log) = (Lane::of(path)?, Log::of(path)?);
        ACTIVITIES.of(path, || Self {
            database: path.to_owned(),
            lane,
            log,
            batches: AtomicU64::new(0),
            batched_writes: AtomicU64::new(0),
            statements: AtomicU64::new(0),
            slowest: Slowest::default(),
            next_ms: AtomicU64::new(0),
            is_watched: AtomicBool::new(false),
            place: Mutex::new(None),
        })
    }

    /// Counts writes that shared one COMMIT.
    pub(crate) fn count_batch(&self, writes: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.batched_writes
            .fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// A connection of this process is in use: looks, and tells, when it is time.
    fn used(&self, now_ms: u64) -> Attention {
        let next_ms = self.next_ms.load(Ordering::Relaxed);
        let is_time = now_ms >= next_ms
            && self
                .next_ms
                .compare_exchange(
                    next_ms,
                    now_ms + TELL_EVERY_MS,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok();
        if is_time {
            self.attend(now_ms);
        }
        Attention {
            next_ms: self.next_ms.load(Ordering::Relaxed),
            times_statements: self.is_watched.load(Ordering::Relaxed),
        }
    }

    fn attend(&self, now_ms: u64) {
        let mut place = self.place.lock();
        match &mut *place {
            None => *place = self.look(now_ms),
            Some(Place {
                file, looked_ms, ..
            }) if now_ms >= *looked_ms + LOOK_EVERY_MS => {
                *looked_ms = now_ms;
                if !is_watched(file) || !file.is_at(&beside::activity(&self.database)) {
                    *place = None;
                }
            }
            Some(_) => {}
        }
        if let Some(taken) = &mut *place
            && !self.tell(taken, now_ms)
        {
            *place = None;
        }
        if place.is_none() {
            self.slowest.clear();
            self.next_ms
                .store(now_ms + LOOK_EVERY_MS, Ordering::Relaxed);
        }
        self.is_watched.store(place.is_some(), Ordering::Relaxed);
    }

    /// Takes a place, if somebody watches.
    fn look(&self, now_ms: u64) -> Option<Place> {
        let path = beside::activity(&self.database);
        std::fs::symlink_metadata(&path).ok()?;
        if network::holds(&self.database) {
            return None;
        }
        let file = LockFile::open_existing(&path, &self.database).ok()?;
        if !is_watched(&file) {
            // Left behind by one who was killed.
            file.remove_if_unlocked(WATCHERS, &path);
            return None;
        }
        let is_free = |number: &u8| matches!(file.try_lock(byte_of(*number), false), Ok(true));
        let number = (0..PLACES).find(is_free)?;
        Some(Place {
            file,
            number,
            looked_ms: now_ms,
            notes: 0,
            author: Author::current(),
        })
    }

    /// Tells what there is to tell; whether that could be done.
    fn tell(&self, place: &mut Place, now_ms: u64) -> bool {
        place.notes += 1;
        let queue = self.lane.statistics();
        let log = self.log.statistics();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut counters = vec![
            ("waiting", queue.waiting as u64),
            ("admissions", queue.admissions),
            ("thread_waits", queue.thread_waits),
            ("process_waits", queue.process_waits),
            ("queue_skips", queue.queue_skips),
            ("turns", queue.turns),
            ("batches", count(&self.batches)),
            ("batched_writes", count(&self.batched_writes)),
            ("statements", count(&self.statements)),
        ];
        // Where SQLite makes the checkpoints, or there is no WAL, nobody counts these.
        if self.log.is_kept() {
            counters.extend([
                ("commits", log.commits),
                ("wal_frames", u64::from(log.frames)),
                ("checkpoints", log.checkpoints),
                ("checkpoints_incomplete", log.incomplete),
                ("checkpoint_waits", log.waits),
                ("checkpoint_errors", log.errors),
            ]);
        }
        let mut readings = self.log.readings(READING_WORTH_TELLING);
        readings.truncate(READINGS_AT_MOST);
        let slowest = self.slowest.listed(now_ms);
        let note = write_note(
            place.notes,
            place.author,
            now_ms,
            &counters,
            &slowest,
            &readings,
        );
        place.file.write_slot(place.number, &note).is_ok()
    }

    /// A statement has ended that was timed.
    fn note_statement(&self, statement: &EndedStatement<'_>) {
        if self.is_watched.load(Ordering::Relaxed) {
            self.statements.fetch_add(1, Ordering::Relaxed);
            self.slowest.note(statement);
        }
    }
}

fn is_watched(file: &LockFile) -> bool {
    matches!(file.locked_by_another(WATCHERS, WATCHERS), Ok(Some(_)))
}
