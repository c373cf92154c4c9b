//! Scripts that are run again and again, with their statements prepared.
//!
//! A script is noted when it runs first, its statements are kept when it runs for the second time, and from
//! the third time on none is prepared: a script that runs once costs no more than its text. Only short
//! scripts of queries, data modifications and transaction control are kept: a change of the schema has all
//! statements prepared anew, and some pragmas act while they are prepared.
//!
//! A script is *taken* while it runs, and given back only if all went well.

use oxlite_sqlite::{Locked, Statement, begins_with_one_of};

/// Longer scripts, in bytes, are not kept: those are imports and migrations, which run once.
const LONGEST_BYTES: usize = 4096;

/// No script has more statements that are kept, and none more than the connection's cache holds.
const MOST_STATEMENTS: usize = 32;

/// So many scripts are known, the latest ones.
const KNOWN: usize = 4;

const KEPT_KEYWORDS: &[&str] = &[
    "INSERT",
    "UPDATE",
    "DELETE",
    "SELECT",
    "REPLACE",
    "BEGIN",
    "COMMIT",
    "END",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "WITH",
    "VALUES",
];

/// What is known of a script.
enum Known {
    /// It has been run.
    Noted,
    /// Its statements, at rest.
    Kept(Vec<Statement>),
    /// It has statements that are not kept.
    NeverKept,
}

/// A script that has been run before.
pub(crate) struct Script {
    text: Box<str>,
    known: Known,
}

impl Script {
    /// One that has been run once.
    pub(crate) fn noted(text: &str) -> Self {
        Self {
            text: text.into(),
            known: Known::Noted,
        }
    }

    /// Runs it once more; afterwards it is known better. If that fails it is to be forgotten.
    pub(crate) fn run(
        &mut self,
        locked: &Locked<'_>,
        capacity: usize,
    ) -> oxlite_sqlite::Result<()> {
        match &mut self.known {
            Known::Kept(statements) => locked.execute_again(statements),
            Known::NeverKept => locked.execute_batch(&self.text),
            Known::Noted => {
                let most = capacity.min(MOST_STATEMENTS);
                let mut statements = Some(Vec::new());
                locked.execute_each(&self.text, true, |statement, text| {
                    match statements.as_mut() {
                        Some(kept)
                            if kept.len() < most && begins_with_one_of(text, KEPT_KEYWORDS) =>
                        {
                            kept.push(statement);
                        }
                        _ => {
                            statement.finalize(locked);
                            finalize(statements.take().unwrap_or_default(), locked);
                        }
                    }
                })?;
                self.known = statements.map_or(Known::NeverKept, Known::Kept);
                Ok(())
            }
        }
    }

    /// Finalises its statements now.
    pub(crate) fn finalize(self, locked: &Locked<'_>) {
        if let Known::Kept(statements) = self.known {
            finalize(statements, locked);
        }
    }
}

fn finalize(statements: Vec<Statement>, locked: &Locked<'_>) {
    for statement in statements {
        statement.finalize(locked);
    }
}

/// The scripts of a connection, the latest last.
#[derive(Default)]
pub(crate) struct Scripts(Vec<Script>);

impl Scripts {
    /// Whether a script of this text may be kept.
    pub(crate) fn may_have(text: &str) -> bool {
        text.len() <= LONGEST_BYTES
    }

    /// Takes the script out, if it is known.
    pub(crate) fn take(&mut self, text: &str) -> Option<Script> {
        let found = self.0.iter().rposition(|script| *script.text == *text)?;
        Some(self.0.remove(found))
    }

    /// Keeps a script; what has to go is returned, since its drop may need the connection's lock.
    pub(crate) fn put(&mut self, script: Script) -> Option<Script> {
        let is_full = self.0.len() >= KNOWN;
        let oldest = is_full.then(|| self.0.remove(0));
        self.0.push(script);
        oldest
    }
}

#[cfg(test)]
mod tests {
    use oxlite_sqlite::{Connection, OpenFlags};

    use super::*;

    const KEPT: &str = "BEGIN; INSERT INTO t VALUES(1); -- one\n COMMIT";

    fn run(scripts: &mut Scripts, locked: &Locked<'_>, text: &str) -> usize {
        let mut script = scripts.take(text).unwrap_or_else(|| Script::noted(text));
        script.run(locked, 128).expect("valid SQL");
        let kept = match &script.known {
            Known::Kept(statements) => statements.len(),
            Known::Noted | Known::NeverKept => 0,
        };
        if let Some(oldest) = scripts.put(script) {
            oldest.finalize(locked);
        }
        kept
    }

    #[test]
    fn statements_are_kept_and_run_again_after_a_change_of_the_schema() {
        let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
        let locked = connection.lock().expect("open");
        locked.execute_batch("CREATE TABLE t(a)").expect("runs");
        let mut scripts = Scripts::default();
        assert_eq!(run(&mut scripts, &locked, KEPT), 3);
        let anew = "DROP TABLE t; CREATE TABLE t(b INTEGER PRIMARY KEY)";
        locked.execute_batch(anew).expect("runs");
        assert_eq!(run(&mut scripts, &locked, KEPT), 3);
        let mut again = scripts.take(KEPT).expect("known");
        let refused = again.run(&locked, 128).expect_err("the key is taken");
        assert_eq!(
            refused.primary_code(),
            oxlite_sqlite::codes::SQLITE_CONSTRAINT
        );
        again.finalize(&locked);
    }

    #[test]
    fn what_changes_the_schema_or_is_long_is_not_kept() {
        let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
        let locked = connection.lock().expect("open");
        let mut scripts = Scripts::default();
        let mixed = "SELECT 1; PRAGMA user_version = 1; SELECT 2";
        assert_eq!(run(&mut scripts, &locked, mixed), 0);
        assert_eq!(run(&mut scripts, &locked, mixed), 0);
        let many = "SELECT 1;".repeat(MOST_STATEMENTS + 1);
        assert_eq!(run(&mut scripts, &locked, &many), 0);
        assert!(!Scripts::may_have(&" ".repeat(LONGEST_BYTES + 1)));
    }

    #[test]
    fn the_oldest_script_goes() {
        let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
        let locked = connection.lock().expect("open");
        let mut scripts = Scripts::default();
        for number in 0..=KNOWN {
            run(&mut scripts, &locked, &format!("SELECT {number}"));
        }
        assert!(scripts.take("SELECT 0").is_none());
        assert!(scripts.take("SELECT 1").is_some());
    }
}
