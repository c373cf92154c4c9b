//! Everything that can go wrong in this crate, sorted by who can mend it. The shell crate maps each
//! kind to one Python exception.

use std::fmt;

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
            Self::Sqlite(error) | Self::StatementTimeout(error) => error.fmt(formatter),
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

impl std::error::Error for Error {}

impl From<oxlite_sqlite::Error> for Error {
    fn from(error: oxlite_sqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
