//! The table of notifications: how it is made, written, read and kept short.
//!
//! Invariants:
//! - Any program can insert into it, however old its SQLite: defaults, checks and trigger need nothing new.
//! - What is too old is deleted by the table itself, whoever inserts; the newest is never deleted.
//! - Its names are fixed, and what they mean: other programs and triggers use them.

use std::path::Path;
use std::sync::Arc;

use oxlite_sqlite::{Locked, Step, Value, ValueRef, codes};

use super::channel::Channel;
use super::position::Epoch;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::request::{Announcement, Parameters, Request};
use crate::signals::{Signals, Topic};

/// The largest payload, in bytes.
pub const PAYLOAD_BYTES_AT_MOST: usize = 1 << 20;

/// How a notification is inserted: its channel and its payload.
pub const INSERT: &str = "INSERT INTO main.oxlite_notification (channel, payload) VALUES (?, ?)";

/// 100,000 notifications are kept, for a day. Every 256th looks for those that are to go: from the beginning to
/// the first that stays.
///
/// Where the table was dropped its numbers come again: that is another epoch. The limits of lengths are twice those of
/// the API: a database may be UTF-16.
const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS main.oxlite_notification_epoch (
  key TEXT NOT NULL
);
DELETE FROM main.oxlite_notification_epoch WHERE NOT EXISTS
  (SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'oxlite_notification');
CREATE TABLE IF NOT EXISTS main.oxlite_notification (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  channel TEXT NOT NULL
    CHECK (typeof(channel) = 'text' AND length(CAST(channel AS BLOB)) BETWEEN 1 AND 510),
  payload TEXT CHECK (length(CAST(payload AS BLOB)) <= 2097152),
  created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);
CREATE TRIGGER IF NOT EXISTS main.oxlite_notification_prune AFTER INSERT ON oxlite_notification
WHEN new.id % 256 = 0
BEGIN
  DELETE FROM oxlite_notification WHERE id < new.id AND id < max(new.id - 100000, coalesce(
    (SELECT id FROM oxlite_notification
     WHERE created_at >= CAST((julianday('now') - 2440588.5) * 86400000 AS INTEGER)
     ORDER BY id LIMIT 1), new.id));
END;
INSERT INTO main.oxlite_notification_epoch (key)
SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM main.oxlite_notification_epoch);
";

/// Fails where either table is missing.
const EPOCH: &str = "SELECT key, (SELECT id FROM main.oxlite_notification LIMIT 0) FROM main.oxlite_notification_epoch";

const TABLE: &str =
    "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'oxlite_notification'";

/// What is known of the table beside its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) epoch: Epoch,
    /// The number of the latest notification that there ever was; 0 if there was none.
    pub(super) latest: i64,
    /// That of the first that is kept; one more than the latest if none is.
    pub(super) first_kept: i64,
}

/// Whether an error says that the table is not there.
pub fn is_missing(error: &oxlite_sqlite::Error) -> bool {
    error.primary_code() == codes::SQLITE_ERROR
        && error
            .message()
            .contains("no such table: main.oxlite_notification")
}

/// Whether the table is there.
pub(super) fn is_prepared(connection: &Connection, locked: &Locked<'_>) -> Result<bool> {
    match one_row(connection, locked, EPOCH, |_row| Ok(())) {
        Ok(found) => Ok(found.is_some()),
        Err(Error::Sqlite(error)) if is_missing(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes the table if it is not there, in the transaction that is open or in one of its own.
pub fn prepare(connection: &Connection, locked: &Locked<'_>) -> Result<()> {
    if is_prepared(connection, locked)? {
        return Ok(());
    }
    let is_own = locked.is_autocommit();
    if is_own {
        connection.run(locked, "BEGIN IMMEDIATE")?;
    }
    let outcome = connection.run_script(locked, SCHEMA, false);
    if !is_own {
        return outcome;
    }
    let outcome = outcome.and_then(|()| connection.run(locked, "COMMIT"));
    if outcome.is_err() && !locked.is_autocommit() {
        // If even this fails, the next BEGIN does, which says why.
        let _ = connection.run(locked, "ROLLBACK");
    }
    outcome
}

/// The request that notifies, and tells whoever listens when it is committed.
pub fn notifying(
    channel: &Channel,
    payload: Value,
    signals: Option<Arc<Signals>>,
) -> Result<Request> {
    check_payload(payload.as_ref())?;
    let announces = signals.map(|signals| Announcement::of(channel, signals));
    Ok(Request {
        sql: INSERT.into(),
        sets: vec![Parameters::Positional(vec![
            Value::Text(channel.name().as_bytes().into()),
            payload,
        ])],
        is_many: false,
        announces,
    })
}

/// Refuses a payload that is too long, or is neither text nor bytes.
pub fn check_payload(payload: ValueRef<'_>) -> Result<()> {
    let length = match payload {
        ValueRef::Null => 0,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Integer(_) | ValueRef::Real(_) => {
            return Err(Error::Type("a payload is text or bytes".into()));
        }
    };
    if length > PAYLOAD_BYTES_AT_MOST {
        return Err(Error::Value(format!(
            "a payload has at most {PAYLOAD_BYTES_AT_MOST} bytes, not {length}: put what is larger into a table, and \
             its key into the payload"
        )));
    }
    Ok(())
}

/// Signals the topics when the transaction that is open has been committed.
pub fn announce(locked: &Locked<'_>, topics: Vec<Topic>, signals: Arc<Signals>) {
    locked.when_transaction_has_ended(move || signals.signal(&topics));
}

/// Tables of other parts of Oxlite whose new rows are signalled though their writer has not: a query with the number
/// that was the latest, whose rows are a number and a topic; what it says while there is no such table; and the topic of
/// all who read it, signalled as well where the table is no more. A row with a lower number says that numbers have begun
/// again.
const SIGNALLED: [(&str, &str, &str); 2] = [
    (
        "SELECT max(id), 'oxlite.cable.' || queue FROM main.oxlite_cable_message WHERE id > ?1 GROUP BY queue \
         UNION ALL \
         SELECT seq, 'oxlite.cable.' FROM main.sqlite_sequence WHERE name = 'oxlite_cable_message' AND seq < ?1",
        "no such table: main.oxlite_cable_message",
        "oxlite.cable.",
    ),
    (
        "SELECT id, 'oxlite.tasks' FROM \
           (SELECT id FROM main.oxlite_task WHERE id > ?1 ORDER BY id DESC LIMIT 1) \
         UNION ALL \
         SELECT seq, 'oxlite.tasks' FROM main.sqlite_sequence WHERE name = 'oxlite_task' AND seq < ?1",
        "no such table: main.oxlite_task",
        "oxlite.tasks",
    ),
];

/// The latest number of each such table that was looked at.
pub(super) type Looked = [i64; SIGNALLED.len()];

/// The topics of the rows that have come to such tables since, whose numbers are noted.
pub(super) fn topics_after(
    connection: &Connection,
    locked: &Locked<'_>,
    looked: &mut Looked,
) -> Result<Vec<Topic>> {
    let mut topics = Vec::new();
    for ((sql, missing, all), latest) in SIGNALLED.iter().zip(looked) {
        let after = *latest;
        let outcome = each_row(connection, locked, sql, after, |row| {
            let number = integer(row.get(0)?);
            *latest = if number < after {
                number
            } else {
                number.max(*latest)
            };
            if let ValueRef::Text(name) = row.get(1)? {
                topics.push(Topic::named(&String::from_utf8_lossy(name)));
            }
            Ok(true)
        });
        match outcome {
            // It may be made anew, and count from the beginning.
            Err(Error::Sqlite(error)) if error.message().contains(missing) => {
                if std::mem::take(latest) > 0 {
                    topics.push(Topic::named(all));
                }
            }
            outcome => outcome?,
        }
    }
    Ok(topics)
}

/// What there is now; `None` where there is no table yet.
pub(super) fn state(
    connection: &Connection,
    locked: &Locked<'_>,
    path: &Path,
) -> Result<Option<State>> {
    let found = state_if_there(connection, locked, path)?;
    if found.is_some() || one_row(connection, locked, TABLE, |_row| Ok(()))?.is_none() {
        return Ok(found);
    }
    // Somebody has made both just now; else, without the other one, nobody can tell which history it is.
    match state_if_there(connection, locked, path)? {
        None => Err(altered()),
        found => Ok(found),
    }
}

/// The same; `None` where either table is missing.
fn state_if_there(
    connection: &Connection,
    locked: &Locked<'_>,
    path: &Path,
) -> Result<Option<State>> {
    let found = one_row(
        connection,
        locked,
        // The larger of the two: somebody may have emptied the table of the latest numbers.
        "SELECT e.key, \
                max(coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 'oxlite_notification'), 0), \
                    coalesce((SELECT max(id) FROM main.oxlite_notification), 0)), \
                (SELECT min(id) FROM main.oxlite_notification) \
         FROM main.oxlite_notification_epoch e",
        |row| {
            let key = text(row.get(0)?);
            let latest = integer(row.get(1)?);
            let first_kept = match row.get(2)? {
                ValueRef::Integer(first) => first,
                _ => latest.saturating_add(1),
            };
            Ok((key, latest, first_kept))
        },
    );
    match found {
        Ok(Some((key, latest, first_kept))) => Ok(Some(State {
            epoch: Epoch::of(path, &key)?,
            latest,
            first_kept,
        })),
        Ok(None) => Err(altered()),
        Err(Error::Sqlite(error)) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn altered() -> Error {
    Error::Programming(
        "somebody has dropped or emptied the table oxlite_notification_epoch: which notifications are new is not \
         known. Listen again"
            .into(),
    )
}

/// Calls `give` with the number, channel and payload of each notification after that number, in their order,
/// until it says `false`; before the first of them, `begin` with the key of their history, in the same way.
pub(super) fn read_after(
    connection: &Connection,
    locked: &Locked<'_>,
    number: i64,
    begin: impl FnOnce(&str) -> bool,
    mut give: impl FnMut(i64, &str, ValueRef<'_>) -> bool,
) -> Result<()> {
    // The key is read by the same statement, so in the same snapshot.
    const SQL: &str = "SELECT id, channel, payload, (SELECT key FROM main.oxlite_notification_epoch) \
                       FROM main.oxlite_notification WHERE id > ? ORDER BY id";
    let mut begin = Some(begin);
    let outcome = each_row(connection, locked, SQL, number, |row| {
        if let Some(begin) = begin.take()
            && !begin(&text(row.get(3)?))
        {
            return Ok(false);
        }
        let channel = match row.get(1)? {
            ValueRef::Text(name) => String::from_utf8_lossy(name),
            // Only who has turned the checks off puts anything else there.
            _ => return Ok(true),
        };
        Ok(give(integer(row.get(0)?), &channel, row.get(2)?))
    });
    match outcome {
        Err(Error::Sqlite(error)) if is_missing(&error) => Ok(()),
        outcome => outcome,
    }
}

/// Calls `take` with each row of a query with one parameter, until it says `false`.
fn each_row(
    connection: &Connection,
    locked: &Locked<'_>,
    sql: &str,
    number: i64,
    mut take: impl FnMut(&oxlite_sqlite::Row<'_>) -> oxlite_sqlite::Result<bool>,
) -> Result<()> {
    let Some(mut cached) = connection.statement(locked, sql)? else {
        return Ok(());
    };
    let mut read = || -> oxlite_sqlite::Result<()> {
        cached
            .statement
            .bind(locked, 1, ValueRef::Integer(number))?;
        while cached.statement.step(locked)? == Step::Row {
            let Some(row) = cached.statement.row(locked) else {
                break;
            };
            if !take(&row)? {
                break;
            }
        }
        Ok(())
    };
    let outcome = read();
    // It may have stopped between two rows, and keep a snapshot.
    let _ = cached.statement.reset(locked);
    connection.keep(cached, locked);
    outcome.map_err(|error| connection.explain(locked, error))
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

fn integer(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::Integer(value) => value,
        _ => 0,
    }
}

/// The first row of a query, as `take` has it.
fn one_row<T>(
    connection: &Connection,
    locked: &Locked<'_>,
    sql: &str,
    take: impl FnOnce(&oxlite_sqlite::Row<'_>) -> oxlite_sqlite::Result<T>,
) -> Result<Option<T>> {
    let Some(mut cached) = connection.statement(locked, sql)? else {
        return Ok(None);
    };
    let read = || match cached.statement.step(locked)? {
        Step::Row => cached
            .statement
            .row(locked)
            .map(|row| take(&row))
            .transpose(),
        Step::Done => Ok(None),
    };
    let outcome = read();
    let _ = cached.statement.reset(locked);
    connection.keep(cached, locked);
    outcome.map_err(|error| connection.explain(locked, error))
}
