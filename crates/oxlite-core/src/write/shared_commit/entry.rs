//! How a process comes into the group of a database, and what the first one does there.
//!
//! Whoever can lock the byte of all members alone is the first. It begins anew: brings what is in the log
//! into the database and cuts the log to nothing, so that a commit which a crash has taken back cannot
//! come back with the next one. If a sync may have failed in the group before it, it first writes the log
//! once more; and if that group was poisoned, it has the database checked.
//!
//! Invariants:
//! - The first one lets others in when the page means something, and not before.
//! - Poison is cleared by a check that has found nothing, and by nothing else.
//! - Nothing of a log goes into the database that may not be on the disk: after a sync that has failed, a log
//!   reads as if it were, and the next sync succeeds. A power cut would leave the database with pages of
//!   commits whose frames the log has lost, and the frames before them would be put over these.
//! - So until the log has been renewed, no connection of ours makes a checkpoint, neither by itself nor when
//!   it closes; the connection for which one joins does not either. However a start fails, or is killed,
//!   the page says what it said before, and the next one does the same again.
//! - What cannot be had (memory, locks) is a reason to sync each commit by itself, unless a log is to be
//!   renewed, or nobody can tell; what is wrong with the database is an error.

use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use oxlite_sqlite::{
    CheckpointMode, Connection, Locked, OpenFlags, SharedPage, SharedPageView, Step, ValueRef,
    codes,
};

use super::member::{FORMAT, MEMBERS, Member, PAGE, Word};
use super::reason::Reason;
use crate::error::{Error, Result};
use crate::file::numbers::FileNumbers;
use crate::file::{beside, network};

/// How often one looks whether the one that begins has come to an end.
const PAUSE: Duration = Duration::from_millis(1);

/// Joins the group of the database at `path`; or tells why there is none to be had.
pub(super) fn join(path: &Path, patience: Duration) -> Result<Result<Member, String>> {
    if network::holds(path) {
        return Ok(Err(network::REASON.into()));
    }
    let log = beside::wal(path);
    let began = Instant::now();
    loop {
        match attempt(path, &log, patience.saturating_sub(began.elapsed()))? {
            Attempt::Joined(member) => return Ok(Ok(*member)),
            Attempt::Impossible(reason) => return Ok(Err(reason)),
            Attempt::Again { is_renewed: false } if began.elapsed() >= patience => {
                return Err(still_renewing());
            }
            Attempt::Again { .. } if began.elapsed() >= patience => {
                return Ok(Err(
                    "another process that joins does not come to an end".into()
                ));
            }
            Attempt::Again { .. } => pause(),
        }
    }
}

/// Waits a moment for whoever joins just now.
pub(super) fn pause() {
    oxlite_sqlite::about_to_wait();
    thread::sleep(PAUSE);
}

/// The error of a timeout while another thread of this process joins.
pub(super) fn still_joining() -> Error {
    busy("another thread of this process joins those who share their commits")
}

fn still_renewing() -> Error {
    busy(
        "after a sync that may have failed, another process writes the write-ahead log once more; open the \
         database again when it has ended",
    )
}

fn busy(why: &str) -> Error {
    let text = format!("database is locked: {why}");
    Error::locked(oxlite_sqlite::Error::new(codes::SQLITE_BUSY, text), None)
}

enum Attempt {
    Joined(Box<Member>),
    Impossible(String),
    /// Somebody begins or ends the group just now; whether the log is as it should be, as far as is known.
    Again {
        is_renewed: bool,
    },
}

/// What the page says of the group before, which is gone, or of the one that begins.
#[derive(Clone, Copy)]
struct Before {
    is_poisoned: bool,
    /// Whether nobody has told how the latest sync has ended.
    has_unknown_end: bool,
}

impl Before {
    fn on(page: &SharedPage) -> Self {
        Self::told_by(|word| load(page, word))
    }

    fn told_by(load: impl Fn(Word) -> u64) -> Self {
        let is_beginning = load(Word::Beginning) != 0;
        Self {
            is_poisoned: load(Word::Poison) != 0,
            has_unknown_end: is_beginning || load(Word::Begun) != load(Word::Ended),
        }
    }

    /// The same where the page cannot be opened to be used. Nothing is unknown where there is none, or it
    /// is somebody else's.
    fn seen_in(file: FileNumbers) -> Result<Self> {
        match SharedPageView::read(PAGE, file.device, file.inode) {
            Ok(Some(page)) => Ok(Self::told_by(|word| page.word(word as usize))),
            Ok(None) => Ok(Self::NOTHING),
            Err(error) => Err(not_alone(&error.to_string())),
        }
    }

    const NOTHING: Self = Self {
        is_poisoned: false,
        has_unknown_end: false,
    };

    fn needs_renewal(self) -> bool {
        self.is_poisoned || self.has_unknown_end
    }

    /// That somebody begins, and has to renew the log.
    const RENEWS: u64 = 2;
    /// That somebody begins where nothing is unknown.
    const BEGINS: u64 = 1;

    fn beginning(self) -> u64 {
        match self.needs_renewal() {
            true => Self::RENEWS,
            false => Self::BEGINS,
        }
    }

    /// Whether whoever begins just now, in another process, has no log to renew.
    fn is_renewed_by(page: &SharedPage) -> bool {
        load(page, Word::Poison) == 0
            && load(page, Word::Begun) == load(page, Word::Ended)
            && load(page, Word::Beginning) != Self::RENEWS
    }
}

fn attempt(path: &Path, log: &Path, patience: Duration) -> Result<Attempt> {
    let file = match FileNumbers::of(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
            return Ok(Attempt::Impossible(format!("no shared memory: {error}")));
        }
        Err(error) => return Err(not_alone(&error.to_string())),
    };
    let page = match SharedPage::open(PAGE, file.device, file.inode) {
        Ok(page) => page,
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
            return Ok(Attempt::Again { is_renewed: true });
        }
        Err(error) => {
            let why = format!("no shared memory: {error}");
            return impossible(Before::seen_in(file)?, &why);
        }
    };
    let lock = |is_shared| page.lock_file().try_lock(MEMBERS, is_shared);
    let is_first = match lock(false) {
        Ok(is_first) => is_first,
        Err(error) => return impossible(Before::on(&page), &format!("no locks: {error}")),
    };
    let is_renewed = Before::is_renewed_by(&page);
    if !is_first && !matches!(lock(true), Ok(true)) {
        return Ok(Attempt::Again { is_renewed });
    }
    // Its last member may have removed it in between, or its first one have died.
    let is_complete = load(&page, Word::Format) == FORMAT;
    if !page.is_in_place() || (!is_first && !is_complete) {
        return Ok(Attempt::Again { is_renewed });
    }
    let connection = never_writing(path, patience)?;
    let log_file = {
        let locked = connection.lock().map_err(|_| closed())?;
        let before = Before::on(&page);
        read(&locked)?;
        if is_first {
            store(&page, Word::Format, 0);
            // Whoever is told that a sync has failed may be killed before he can say so.
            store(&page, Word::Beginning, before.beginning());
        }
        sync_log(&locked).map_err(|error| failed(&page, error))?;
        let Ok(log_file) = FileNumbers::of(log) else {
            return impossible(before, "its log has no name");
        };
        if is_first {
            begin_anew(&page, before, &locked, patience)?;
            complete(&page, log_file);
            // Others come in from here on: one lock becomes the other, so nobody comes in between.
            if !matches!(lock(true), Ok(true)) {
                return impossible(Before::on(&page), "the lock cannot be shared");
            }
        } else if log_of(&page) != log_file {
            return Ok(Attempt::Impossible(
                "its log is not the one that the others have open".into(),
            ));
        }
        log_file
    };
    let member = Member::new(page, log.to_owned(), log_file, connection);
    Ok(Attempt::Joined(Box::new(member)))
}

fn load(page: &SharedPage, word: Word) -> u64 {
    page.word(word as usize).load(Ordering::SeqCst)
}

fn store(page: &SharedPage, word: Word, value: u64) {
    page.word(word as usize).store(value, Ordering::SeqCst);
}

/// What has failed while one joins. If it was a sync, the group's members may not be told of it any more.
fn failed(page: &SharedPage, error: oxlite_sqlite::Error) -> Error {
    if error.code() != codes::SQLITE_IOERR_FSYNC {
        return Error::Sqlite(error);
    }
    store(page, Word::Poison, Reason::SyncFailed as u64);
    Error::SyncFailed(error)
}

/// The same, of the renewal.
fn not_renewed(page: &SharedPage, error: oxlite_sqlite::Error) -> Error {
    let error = error.with_context(
        ": a sync of this database may have failed, and its write-ahead log could not be written once \
         more. Nothing has been brought into the database, which opens when that succeeds: see to the \
         disk (errors, room), and open it again",
    );
    failed(page, error)
}

/// There is no group to be had. Whoever is by himself renews no log, nor may he go on without.
fn impossible(before: Before, why: &str) -> Result<Attempt> {
    if !before.needs_renewal() {
        return Ok(Attempt::Impossible(why.into()));
    }
    Err(not_alone(why))
}

pub(super) fn not_alone(why: &str) -> Error {
    Error::Sqlite(oxlite_sqlite::Error::new(
        codes::SQLITE_IOERR,
        format!(
            "a sync of this database may have failed, and its write-ahead log cannot be written once more: \
             {why}; see to that, and open it again"
        ),
    ))
}

fn log_of(page: &SharedPage) -> FileNumbers {
    FileNumbers {
        device: load(page, Word::LogDevice),
        inode: load(page, Word::LogInode),
    }
}

/// Has the page mean something.
fn complete(page: &SharedPage, log: FileNumbers) {
    store(page, Word::LogDevice, log.device);
    store(page, Word::LogInode, log.inode);
    let counters = [
        Word::Committed,
        Word::Synced,
        Word::Begun,
        Word::Ended,
        Word::LeadersLost,
        Word::Beginning,
    ];
    for counter in counters {
        store(page, counter, 0);
    }
    store(page, Word::Format, FORMAT);
}

fn closed() -> Error {
    Error::Programming("Cannot operate on a closed database.".into())
}

/// A connection that makes no checkpoints of its own, also when it closes.
fn never_writing(path: &Path, patience: Duration) -> Result<Connection> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| Error::Value("embedded null character in the database name".into()))?;
    let connection = Connection::open(&name, OpenFlags::default())?;
    {
        let locked = connection.lock().map_err(|_| closed())?;
        locked.config(codes::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, Some(true))?;
        locked.set_busy_timeout(patience)?;
        locked.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
    }
    Ok(connection)
}

/// Has the log opened, by a read.
fn read(locked: &Locked<'_>) -> oxlite_sqlite::Result<()> {
    locked.execute_batch("PRAGMA schema_version")
}

/// Has the log's name in the folder synced, by a sync of SQLite's.
fn sync_log(locked: &Locked<'_>) -> oxlite_sqlite::Result<()> {
    match locked.sync_log() {
        Err(error) if error.code() == codes::SQLITE_MISUSE => Err(oxlite_sqlite::Error::new(
            codes::SQLITE_ERROR,
            "durable_commit=\"shared\" needs a database in WAL mode that is opened by Oxlite's own VFS",
        )),
        outcome => outcome,
    }
}

/// What the first one does. Poison stays where the database cannot be checked alone.
fn begin_anew(
    page: &SharedPage,
    before: Before,
    locked: &Locked<'_>,
    patience: Duration,
) -> Result<()> {
    if before.needs_renewal() {
        match locked.renew_log() {
            // The page says so still: the next start tries again.
            Err(error) if error.primary_code() == codes::SQLITE_BUSY => {
                return Err(busy(
                    "after a sync that may have failed the write-ahead log must be written once more, and \
                     another program writes the database for longer than was waited; open it again",
                ));
            }
            outcome => outcome.map_err(|error| not_renewed(page, error))?,
        }
    }
    let checkpoint = locked
        .checkpoint_within(c"main", CheckpointMode::Truncate, patience, false)
        .map_err(|error| failed(page, error))?;
    if load(page, Word::Poison) == 0 {
        // Where readers that are none of ours are in the way, it was not we who have recovered the log.
        return Ok(());
    }
    if checkpoint.is_busy {
        return Ok(());
    }
    let answer = first_text(locked, "PRAGMA quick_check(1)")?;
    if answer != "ok" {
        return Err(Error::Sqlite(oxlite_sqlite::Error::new(
            codes::SQLITE_CORRUPT,
            format!("the database was damaged when a sync failed: quick_check says {answer}"),
        )));
    }
    store(page, Word::Poison, 0);
    Ok(())
}

fn first_text(locked: &Locked<'_>, sql: &str) -> Result<String> {
    let prepared = locked.prepare(sql, false)?;
    let Some(mut statement) = prepared.statement else {
        return Ok(String::new());
    };
    if statement.step(locked)? == Step::Row
        && let Some(row) = statement.row(locked)
        && let ValueRef::Text(text) = row.get(0)?
    {
        return Ok(String::from_utf8_lossy(text).into_owned());
    }
    Ok(String::new())
}
