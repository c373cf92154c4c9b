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
//! - What cannot be had (memory, locks) is a reason to sync each commit by itself; what is wrong with the
//!   database is an error.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use oxlite_sqlite::{
    CheckpointMode, Connection, Locked, OpenFlags, SharedPage, Step, ValueRef, codes,
};

use super::member::{FORMAT, FileNumbers, MEMBERS, Member, Reason, Word};
use crate::error::{Error, Result};
use crate::queue::is_on_network;

/// How often one looks whether the one that begins has come to an end.
const PAUSE: Duration = Duration::from_millis(1);

/// Joins the group of the database at `path`; or tells why there is none to be had.
pub(super) fn join(path: &Path, patience: Duration) -> Result<Result<Member, String>> {
    if is_on_network(path) {
        return Ok(Err("the database is on a network file system".into()));
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    let began = Instant::now();
    loop {
        match attempt(path, &log, patience)? {
            Attempt::Joined(member) => return Ok(Ok(*member)),
            Attempt::Impossible(reason) => return Ok(Err(reason)),
            Attempt::Again if began.elapsed() >= patience => {
                return Ok(Err(
                    "another process that joins does not come to an end".into()
                ));
            }
            Attempt::Again => {
                oxlite_sqlite::about_to_wait();
                thread::sleep(PAUSE);
            }
        }
    }
}

enum Attempt {
    Joined(Box<Member>),
    Impossible(String),
    /// Somebody begins or ends the group just now.
    Again,
}

fn attempt(path: &Path, log: &Path, patience: Duration) -> Result<Attempt> {
    let page = match FileNumbers::of(path)
        .and_then(|file| SharedPage::open(file.device, file.inode))
    {
        Ok(page) => page,
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(Attempt::Again),
        Err(error) => return Ok(Attempt::Impossible(format!("no shared memory: {error}"))),
    };
    let lock = |is_shared| page.lock_file().try_lock(MEMBERS, is_shared);
    let is_first = match lock(false) {
        Ok(is_first) => is_first,
        Err(error) => return Ok(Attempt::Impossible(format!("no locks: {error}"))),
    };
    if !is_first && !matches!(lock(true), Ok(true)) {
        return Ok(Attempt::Again);
    }
    // Its last member may have removed it in between, or its first one have died.
    let is_complete = load(&page, Word::Format) == FORMAT;
    if !page.is_in_place() || (!is_first && !is_complete) {
        return Ok(Attempt::Again);
    }
    let connection = never_writing(path, patience)?;
    let log_file = {
        let locked = connection.lock().map_err(|_| closed())?;
        open_log(&locked).inspect_err(|error| poison_by(&page, error))?;
        let Ok(log_file) = FileNumbers::of(log) else {
            return Ok(Attempt::Impossible("its log has no name".into()));
        };
        if is_first {
            store(&page, Word::Format, 0);
            begin_anew(&page, &locked, patience)?;
            complete(&page, log_file);
            // Others come in from here on: one lock becomes the other, so nobody comes in between.
            if !matches!(lock(true), Ok(true)) {
                return Ok(Attempt::Impossible("the lock cannot be shared".into()));
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

/// A sync that has failed while one joins: the group's members may not be told of it any more.
fn poison_by(page: &SharedPage, error: &oxlite_sqlite::Error) {
    if error.code() == codes::SQLITE_IOERR_FSYNC {
        store(page, Word::Poison, Reason::SyncFailed as u64);
    }
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
    ];
    for counter in counters {
        store(page, counter, 0);
    }
    store(page, Word::Format, FORMAT);
}

fn closed() -> Error {
    Error::Programming("Cannot operate on a closed database.".into())
}

/// A connection that makes no checkpoints of its own.
fn never_writing(path: &Path, patience: Duration) -> Result<Connection> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| Error::Value("embedded null character in the database name".into()))?;
    let connection = Connection::open(&name, OpenFlags::default())?;
    {
        let locked = connection.lock().map_err(|_| closed())?;
        locked.set_busy_timeout(patience)?;
        locked.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
    }
    Ok(connection)
}

/// Has the log opened, by a read, and its name in the folder synced, by a sync of SQLite's.
fn open_log(locked: &Locked<'_>) -> oxlite_sqlite::Result<()> {
    locked.execute_batch("PRAGMA schema_version")?;
    match locked.sync_log() {
        Err(error) if error.code() == codes::SQLITE_MISUSE => Err(oxlite_sqlite::Error::new(
            codes::SQLITE_ERROR,
            "durable_commit=\"shared\" needs a database in WAL mode that is opened by Oxlite's own VFS",
        )),
        outcome => outcome,
    }
}

/// What the first one does. Poison stays where the database cannot be checked alone.
fn begin_anew(page: &SharedPage, locked: &Locked<'_>, patience: Duration) -> Result<()> {
    // Of the group before, whose page it is.
    let has_unknown_end = load(page, Word::Begun) != load(page, Word::Ended);
    let is_poisoned = load(page, Word::Poison) != 0;
    if is_poisoned || has_unknown_end {
        match locked.renew_log() {
            // Somebody who is none of ours writes, for longer than we wait.
            Err(error) if error.primary_code() == codes::SQLITE_BUSY => {
                if !is_poisoned {
                    store(page, Word::Poison, Reason::UnknownEnd as u64);
                }
                return Ok(());
            }
            outcome => outcome.inspect_err(|error| poison_by(page, error))?,
        }
    }
    let checkpoint = locked
        .checkpoint_within(c"main", CheckpointMode::Truncate, patience, false)
        .inspect_err(|error| poison_by(page, error))?;
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
