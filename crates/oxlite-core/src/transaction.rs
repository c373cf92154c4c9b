//! Who begins transactions, and how an implicit one begins, in PEP 249's and SQLite's words.

use crate::error::{Error, Result};

/// The kind of BEGIN before the first write of an implicit transaction
/// (<https://sqlite.org/lang_transaction.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// `BEGIN` in the standard library's spelling `""`.
    Default,
    /// Take no lock until it is needed; a read that turns into a write may fail at once.
    Deferred,
    /// Take the write lock now, waiting for it as the busy policy says.
    Immediate,
    /// Like immediate; outside WAL mode readers are kept out as well.
    Exclusive,
}

impl IsolationLevel {
    /// The level of that name, in any case; `""` is SQLite's default.
    pub fn named(name: &str) -> Result<Self> {
        match name.to_ascii_uppercase().as_str() {
            "" => Ok(Self::Default),
            "DEFERRED" => Ok(Self::Deferred),
            "IMMEDIATE" => Ok(Self::Immediate),
            "EXCLUSIVE" => Ok(Self::Exclusive),
            _ => Err(Error::Value(
                "isolation_level string must be '', 'DEFERRED', 'IMMEDIATE', or 'EXCLUSIVE'".into(),
            )),
        }
    }

    /// The level's name, upper case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Deferred => "DEFERRED",
            Self::Immediate => "IMMEDIATE",
            Self::Exclusive => "EXCLUSIVE",
        }
    }

    /// The statement that begins a transaction of this level.
    pub fn begin_statement(self) -> &'static str {
        match self {
            Self::Default => "BEGIN ",
            Self::Deferred => "BEGIN DEFERRED",
            Self::Immediate => "BEGIN IMMEDIATE",
            Self::Exclusive => "BEGIN EXCLUSIVE",
        }
    }
}

/// Who begins and ends transactions: the `autocommit` attribute of the standard library's
/// connections (<https://docs.python.org/3/library/sqlite3.html#transaction-control>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionControl {
    /// A data modification begins one implicitly, as the isolation level says.
    Legacy,
    /// Nobody but the application, by SQL (`autocommit=True`).
    Autocommit,
    /// One is always open: ending it begins the next (`autocommit=False`, as PEP 249 has it).
    AlwaysOpen,
}

impl TransactionControl {
    /// The statement that begins the next transaction where one is always open.
    pub const BEGIN: &'static str = "BEGIN";
}
