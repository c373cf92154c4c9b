//! Who holds a database's write lock, as one tells those who waited in vain.
//!
//! In this process that is known. Between processes it is a note in the gate's file, believed only
//! while its writer holds a lock beside it that the kernel takes back.

use std::cell::Cell;
use std::ffi::CStr;
use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use oxlite_sqlite::fork_generation;

/// What a note begins with: a later form of it is not read as this one.
const FORM: &str = "oxlite 1";

/// No more of a statement's text than this is told, in bytes.
const STATEMENT_AT_MOST: usize = 300;

/// More than the longest note.
pub(super) const NOTE_AT_MOST: usize = 512;

/// The first statements are noted as they come; later ones no more often than this.
const STATEMENTS_NOTED: u32 = 2;
const NEWS_EVERY: Duration = Duration::from_millis(10);

/// A connection of Oxlite that holds the write lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process; in another PID namespace that is not its number here.
    pub process_id: u32,
    /// Its thread, as the operating system numbers it (`threading.get_native_id()`); 0 if unknown.
    pub thread_id: u32,
    /// How long it has held the lock.
    pub held_for: Duration,
    /// A statement of its transaction, one of the latest, cut short if it is long.
    pub statement: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            process_id,
            thread_id,
            held_for,
            statement,
        } = self;
        let where_from = match *process_id == std::process::id() {
            true => "this process",
            false => "process",
        };
        let seconds = held_for.as_secs_f64();
        write!(
            formatter,
            "{where_from} {process_id}, thread {thread_id}, for {seconds:.1} s, with: {statement}"
        )
    }
}

impl Holder {
    /// From the bytes of a note.
    pub(super) fn read(note: &[u8]) -> Option<Self> {
        let end = note.iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&note[..end]).ok()?;
        let mut lines = text.splitn(5, '\n');
        if lines.next()? != FORM {
            return None;
        }
        let process_id = lines.next()?.parse().ok()?;
        let thread_id = lines.next()?.parse().ok()?;
        let since = UNIX_EPOCH + Duration::from_nanos(lines.next()?.parse().ok()?);
        Some(Self {
            process_id,
            thread_id,
            held_for: SystemTime::now().duration_since(since).unwrap_or_default(),
            statement: lines.next()?.to_owned(),
        })
    }
}

/// What this process holds the lock for.
pub(super) struct Note {
    author: Author,
    since: Instant,
    since_epoch: Duration,
    statement: String,
    statements: u32,
    renewed: Instant,
}

impl Note {
    /// For this thread, from now on.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            author: Author::current(),
            since: now,
            since_epoch: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
            statement: String::new(),
            statements: 0,
            renewed: now,
        }
    }

    /// Whether a statement is to be noted now.
    pub(super) fn is_news(&self) -> bool {
        self.statements < STATEMENTS_NOTED || self.renewed.elapsed() >= NEWS_EVERY
    }

    pub(super) fn set_statement(&mut self, sql: &CStr) {
        self.statements += 1;
        self.renewed = Instant::now();
        let bytes = sql.to_bytes();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(STATEMENT_AT_MOST)]);
        self.statement.clear();
        self.statement.push_str(text.trim_end_matches('\u{fffd}'));
        if bytes.len() > STATEMENT_AT_MOST {
            self.statement.push('…');
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Author {
            process_id,
            thread_id,
            ..
        } = self.author;
        let since = u64::try_from(self.since_epoch.as_nanos()).unwrap_or(u64::MAX);
        let mut note = Vec::with_capacity(NOTE_AT_MOST);
        // A vector takes all that is written.
        let _ = write!(
            note,
            "{FORM}\n{process_id}\n{thread_id}\n{since}\n{}\0",
            self.statement
        );
        note
    }

    pub(super) fn as_holder(&self) -> Holder {
        Holder {
            process_id: self.author.process_id,
            thread_id: self.author.thread_id,
            held_for: self.since.elapsed(),
            statement: self.statement.clone(),
        }
    }
}

/// The numbers by which the system knows who writes a note.
#[derive(Clone, Copy)]
struct Author {
    /// That of the process in which they were asked for.
    generation: u32,
    process_id: u32,
    thread_id: u32,
}

impl Author {
    /// This thread, asked for once and not at each transaction: two calls of the system.
    fn current() -> Self {
        thread_local! {
            static CURRENT: Cell<Option<Author>> = const { Cell::new(None) };
        }
        let generation = fork_generation();
        let known = CURRENT
            .get()
            .filter(|author| author.generation == generation);
        known.unwrap_or_else(|| {
            let asked = Self {
                generation,
                process_id: std::process::id(),
                thread_id: current_thread(),
            };
            CURRENT.set(Some(asked));
            asked
        })
    }
}

#[cfg(target_os = "linux")]
fn current_thread() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

#[cfg(not(target_os = "linux"))]
fn current_thread() -> u32 {
    0
}
