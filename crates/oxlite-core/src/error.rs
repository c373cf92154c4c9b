//! Everything that can go wrong in this crate, sorted by who can mend it. The shell crate maps each
//! kind to one Python exception.

use std::fmt;

use crate::queue::{Held, Holder};

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

    /// The error of a wait for a lock that was in vain. `held` is what is known of who has the write lock;
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

impl std::error::Error for Error {}

impl From<oxlite_sqlite::Error> for Error {
    fn from(error: oxlite_sqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
