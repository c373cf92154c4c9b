//! One statement, complete with its parameters, and what has come of it: a read, or a write that may be
//! committed together with others.
//!
//! Invariants:
//! - A request owns all that it needs, so another thread can run it.
//! - It can be run again: its parameters are only read.

use std::fmt;
use std::sync::Arc;

use oxlite_sqlite::{Locked, Step, Value, ValueRef, begins_with_one_of};

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::notifications::Channel;
use crate::read::statement_cache::CachedStatement;
use crate::signals::{Signals, Topic};

/// No row id that an insert would give in practice: tells whether there was one.
pub const NO_ROWID: i64 = i64::MIN;

/// The values of one execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// By position.
    Positional(Vec<Value>),
    /// By name, without the prefix; more than the statement has may be given.
    Named(Vec<(Box<str>, Value)>),
}

/// One statement to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its text.
    pub sql: Box<str>,
    /// The parameters of each execution. All of them succeed or none.
    pub sets: Vec<Parameters>,
    /// Whether rows are discarded, as with `executemany`; then the counts are added up.
    pub is_many: bool,
    /// What is signalled when it has been committed.
    pub announces: Option<Announcement>,
}

/// What is to be signalled, of which database.
#[derive(Clone)]
pub struct Announcement {
    signals: Arc<Signals>,
    topics: Topics,
}

#[derive(Clone, Debug, PartialEq)]
enum Topics {
    Known(Box<[Topic]>),
    /// Each row of the answer has the end of a topic's name in its first column; this is the beginning of all.
    OfRows(Box<str>),
}

impl Announcement {
    /// Of a notification in `channel`.
    pub fn of(channel: &Channel, signals: Arc<Signals>) -> Self {
        Self {
            signals,
            topics: Topics::Known(channel.topics().into()),
        }
    }

    /// Of the topics that the rows of the answer name in their first column, each after `prefix`.
    pub fn of_rows(prefix: &str, signals: Arc<Signals>) -> Self {
        Self {
            signals,
            topics: Topics::OfRows(prefix.into()),
        }
    }

    /// Signals when the transaction that is open has ended.
    fn follow(&self, locked: &Locked<'_>, answer: &Answer) {
        let topics: Box<[Topic]> = match &self.topics {
            Topics::Known(topics) => topics.clone(),
            Topics::OfRows(prefix) => answer.topics(prefix),
        };
        if topics.is_empty() {
            return;
        }
        let signals = Arc::clone(&self.signals);
        locked.when_transaction_has_ended(move || signals.signal(&topics));
    }
}

impl PartialEq for Announcement {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.signals, &other.signals) && self.topics == other.topics
    }
}

impl fmt::Debug for Announcement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.topics.fmt(formatter)
    }
}

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Answer {
    /// Rows changed.
    pub rowcount: i64,
    /// The row id of its last insert; `None` if it inserted nothing.
    pub last_insert_rowid: Option<i64>,
    /// The names of the columns of RETURNING.
    pub columns: Vec<Box<[u8]>>,
    /// Its rows, one after the other.
    pub rows: Vec<Value>,
}

impl Request {
    /// Whether `sql` may be committed together with others, by its first keyword. What manages
    /// transactions, connections or the schema stands alone.
    pub fn can_join(sql: &str) -> bool {
        begins_with_one_of(
            sql.as_bytes(),
            &["INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"],
        )
    }

    /// Runs the statement with each set of parameters, in whatever transaction there is; to the end, or
    /// until there are so many rows.
    pub(crate) fn execute(
        &self,
        connection: &Connection,
        locked: &Locked<'_>,
        row_limit: Option<usize>,
    ) -> Result<Answer> {
        let Some(mut cached) = connection.statement(locked, &self.sql)? else {
            return Ok(Answer {
                rowcount: -1,
                ..Answer::default()
            });
        };
        let before = locked.last_insert_rowid();
        if self.is_many && cached.statement.is_read_only() {
            connection.keep(cached, locked);
            return Err(Error::Programming(
                "executemany() can only execute DML statements.".into(),
            ));
        }
        locked.set_last_insert_rowid(NO_ROWID);
        let outcome = self.execute_sets(connection, locked, &mut cached, row_limit);
        if outcome.is_err() || row_limit.is_some() {
            // It may have stopped between two rows.
            let _ = cached.statement.reset(locked);
        }
        connection.keep(cached, locked);
        let rowid = locked.last_insert_rowid();
        let has_inserted = rowid != NO_ROWID;
        if !has_inserted {
            locked.set_last_insert_rowid(before);
        }
        let mut answer = outcome?;
        if let Some(announces) = &self.announces {
            announces.follow(locked, &answer);
        }
        answer.last_insert_rowid = has_inserted.then_some(rowid);
        Ok(answer)
    }

    fn execute_sets(
        &self,
        connection: &Connection,
        locked: &Locked<'_>,
        cached: &mut CachedStatement,
        row_limit: Option<usize>,
    ) -> Result<Answer> {
        let failed = |error| connection.explain(locked, error);
        let mut answer = Answer::default();
        let mut rows = 0;
        for set in &self.sets {
            set.bind(cached, locked)
                .map_err(|error| error.or_explained(failed))?;
            while cached.statement.step(locked).map_err(failed)? == Step::Row {
                if !self.is_many {
                    answer.take_row(cached, locked).map_err(failed)?;
                }
                rows += 1;
                if row_limit == Some(rows) {
                    break;
                }
            }
            if cached.statement.is_read_only() {
                answer.rowcount = -1;
            } else {
                answer.rowcount += locked.changes();
            }
        }
        Ok(answer)
    }
}

/// Why parameters could not be bound.
enum Unbound {
    Ours(Error),
    Sqlite(oxlite_sqlite::Error),
}

impl Unbound {
    fn or_explained(self, explain: impl Fn(oxlite_sqlite::Error) -> Error) -> Error {
        match self {
            Self::Ours(error) => error,
            Self::Sqlite(error) => explain(error),
        }
    }
}

impl Parameters {
    fn bind(&self, cached: &mut CachedStatement, locked: &Locked<'_>) -> Result<(), Unbound> {
        let wanted = cached.statement.parameter_count();
        match self {
            Self::Positional(values) => {
                if values.len() != wanted {
                    return Err(Unbound::Ours(Error::wrong_count(wanted, values.len())));
                }
                for (position, value) in values.iter().enumerate() {
                    bind(cached, locked, position + 1, value.as_ref())?;
                }
            }
            Self::Named(values) => {
                for index in 1..=wanted {
                    let name = cached.statement.parameter_name(locked, index);
                    // `?2` goes by the name `2`; `?` has none.
                    let name = name
                        .and_then(|name| name.strip_prefix([':', '@', '$', '?']))
                        .ok_or_else(|| Unbound::Ours(Error::no_name(index)))?;
                    let value = values
                        .iter()
                        .find(|(known, _)| **known == *name)
                        .map(|(_, value)| value.as_ref())
                        .ok_or_else(|| Unbound::Ours(Error::no_value(name)))?;
                    bind(cached, locked, index, value)?;
                }
            }
        }
        Ok(())
    }
}

fn bind(
    cached: &mut CachedStatement,
    locked: &Locked<'_>,
    index: usize,
    value: ValueRef<'_>,
) -> Result<(), Unbound> {
    if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = value {
        cached.bound_bytes += bytes.len();
    }
    let bound = cached.statement.bind(locked, index, value);
    bound.map_err(Unbound::Sqlite)
}

impl Answer {
    /// The topics that are named in the first column, each once.
    fn topics(&self, prefix: &str) -> Box<[Topic]> {
        let names = self.rows.iter().step_by(self.columns.len().max(1));
        let mut topics: Vec<_> = names
            .filter_map(|name| match name {
                Value::Text(name) => std::str::from_utf8(name).ok(),
                _ => None,
            })
            .map(|name| Topic::named(&format!("{prefix}{name}")))
            .collect();
        topics.sort_unstable();
        topics.dedup();
        topics.into()
    }

    /// Keeps the row that is ready.
    fn take_row(
        &mut self,
        cached: &CachedStatement,
        locked: &Locked<'_>,
    ) -> oxlite_sqlite::Result<()> {
        let statement = &cached.statement;
        if self.columns.is_empty() {
            self.columns = (0..statement.column_count(locked))
                .map(|index| statement.column_name(locked, index).map(Into::into))
                .collect::<oxlite_sqlite::Result<_>>()?;
        }
        if let Some(row) = statement.row(locked) {
            for index in 0..row.len() {
                self.rows.push(row.get(index)?.into());
            }
        }
        Ok(())
    }
}
