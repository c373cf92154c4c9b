//! Commits of many processes that share one sync: each is answered only after a sync of the log that
//! *began after its COMMIT had returned*, and one sync answers all who committed before it began.
//!
//! The connections of a group commit with `synchronous=NORMAL`, so COMMIT appends to the log and syncs
//! nothing; the queue for the write lock is left, and then they wait. One of those who wait **leads**: it
//! notes how far the tickets of the commits have come, syncs, and publishes that number.
//!
//! - `settlement`: who leads, and when a ticket is settled; no more than that, so that it can be modelled.
//! - `member`: this process in the group: the page that all have mapped, the lock of the leader, and a
//!   connection that never writes, whose log is synced.
//! - `entry`: how a process comes in, and what the first one does.
//! - `observer`: what somebody sees of the group who is not in it.
//!
//! Invariants (why they are needed, by SQLite's source: docs/decisions/0021-shared-commit.md):
//! - The tickets are read *before* the sync begins, and published *after* it has succeeded, as a maximum.
//! - The handle that is synced is the log that SQLite has open, through SQLite's own file object. It was
//!   opened before the frames that it vouches for were written, or no sync had an unknown end before.
//! - A sync that fails, of log or database, in any process of the group, whoever asked for it, **poisons**
//!   the group for good: nothing is acknowledged any more. Linux tells of a failed write-back once for
//!   each open file and forgets it; a second try would succeed without the pages.
//! - What the page holds is believed only while somebody is in the group; the first one begins anew.
//! - Whoever cannot be in a group syncs by himself (`synchronous=FULL`), never less.

mod entry;
mod member;
mod observer;
mod reason;
mod settlement;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use oxlite_sqlite::{CommitGuard, Locked, Mutex, codes};

use crate::error::Result;
use crate::process::per_file::PerFile;

pub(crate) use member::Member;
pub use observer::{SharedCommitGroup, shared_commit_group};
use reason::Reason;

/// What the commits of one database have come to in this process, as one of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedCommitStatistics {
    /// Why every commit of this process is synced by itself; `None` if they share syncs.
    pub shared_commit_unavailable: Option<String>,
    /// The commits of this process.
    pub commits: u64,
    /// The syncs that it made for the group.
    pub syncs_led: u64,
    /// The syncs that it made beside a leader that did not go on.
    pub syncs_beside: u64,
    /// The commits that were answered by another one's sync.
    pub answered_by_others: u64,
    /// The commits of all processes, since the first of those that are there.
    pub commits_of_all: u64,
    /// The leaders that have died in a sync for all, of all processes, since then.
    pub leaders_lost: u64,
    /// Why nothing is acknowledged any more; `None` if all is well.
    pub poisoned: Option<&'static str>,
}

/// A database whose commits share their syncs, as this process sees it.
pub(crate) struct SharedCommit {
    database: PathBuf,
    joining: Mutex<()>,
    joined: OnceLock<Joined>,
}

enum Joined {
    Member(Arc<Member>),
    /// Each by itself, and why.
    Alone(String),
}

static SHARED: PerFile<SharedCommit> = PerFile::new();

impl SharedCommit {
    /// That of the database at `path`, in WAL mode, joined: waits for whoever joins just now.
    pub(crate) fn of(path: &Path, patience: Duration) -> Result<Option<Arc<Self>>> {
        oxlite_sqlite::call_after_failed_sync(note_failed_sync);
        let shared = SHARED.of(path, || Self {
            database: path.to_owned(),
            joining: Mutex::new(()),
            joined: OnceLock::new(),
        });
        let shared = match shared {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => return Ok(None),
            // Nobody can tell what the page of a file says that cannot be looked at.
            Err(error) => return Err(entry::not_alone(&error.to_string())),
            Ok(shared) => shared,
        };
        if shared.joined.get().is_some() {
            return Ok(Some(shared));
        }
        let began = Instant::now();
        let joining = loop {
            match shared.joining.try_lock() {
                Some(joining) => break joining,
                None if began.elapsed() >= patience => return Err(entry::still_joining()),
                None => entry::pause(),
            }
        };
        if shared.joined.get().is_none() {
            let patience = patience.saturating_sub(began.elapsed());
            let joined = match entry::join(&shared.database, patience)? {
                Ok(member) => Joined::Member(Arc::new(member)),
                Err(reason) => {
                    log::warn!(
                        "The commits of {} do not share their syncs with those of other processes: \
                         {reason}. Each is synced by itself (synchronous=FULL).",
                        shared.database.display()
                    );
                    Joined::Alone(reason)
                }
            };
            // Nobody else can be the first: the mutex is held.
            let _ = shared.joined.set(joined);
        }
        drop(joining);
        Ok(Some(shared))
    }

    /// This process in the group, if it is in one.
    pub(crate) fn member(&self) -> Option<&Arc<Member>> {
        match self.joined.get() {
            Some(Joined::Member(member)) => Some(member),
            _ => None,
        }
    }

    /// Whether nothing may be acknowledged any more.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.member().is_some_and(|member| member.is_poisoned())
    }

    /// What its commits have come to.
    pub(crate) fn statistics(&self) -> SharedCommitStatistics {
        match self.joined.get() {
            Some(Joined::Member(member)) => member.statistics(),
            Some(Joined::Alone(reason)) => SharedCommitStatistics::alone(reason),
            None => SharedCommitStatistics::alone("it has not been joined"),
        }
    }
}

impl SharedCommitStatistics {
    fn alone(reason: &str) -> Self {
        Self {
            shared_commit_unavailable: Some(reason.to_owned()),
            commits: 0,
            syncs_led: 0,
            syncs_beside: 0,
            answered_by_others: 0,
            commits_of_all: 0,
            leaders_lost: 0,
            poisoned: None,
        }
    }
}

/// Called in the middle of SQLite: a sync of the database, of its log or of its journal has failed.
fn note_failed_sync(database: &Path) {
    if let Some(shared) = SHARED.find(database)
        && let Some(member) = shared.member()
    {
        member.poison(Reason::SyncFailed);
    }
}

/// Puts the group in front of a connection's acknowledgements.
pub(crate) fn guard(locked: &Locked<'_>, member: Arc<Member>) {
    locked.set_commit_guard(Box::new(Guard(member)));
}

struct Guard(Arc<Member>);

impl CommitGuard for Guard {
    fn check(&self) -> oxlite_sqlite::Result<()> {
        // What comes may be, or end in, a checkpoint: of a log for which nobody has vouched yet.
        if self.0.is_too_young() {
            settle(&self.0, self.0.latest())?;
        }
        match self.0.poisoned() {
            None => Ok(()),
            Some(reason) => Err(sync_failed(reason)),
        }
    }

    fn committed(&self) -> u64 {
        self.0.draw()
    }

    fn wait(&self, ticket: u64) -> oxlite_sqlite::Result<()> {
        self.0.settle(ticket).map_err(sync_failed)
    }
}

fn sync_failed(reason: Reason) -> oxlite_sqlite::Error {
    oxlite_sqlite::Error::new(
        codes::SQLITE_IOERR_FSYNC,
        format!(
            "{}: what was written before may be lost, so nothing is committed any more. Stop all \
             processes that use the database; the first one to open it again checks it",
            reason.text()
        ),
    )
}

/// The error for a ticket that was deferred and cannot be settled.
pub(crate) fn settle(member: &Member, ticket: u64) -> Result<(), oxlite_sqlite::Error> {
    oxlite_sqlite::about_to_wait();
    member.settle(ticket).map_err(sync_failed)
}
