//! What the profile for strangers' files sets beside pragmas: SQLite's switches and limits. Each is set
//! and read back, like a pragma.
//!
//! The names are SQLite's own. The limits are lower than SQLite's, and higher than those that
//! <https://sqlite.org/security.html> names for strangers' SQL: here the SQL is the application's, and a
//! healthy file of any program has to be readable. Why each is as it is: `docs/profiles.md`.

use oxlite_sqlite::{Locked, codes};

use crate::error::{Error, Result};
use crate::file::beside;
use crate::open::setting::Setting;

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Precaution {
    pub(crate) name: &'static str,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    /// A switch (<https://sqlite.org/c3ref/c_dbconfig_defensive.html>) that is set so.
    Switch(i32, bool),
    /// A switch that is set on where a WAL with something in it lies beside the file.
    SwitchForWal(i32),
    /// A limit (<https://sqlite.org/c3ref/c_limit_attached.html>).
    Limit(i32, i32),
}

macro_rules! precautions {
    ($($name:ident $kind:ident $($value:expr)?;)*) => {
        &[$(Precaution { name: stringify!($name), what: What::$kind(codes::$name $(, $value)?) },)*]
    };
}

/// For files of strangers.
pub(crate) const AGAINST_STRANGERS: &[Precaution] = precautions! {
    SQLITE_DBCONFIG_DEFENSIVE Switch true;
    SQLITE_DBCONFIG_WRITABLE_SCHEMA Switch false;
    SQLITE_DBCONFIG_ENABLE_TRIGGER Switch false;
    SQLITE_DBCONFIG_ENABLE_VIEW Switch false;
    SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER Switch false;
    SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION Switch false;
    SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE Switch false;
    SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE Switch false;
    SQLITE_DBCONFIG_DQS_DML Switch false;
    SQLITE_DBCONFIG_DQS_DDL Switch false;
    SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE SwitchForWal;
    SQLITE_LIMIT_LENGTH Limit 16_000_000;
    SQLITE_LIMIT_SQL_LENGTH Limit 100_000;
    SQLITE_LIMIT_COLUMN Limit 1_000;
    SQLITE_LIMIT_EXPR_DEPTH Limit 100;
    SQLITE_LIMIT_COMPOUND_SELECT Limit 50;
    SQLITE_LIMIT_VDBE_OP Limit 1_000_000;
    SQLITE_LIMIT_FUNCTION_ARG Limit 100;
    SQLITE_LIMIT_ATTACHED Limit 0;
    SQLITE_LIMIT_LIKE_PATTERN_LENGTH Limit 1_000;
    SQLITE_LIMIT_VARIABLE_NUMBER Limit 1_000;
    SQLITE_LIMIT_TRIGGER_DEPTH Limit 10;
};

impl Precaution {
    /// The value, as a pragma's would be written.
    pub(crate) fn value(&self) -> String {
        match self.what {
            What::Switch(_, is_on) => in_words(is_on).into(),
            What::SwitchForWal(_) => in_words(true).into(),
            What::Limit(_, value) => value.to_string(),
        }
    }

    /// Sets it, and reads it back.
    pub(crate) fn apply(&self, locked: &Locked<'_>) -> Result<Setting> {
        let requested = self.value();
        let mut skipped = None;
        let effective = match self.what {
            What::Switch(switch, is_on) => in_words(locked.config(switch, Some(is_on))?).into(),
            What::SwitchForWal(switch) => {
                let is_wanted = has_wal(locked);
                if !is_wanted {
                    skipped = Some("there is no WAL beside the database");
                }
                in_words(locked.config(switch, is_wanted.then_some(true))?).into()
            }
            What::Limit(category, value) => {
                locked.set_limit(category, value);
                let effective = locked.limit(category);
                effective.map_or_else(String::new, |effective| effective.to_string())
            }
        };
        if effective != requested && skipped.is_none() {
            return Err(Error::PrecautionIneffective {
                name: self.name,
                requested,
                effective,
            });
        }
        Ok(Setting {
            name: self.name,
            requested,
            effective,
            skipped,
        })
    }
}

fn in_words(is_on: bool) -> &'static str {
    if is_on { "ON" } else { "OFF" }
}

/// Whether closing would bring a WAL into the file that was there before. One that is empty is of
/// another connection to the same file, and the last to close removes it.
fn has_wal(locked: &Locked<'_>) -> bool {
    let wal = locked.path().map(|path| beside::wal(&path));
    wal.and_then(|wal| std::fs::metadata(wal).ok())
        .is_some_and(|wal| wal.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxlite_sqlite::{Connection, OpenFlags};

    #[test]
    fn what_is_not_in_force_afterwards_is_an_error() {
        let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
        let locked = connection.lock().expect("free");
        for precaution in AGAINST_STRANGERS {
            let setting = precaution.apply(&locked).expect("takes effect");
            assert_eq!(
                setting.effective == setting.requested,
                setting.skipped.is_none()
            );
        }
        let beyond = Precaution {
            name: "SQLITE_LIMIT_COLUMN",
            what: What::Limit(codes::SQLITE_LIMIT_COLUMN, i32::MAX),
        };
        let error = beyond.apply(&locked).expect_err("beyond what is compiled");
        assert_eq!(
            error.to_string(),
            "SQLITE_LIMIT_COLUMN = 2147483647 did not take effect: SQLite reports 2000"
        );
    }
}
