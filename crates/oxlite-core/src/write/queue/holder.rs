//! Who holds a database's write lock, for the messages of lock timeouts.
//!
//! In this process that is known. Between processes it is a note in the gate's file, believed only
//! while its writer holds a lock beside it that the kernel takes back. Short writes leave none; then it is
//! looked who has the lock itself, so far as that can be seen from here.
//!
//! Invariants:
//! - A process's number is told with the PID namespace in which it is one: it is another process's, or
//!   nobody's, in another.
//! - What a note says is foreign text, and made harmless when it is read.

use std::cell::Cell;
use std::ffi::CStr;
use std::fmt;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use oxlite_sqlite::fork_generation;

use crate::file::beside;
use crate::process::namespace::{self, PidNamespace};
use crate::process::processes::{self, Process, Wanted};
use crate::text::in_a_line;

/// What a note begins with: another form of it is not read as this one.
const FORM: &str = "oxlite 2";

/// No more of a statement's text than this is told, in bytes, since a note has to fit into its file.
const STATEMENT_AT_MOST: usize = 300;

/// More than the longest note.
pub(super) const NOTE_AT_MOST: usize = 512;

/// The first statements are noted as they come; later ones no more often than this.
const STATEMENTS_NOTED: u32 = 2;
const NEWS_EVERY: Duration = Duration::from_millis(10);

/// A connection of Oxlite that holds the write lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process, by its number in its own PID namespace.
    pub process_id: u32,
    /// Whether that is this process's as well.
    pub pid_namespace: PidNamespace,
    /// Its thread, as the operating system numbers it (`threading.get_native_id()`); 0 if unknown.
    pub thread_id: u32,
    /// How long it has held the lock.
    pub held_for: Duration,
    /// A statement of its transaction, one of the latest, in a line; cut short if it is long.
    pub statement: String,
}

/// What is known of who holds the write lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It has told so.
    Told(Holder),
    /// This thread, by another connection that is its alone; what that has told.
    ByThisThread(Option<Holder>),
    /// It has told nothing, and is one of these.
    Seen(Vec<Process>),
    /// Nothing.
    Unknown,
}

impl fmt::Display for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told(holder) => write!(formatter, "held by {holder}"),
            Self::ByThisThread(holder) => {
                formatter.write_str("held by this thread itself, through another connection")?;
                if let Some(Holder {
                    held_for,
                    statement,
                    ..
                }) = holder
                {
                    let seconds = held_for.as_secs_f64();
                    write!(formatter, ", for {seconds:.1} s, with: {statement}")?;
                }
                formatter.write_str(
                    "; it cannot end that transaction while it waits here: commit it first, or write \
                     through its connection",
                )
            }
            Self::Seen(processes) => {
                let own = processes::own_id();
                let named: Vec<_> = processes
                    .iter()
                    .map(|process| {
                        let which = match process.id == own {
                            true => "this process",
                            false => "process",
                        };
                        let stopped = if process.is_stopped { ", stopped" } else { "" };
                        format!("{which} {} ({}{stopped})", process.id, process.command)
                    })
                    .collect();
                write!(
                    formatter,
                    "held by {}, which has told nothing of it: another SQLite, a connection with \
                     another busy policy, or a write too short to be told of",
                    named.join(" or ")
                )
            }
            Self::Unknown => formatter.write_str(
                "who holds it is not known: another program, a connection with another busy policy, or \
                 a process that was stopped before it told",
            ),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            process_id,
            pid_namespace,
            thread_id,
            held_for,
            statement,
        } = self;
        let (which, whose) = match pid_namespace {
            PidNamespace::Own if *process_id == std::process::id() => ("this process", ""),
            PidNamespace::Own => ("process", ""),
            PidNamespace::Another => ("process", " of another PID namespace (container)"),
            PidNamespace::Unknown => ("process", " of an unknown PID namespace"),
        };
        let seconds = held_for.as_secs_f64();
        write!(
            formatter,
            "{which} {process_id}{whose}, thread {thread_id}, for {seconds:.1} s, with: {statement}"
        )
    }
}

impl Holder {
    /// From the bytes of a note.
    pub(super) fn read(note: &[u8]) -> Option<Self> {
        let end = note.iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&note[..end]).ok()?;
        let mut lines = text.splitn(6, '\n');
        if lines.next()? != FORM {
            return None;
        }
        let theirs = lines.next()?.parse().ok()?;
        let process_id = lines.next()?.parse().ok()?;
        let thread_id = lines.next()?.parse().ok()?;
        let since = UNIX_EPOCH + Duration::from_nanos(lines.next()?.parse().ok()?);
        Some(Self {
            process_id,
            pid_namespace: PidNamespace::of(theirs),
            thread_id,
            held_for: SystemTime::now().duration_since(since).unwrap_or_default(),
            statement: in_a_line(lines.next()?),
        })
    }
}

/// The processes that have SQLite's write lock on a database: on its log's shared memory, or on the database
/// itself where there is no log (<https://sqlite.org/walformat.html#wal_locks>,
/// <https://sqlite.org/lockingv3.html>).
pub(super) fn that_write(database: &Path, look_for: Duration) -> Vec<Process> {
    /// `WAL_WRITE_LOCK`, and `PENDING_BYTE` with `RESERVED_BYTE`.
    const IN_SHARED_MEMORY: u64 = 120;
    const IN_DATABASE: RangeInclusive<u64> = 0x4000_0000..=0x4000_0001;
    let wanted = [
        Wanted {
            file: beside::shared_memory(database),
            bytes: IN_SHARED_MEMORY..=IN_SHARED_MEMORY,
            is_alone: true,
        },
        Wanted {
            file: database.to_owned(),
            bytes: IN_DATABASE,
            is_alone: true,
        },
    ];
    processes::that_lock(&wanted, look_for)
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
            namespace,
            process_id,
            thread_id,
            ..
        } = self.author;
        let since = u64::try_from(self.since_epoch.as_nanos()).unwrap_or(u64::MAX);
        let mut note = Vec::with_capacity(NOTE_AT_MOST);
        // A vector takes all that is written.
        let _ = write!(
            note,
            "{FORM}\n{namespace}\n{process_id}\n{thread_id}\n{since}\n{}\0",
            self.statement
        );
        note
    }

    pub(super) fn as_holder(&self) -> Holder {
        Holder {
            process_id: self.author.process_id,
            pid_namespace: PidNamespace::Own,
            thread_id: self.author.thread_id,
            held_for: self.since.elapsed(),
            statement: in_a_line(&self.statement),
        }
    }
}

/// The numbers by which the system knows who writes a note.
#[derive(Clone, Copy)]
struct Author {
    /// That of the process in which they were asked for.
    generation: u32,
    namespace: u64,
    process_id: u32,
    thread_id: u32,
}

impl Author {
    /// This thread, asked for once and not at each transaction: three calls of the system.
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
                namespace: namespace::current(),
                process_id: std::process::id(),
                thread_id: current_thread(),
            };
            CURRENT.set(Some(asked));
            asked
        })
    }
}

/// This thread's number; 0 where it has none.
pub(super) fn this_thread() -> u32 {
    Author::current().thread_id
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
