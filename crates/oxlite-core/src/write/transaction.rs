//! Who begins transactions, and how an implicit one begins, in PEP 249's and SQLite's words.

use crate::error::{Error, Result};
use crate::open::choice::Choice;

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

impl Choice for IsolationLevel {
    const WHAT: &'static str = "isolation level";
    const ALL: &'static [Self] = &[
        Self::Default,
        Self::Deferred,
        Self::Immediate,
        Self::Exclusive,
    ];

    fn name(&self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Deferred => "DEFERRED",
            Self::Immediate => "IMMEDIATE",
            Self::Exclusive => "EXCLUSIVE",
        }
    }
}

impl IsolationLevel {
    /// The level of that name, in any case; `""` is SQLite's default.
    pub fn named(name: &str) -> Result<Self> {
        let found = Self::ALL
            .iter()
            .find(|level| level.name().eq_ignore_ascii_case(name));
        found.copied().ok_or_else(|| {
            // The standard library's words.
            let mut names: Vec<_> = Self::names()
                .iter()
                .map(|name| format!("'{name}'"))
                .collect();
            if let Some(last) = names.last_mut() {
                last.insert_str(0, "or ");
            }
            Error::Value(format!(
                "isolation_level string must be {}",
                names.join(", ")
            ))
        })
    }

    /// The level's name, upper case.
    pub fn name(self) -> &'static str {
        Choice::name(&self)
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
