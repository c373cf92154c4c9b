//! Statements that have taken long, with what SQLite did for them.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oxlite_sqlite::{EndedStatement, Locked, Step, ValueRef, begins_with_one_of, first_statement};

/// What has a plan, and is not run or changed by asking for it: a pragma may work while it is prepared.
const HAVE_PLANS: [&str; 7] = [
    "SELECT", "WITH", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE",
];

/// Which statements of a connection are slow, and who is told of them.
#[derive(Clone, Copy, Debug)]
pub struct SlowStatements {
    /// Those that take this or more, with what they wait for locks.
    pub over: Duration,
    /// Called with each, on the thread that has run it, when it has ended: if it was part of a transaction that
    /// writes, when that has.
    pub tell: fn(&SlowStatement),
}

/// A statement that has taken long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowStatement {
    /// The file of the connection's main database, if it has one.
    pub database: Option<PathBuf>,
    /// Its text as prepared: without the values of its parameters.
    pub sql: String,
    /// What it has taken, with what it has waited; not what has passed between two of its rows.
    pub took: Duration,
    /// What it has waited for locks.
    pub waited: Duration,
    /// The steps of its plan (<https://sqlite.org/eqp.html>), each with how deep it stands in the tree; none of a
    /// statement that has no plan, or is prepared with an error by now.
    pub plan: Vec<(usize, String)>,
}

impl SlowStatement {
    pub(super) fn new(
        locked: &Locked<'_>,
        database: Option<&Path>,
        statement: &EndedStatement<'_>,
    ) -> Self {
        Self {
            database: database.map(Path::to_owned),
            sql: statement.sql.to_string_lossy().into_owned(),
            took: statement.took,
            waited: statement.waited,
            plan: locked
                .silently(|| plan(locked, statement.sql))
                .unwrap_or_default(),
        }
    }
}

/// The plan of a statement, with its parameters unbound.
fn plan(locked: &Locked<'_>, sql: &CStr) -> Option<Vec<(usize, String)>> {
    let sql = first_statement(sql.to_bytes());
    if !begins_with_one_of(sql, &HAVE_PLANS) {
        return None;
    }
    let sql = std::str::from_utf8(sql).ok()?;
    let explained = format!("EXPLAIN QUERY PLAN {sql}");
    let mut statement = locked.prepare(&explained, false).ok()?.statement?;
    // Each step says by number whose child it is; that of none is nobody's.
    let mut depths: Vec<(i64, usize)> = Vec::new();
    let mut steps = Vec::new();
    while statement.step(locked).ok()? == Step::Row {
        let row = statement.row(locked)?;
        let (ValueRef::Integer(id), ValueRef::Integer(parent)) =
            (row.get(0).ok()?, row.get(1).ok()?)
        else {
            return None;
        };
        let ValueRef::Text(text) = row.get(3).ok()? else {
            return None;
        };
        let above = depths.iter().rev().find(|(known, _)| *known == parent);
        let depth = above.map_or(0, |(_, depth)| depth + 1);
        depths.push((id, depth));
        steps.push((depth, String::from_utf8_lossy(text).into_owned()));
    }
    Some(steps)
}
