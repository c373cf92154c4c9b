//! The pragmas that may be set when a database is opened: which values each takes, how SQLite spells
//! the value when it is read back, and where it cannot apply.
//!
//! SQLite answers a misspelt pragma, or a value it does not know, with silence. This table is what
//! turns both into errors.

use std::fmt;

use oxlite_sqlite::codes;

use crate::error::{Error, Result};
use crate::text::nearest::unknown;

/// A pragma's value as the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PragmaValue {
    /// `True` or `False`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A word such as `NORMAL`, in any case.
    Text(String),
}

impl fmt::Display for PragmaValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => formatter.write_str(if *value { "ON" } else { "OFF" }),
            Self::Integer(value) => value.fmt(formatter),
            Self::Text(value) => formatter.write_str(value),
        }
    }
}

impl From<&str> for PragmaValue {
    /// Reads a number as a number and everything else as a word.
    fn from(text: &str) -> Self {
        match text.parse() {
            Ok(number) => Self::Integer(number),
            Err(_) => Self::Text(text.into()),
        }
    }
}

/// Which values a pragma takes.
enum Domain {
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    /// A power of two within bounds.
    PowerOfTwo {
        min: i64,
        max: i64,
    },
    /// Words, each with the text SQLite reports for it.
    Words(&'static [(&'static str, &'static str)]),
}

/// Where a pragma has no effect, so that this is no failure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it applies everywhere.
    Nothing,
    /// A database in a file.
    File,
    /// A database in a file that may be written.
    WritableFile,
}

/// A pragma one may set on opening.
pub(crate) struct Pragma {
    pub(crate) name: &'static str,
    domain: Domain,
    pub(crate) needs: Needs,
    /// What to do when it did not take effect.
    pub(crate) advice: &'static str,
    /// The switch of SQLite's that it stands for, if it is one: set and read back in one call, with no SQL.
    pub(crate) switch: Option<i32>,
}

/// A value that passed the table: how to write it and what SQLite must report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) sql: String,
    pub(crate) expected: String,
}

const SIZES: Domain = Domain::Integer {
    min: 0,
    max: i64::MAX,
};
const NEW_FILES_ONLY: &str = "it can only be chosen before the first table is made; run VACUUM after it, outside WAL mode, to change an existing file";
const COMPILED_LIMIT: &str =
    "the value is beyond the limit this SQLite was compiled or started with";

const fn pragma(name: &'static str, domain: Domain, needs: Needs, advice: &'static str) -> Pragma {
    Pragma {
        name,
        domain,
        needs,
        advice,
        switch: None,
    }
}

/// A pragma that is one of SQLite's switches (<https://sqlite.org/c3ref/c_dbconfig_defensive.html>).
const fn switch(name: &'static str, switch: i32, advice: &'static str) -> Pragma {
    let mut pragma = pragma(name, Domain::Boolean, Needs::Nothing, advice);
    pragma.switch = Some(switch);
    pragma
}

/// Every pragma that may be set on opening (<https://sqlite.org/pragma.html>).
#[rustfmt::skip]
static PRAGMAS: &[Pragma] = &[
    pragma("analysis_limit", SIZES, Needs::Nothing, COMPILED_LIMIT),
    pragma("auto_vacuum", Domain::Words(&[("NONE", "0"), ("FULL", "1"), ("INCREMENTAL", "2")]), Needs::WritableFile, NEW_FILES_ONLY),
    pragma("automatic_index", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    pragma("cache_size", Domain::Integer { min: i32::MIN as i64, max: i32::MAX as i64 }, Needs::Nothing, COMPILED_LIMIT),
    pragma("cell_size_check", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    pragma("checkpoint_fullfsync", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    switch("foreign_keys", codes::SQLITE_DBCONFIG_ENABLE_FKEY, "it cannot be changed inside a transaction"),
    pragma("fullfsync", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    pragma("ignore_check_constraints", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    pragma("journal_mode", Domain::Words(&[
        ("DELETE", "delete"), ("TRUNCATE", "truncate"), ("PERSIST", "persist"),
        ("MEMORY", "memory"), ("WAL", "wal"), ("OFF", "off"),
    ]), Needs::WritableFile, "another connection holds the database in its journal mode, or the file system cannot share memory; close it, or pass journal=\"keep\""),
    pragma("journal_size_limit", Domain::Integer { min: -1, max: i64::MAX }, Needs::File, COMPILED_LIMIT),
    switch("legacy_alter_table", codes::SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, COMPILED_LIMIT),
    pragma("locking_mode", Domain::Words(&[("NORMAL", "normal"), ("EXCLUSIVE", "exclusive")]), Needs::File, COMPILED_LIMIT),
    pragma("max_page_count", Domain::Integer { min: 1, max: u32::MAX as i64 - 1 }, Needs::Nothing, "the database already has more pages"),
    pragma("mmap_size", SIZES, Needs::File, COMPILED_LIMIT),
    pragma("page_size", Domain::PowerOfTwo { min: 512, max: 65536 }, Needs::WritableFile, NEW_FILES_ONLY),
    pragma("query_only", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    pragma("read_uncommitted", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    pragma("recursive_triggers", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    pragma("reverse_unordered_selects", Domain::Boolean, Needs::Nothing, COMPILED_LIMIT),
    pragma("secure_delete", Domain::Words(&[("OFF", "0"), ("ON", "1"), ("FAST", "2")]), Needs::Nothing, COMPILED_LIMIT),
    pragma("synchronous", Domain::Words(&[("OFF", "0"), ("NORMAL", "1"), ("FULL", "2"), ("EXTRA", "3")]), Needs::Nothing, "it cannot be changed inside a transaction"),
    pragma("temp_store", Domain::Words(&[("DEFAULT", "0"), ("FILE", "1"), ("MEMORY", "2")]), Needs::Nothing, "it cannot be changed inside a transaction"),
    pragma("threads", SIZES, Needs::Nothing, COMPILED_LIMIT),
    switch("trusted_schema", codes::SQLITE_DBCONFIG_TRUSTED_SCHEMA, COMPILED_LIMIT),
    pragma("wal_autocheckpoint", Domain::Integer { min: 0, max: i32::MAX as i64 }, Needs::Nothing, COMPILED_LIMIT),
];

impl Pragma {
    /// The pragma of that name.
    pub(crate) fn named(name: &str) -> Result<&'static Self> {
        PRAGMAS
            .iter()
            .find(|pragma| pragma.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| match name {
                _ if name.eq_ignore_ascii_case("busy_timeout") => Error::Value(
                    "the pragma 'busy_timeout' is the argument timeout, in seconds".into(),
                ),
                _ if name.starts_with("SQLITE_LIMIT_") => Error::Value(format!(
                    "{name} is a limit, not a pragma: connection.setlimit(sqlite3.{name}, …) sets it"
                )),
                _ if name.starts_with("SQLITE_DBCONFIG_") => Error::Value(format!(
                    "{name} is a switch, not a pragma: connection.setconfig(sqlite3.{name}, …) sets it"
                )),
                _ => unknown("pragma", name, PRAGMAS.iter().map(|pragma| pragma.name)),
            })
    }

    /// Checks a value against the table.
    pub(crate) fn check(&self, value: &PragmaValue) -> Result<Checked> {
        let wrong = |wanted: &str| {
            Error::Value(format!("PRAGMA {} takes {wanted}, not {value}", self.name))
        };
        let ill_typed = |wanted: &str| {
            let given = match value {
                PragmaValue::Text(text) => format!("the text {text:?}"),
                PragmaValue::Boolean(_) => "a boolean".to_owned(),
                PragmaValue::Integer(number) => number.to_string(),
            };
            Error::Type(format!("PRAGMA {} takes {wanted}, not {given}", self.name))
        };
        match (&self.domain, value) {
            (Domain::Boolean, PragmaValue::Boolean(value)) => Ok(boolean(*value)),
            (Domain::Boolean, PragmaValue::Integer(value @ (0 | 1))) => Ok(boolean(*value == 1)),
            (Domain::Boolean, PragmaValue::Text(word)) => {
                match word.to_ascii_uppercase().as_str() {
                    "ON" | "TRUE" | "YES" => Ok(boolean(true)),
                    "OFF" | "FALSE" | "NO" => Ok(boolean(false)),
                    _ => Err(wrong("ON or OFF")),
                }
            }
            (Domain::Boolean, PragmaValue::Integer(_)) => Err(wrong("ON or OFF")),
            (Domain::Integer { min, max }, PragmaValue::Integer(value)) => {
                if (min..=max).contains(&value) {
                    let text = value.to_string();
                    Ok(Checked {
                        sql: text.clone(),
                        expected: text,
                    })
                } else {
                    Err(wrong(&format!("a whole number from {min} to {max}")))
                }
            }
            (Domain::PowerOfTwo { min, max }, PragmaValue::Integer(value)) => {
                if (min..=max).contains(&value) && value & (value - 1) == 0 {
                    let text = value.to_string();
                    Ok(Checked {
                        sql: text.clone(),
                        expected: text,
                    })
                } else {
                    Err(wrong(&format!("a power of two from {min} to {max}")))
                }
            }
            (Domain::Integer { .. } | Domain::PowerOfTwo { .. }, _) => {
                Err(ill_typed("a whole number"))
            }
            (Domain::Words(words), value) => {
                let by_word = |word: &str| {
                    words
                        .iter()
                        .find(|(known, _)| known.eq_ignore_ascii_case(word))
                };
                let found = match value {
                    PragmaValue::Text(word) => by_word(word),
                    // SQLite takes its own numbers for the words, and ON and OFF where both exist.
                    PragmaValue::Integer(number) => {
                        let number = number.to_string();
                        words.iter().find(|(_, code)| *code == number)
                    }
                    PragmaValue::Boolean(value) => by_word(if *value { "ON" } else { "OFF" }),
                };
                let (word, expected) = found.ok_or_else(|| {
                    wrong(
                        &words
                            .iter()
                            .map(|(word, _)| *word)
                            .collect::<Vec<_>>()
                            .join(", "),
                    )
                })?;
                Ok(Checked {
                    sql: (*word).into(),
                    expected: (*expected).into(),
                })
            }
        }
    }

    /// A value that SQLite reported, in the words one would set it with.
    pub(crate) fn in_words(&self, reported: &str) -> String {
        match self.domain {
            Domain::Boolean if reported == "1" => "ON".into(),
            Domain::Boolean if reported == "0" => "OFF".into(),
            Domain::Words(words) => words
                .iter()
                .find(|(_, code)| *code == reported)
                .map_or_else(|| reported.into(), |(word, _)| (*word).into()),
            _ => reported.into(),
        }
    }
}

fn boolean(value: bool) -> Checked {
    let (sql, expected) = if value { ("ON", "1") } else { ("OFF", "0") };
    Checked {
        sql: sql.into(),
        expected: expected.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: PragmaValue) -> Result<Checked> {
        Pragma::named(name)?.check(&value)
    }

    #[test]
    fn words_numbers_and_booleans_mean_what_sqlite_means_by_them() {
        let text = |word: &str| PragmaValue::Text(word.into());
        let full = Checked {
            sql: "FULL".into(),
            expected: "2".into(),
        };
        assert_eq!(check("synchronous", text("full")), Ok(full.clone()));
        assert_eq!(check("SYNCHRONOUS", PragmaValue::Integer(2)), Ok(full));
        assert_eq!(check("foreign_keys", text("yes")), Ok(boolean(true)));
        assert_eq!(
            check("foreign_keys", PragmaValue::Integer(0)),
            Ok(boolean(false))
        );
        assert_eq!(
            check("secure_delete", PragmaValue::Boolean(true)).map(|c| c.expected),
            Ok("1".into())
        );
        assert_eq!(
            check("cache_size", PragmaValue::Integer(-64000)).map(|c| c.sql),
            Ok("-64000".into())
        );
    }

    #[test]
    fn what_sqlite_would_silently_ignore_is_refused() {
        let refused = |name: &str, value: PragmaValue| {
            check(name, value).expect_err("must be refused").to_string()
        };
        let text = |word: &str| PragmaValue::Text(word.into());
        assert!(
            refused("synchronos", PragmaValue::Integer(1)).contains("did you mean 'synchronous'")
        );
        assert!(refused("synchronous", text("MAYBE")).contains("OFF, NORMAL, FULL, EXTRA"));
        assert!(refused("foreign_keys", PragmaValue::Integer(2)).contains("ON or OFF"));
        assert_eq!(
            refused("mmap_size", text("128MB")),
            "PRAGMA mmap_size takes a whole number, not the text \"128MB\""
        );
        assert_eq!(
            refused("mmap_size", PragmaValue::Boolean(true)),
            "PRAGMA mmap_size takes a whole number, not a boolean"
        );
        assert!(refused("page_size", PragmaValue::Integer(100)).contains("512"));
        assert!(refused("page_size", PragmaValue::Integer(1000)).contains("power of two"));
        assert!(refused("busy_timeout", PragmaValue::Integer(1)).contains("timeout"));
        assert!(refused("journal_mode", text("wal; DROP TABLE t")).contains("WAL"));
    }
}
