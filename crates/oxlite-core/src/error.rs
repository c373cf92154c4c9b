//! Everything that can go wrong in this crate, sorted by who can mend it. The shell crate maps each
//! kind to one Python exception.

use std::fmt;

use oxlite_sqlite::codes;

use crate::write::queue::holder::{Held, Holder};

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error, by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// SQLite refused.
    Sqlite(oxlite_sqlite::Error),
    /// An argument has a value that means nothing: an unknown profile, a pragma out of range.
    Value(String),
    /// An argument has the wrong type.
    Type(String),
    /// The interface was used in a way that cannot work: two statements in one call.
    Programming(String),
    /// A datum does not fit: SQL text that is too long.
    Data(String),
    /// The statement has used up its time and was interrupted.
    StatementTimeout(oxlite_sqlite::Error),
    /// Somebody else has had the lock for as long as this connection waits.
    Locked {
        /// SQLite's error, with what is known of the holder in its message.
        error: oxlite_sqlite::Error,
        /// Who has the lock, if it is a connection of Oxlite and has told.
        holder: Option<Holder>,
    },
    /// A transaction that has read would write, and what it has read is no longer the newest.
    StaleSnapshot(oxlite_sqlite::Error),
    /// COMMIT has failed in a way that leaves open whether the transaction will be there after a crash.
    CommitOutcomeUnknown(oxlite_sqlite::Error),
    /// A sync of the database has failed, here or in another process with which it shares its syncs, so
    /// that nothing is committed any more.
    SyncFailed(oxlite_sqlite::Error),
    /// A pragma was accepted by SQLite and yet is not in force.
    PragmaIneffective {
        /// The pragma's name.
        pragma: &'static str,
        /// What was asked for.
        requested: String,
        /// What SQLite reports afterwards.
        effective: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// A switch or a limit was set, and yet is not in force.
    PrecautionIneffective {
        /// Its name.
        name: &'static str,
        /// What was asked for.
        requested: String,
        /// What SQLite reports afterwards.
        effective: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error)
            | Self::StatementTimeout(error)
            | Self::StaleSnapshot(error)
            | Self::CommitOutcomeUnknown(error)
            | Self::SyncFailed(error)
            | Self::Locked { error, .. } => error.fmt(formatter),
            Self::Value(text) | Self::Type(text) | Self::Programming(text) | Self::Data(text) => {
                formatter.write_str(text)
            }
            Self::PragmaIneffective {
                pragma,
                requested,
                effective,
                advice,
            } => write!(
                formatter,
                "PRAGMA {pragma} = {requested} did not take effect: SQLite reports {effective}; {advice}"
            ),
            Self::PrecautionIneffective {
                name,
                requested,
                effective,
            } => write!(
                formatter,
                "{name} = {requested} did not take effect: SQLite reports {effective}"
            ),
        }
    }
}

impl Error {
    /// A parameter set that is too short or too long.
    pub fn wrong_count(wanted: usize, supplied: usize) -> Self {
        Self::Programming(format!(
            "Incorrect number of bindings supplied. The current statement uses {wanted}, and there are \
             {supplied} supplied."
        ))
    }

    /// Parameter `index` (from 1) has no name, but the values have nothing else.
    pub fn no_name(index: usize) -> Self {
        Self::Programming(format!(
            "Binding {index} has no name, but you supplied a dictionary (which has only names)."
        ))
    }

    /// No value for the parameter of that name.
    pub fn no_value(name: &str) -> Self {
        Self::Programming(format!(
            "You did not supply a value for binding parameter :{name}."
        ))
    }

    /// Why a statement has really failed: its deadline and an interruption show as the errors of
    /// what they broke off, among them the wait for a lock.
    pub(crate) fn explained(error: oxlite_sqlite::Error, of: &impl Circumstances) -> Self {
        let code = error.primary_code();
        if error.code() == codes::SQLITE_IOERR_FSYNC && !error.is_of_commit() && of.shares_commits()
        {
            return Self::SyncFailed(error);
        }
        if error.is_of_commit() && of.is_strict() && leaves_commit_open(code) {
            return Self::CommitOutcomeUnknown(error);
        }
        if !matches!(code, codes::SQLITE_INTERRUPT | codes::SQLITE_BUSY) {
            return Self::Sqlite(error);
        }
        if of.take_passed_deadline() {
            let interrupted = oxlite_sqlite::Error::new(
                codes::SQLITE_INTERRUPT,
                "the statement has used up its time (statement_timeout) and was interrupted",
            );
            return Self::StatementTimeout(interrupted);
        }
        if code != codes::SQLITE_BUSY {
            return Self::Sqlite(error);
        }
        if of.is_interrupted() {
            let interrupted = oxlite_sqlite::Error::new(codes::SQLITE_INTERRUPT, "interrupted");
            return Self::Sqlite(interrupted);
        }
        if !of.is_strict() && !of.has_write_queue() {
            return Self::Sqlite(error); // as the standard library has it
        }
        if error.code() == codes::SQLITE_BUSY_SNAPSHOT {
            return Self::StaleSnapshot(error);
        }
        // "cannot commit transaction - SQL statements in progress" is none of a lock's.
        let is_lock = error.message() == oxlite_sqlite::Error::from_code(code).message();
        if !is_lock {
            return Self::Sqlite(error);
        }
        Self::locked(error, of.holder())
    }

    /// The error of a lock timeout. `held` is what is known of who has the write lock;
    /// nothing if the connection does not wait in the queue for it, or has it itself.
    pub(crate) fn locked(error: oxlite_sqlite::Error, held: Option<Held>) -> Self {
        let error = match &held {
            None => error,
            Some(held) => error.with_context(&format!(": {held}")),
        };
        let holder = match held {
            Some(Held::Told(holder)) => Some(holder),
            Some(Held::ByThisThread(holder)) => holder,
            Some(Held::Seen(_) | Held::Unknown) | None => None,
        };
        Self::Locked { error, holder }
    }
}

/// What a connection knows beside SQLite's code when something was refused. Each is asked only where it decides.
pub(crate) trait Circumstances {
    /// Whether its profile has errors of its own, and not only the standard library's.
    fn is_strict(&self) -> bool;
    /// Whether its commits share their syncs with those of other processes.
    fn shares_commits(&self) -> bool;
    /// Whether it waits for the write lock in the queue.
    fn has_write_queue(&self) -> bool;
    /// Whether the deadline of its statement has passed, which is then forgotten.
    fn take_passed_deadline(&self) -> bool;
    /// Whether somebody has interrupted it.
    fn is_interrupted(&self) -> bool;
    /// What is known of who has the write lock; nothing if it does not wait in the queue for it, or has it itself.
    /// May take long.
    fn holder(&self) -> Option<Held>;
}

/// Whether an error of COMMIT leaves open what a crash would leave. A commit that was refused, or for
/// which the disk had no room, was not written as a whole; one whose sync has failed may have been, and
/// be found when the log is next recovered, although this connection has rolled it back.
fn leaves_commit_open(primary_code: i32) -> bool {
    !matches!(
        primary_code,
        codes::SQLITE_BUSY
            | codes::SQLITE_LOCKED
            | codes::SQLITE_CONSTRAINT
            | codes::SQLITE_FULL
            | codes::SQLITE_INTERRUPT
            | codes::SQLITE_READONLY
    )
}

impl std::error::Error for Error {}

impl From<oxlite_sqlite::Error> for Error {
    fn from(error: oxlite_sqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection of a production profile that waits in the queue, and of which nothing else is so.
    #[derive(Default)]
    struct Quiet {
        has_passed: bool,
        is_interrupted: bool,
        shares_commits: bool,
    }

    impl Circumstances for Quiet {
        fn is_strict(&self) -> bool {
            true
        }
        fn shares_commits(&self) -> bool {
            self.shares_commits
        }
        fn has_write_queue(&self) -> bool {
            true
        }
        fn take_passed_deadline(&self) -> bool {
            self.has_passed
        }
        fn is_interrupted(&self) -> bool {
            self.is_interrupted
        }
        fn holder(&self) -> Option<Held> {
            Some(Held::Unknown)
        }
    }

    fn explained(code: i32, of: &Quiet) -> Error {
        Error::explained(oxlite_sqlite::Error::from_code(code), of)
    }

    #[test]
    fn busy_is_the_error_of_what_ended_the_wait() {
        let quiet = Quiet::default();
        let busy = explained(codes::SQLITE_BUSY, &quiet);
        assert!(matches!(busy, Error::Locked { holder: None, .. }));
        let stale = explained(codes::SQLITE_BUSY_SNAPSHOT, &quiet);
        assert!(matches!(stale, Error::StaleSnapshot(_)));
        let interrupted = Quiet {
            is_interrupted: true,
            ..Quiet::default()
        };
        let error = explained(codes::SQLITE_BUSY, &interrupted);
        assert!(
            matches!(error, Error::Sqlite(error) if error.code() == codes::SQLITE_INTERRUPT),
            "an interruption"
        );
        let late = Quiet {
            has_passed: true,
            ..interrupted
        };
        for code in [codes::SQLITE_BUSY, codes::SQLITE_INTERRUPT] {
            assert!(matches!(explained(code, &late), Error::StatementTimeout(_)));
        }
        let full = explained(codes::SQLITE_FULL, &late);
        assert!(
            matches!(full, Error::Sqlite(_)),
            "the disk is full all the same"
        );
    }

    #[test]
    fn a_failed_sync_stops_only_who_shares_commits() {
        let alone = explained(codes::SQLITE_IOERR_FSYNC, &Quiet::default());
        assert!(matches!(alone, Error::Sqlite(_)));
        let of_a_group = Quiet {
            shares_commits: true,
            ..Quiet::default()
        };
        let shared = explained(codes::SQLITE_IOERR_FSYNC, &of_a_group);
        assert!(matches!(shared, Error::SyncFailed(_)));
    }

    #[test]
    fn a_commit_that_was_refused_is_in_no_doubt() {
        assert!(!leaves_commit_open(codes::SQLITE_FULL));
        assert!(!leaves_commit_open(codes::SQLITE_BUSY));
        assert!(leaves_commit_open(codes::SQLITE_IOERR));
    }
}
