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
use crate::signals::Signals;

/// The largest payload, in bytes.
pub const PAYLOAD_BYTES_AT_MOST: usize = 1 << 20;

/// How a notification is inserted: its channel and its payload.
pub const INSERT: &str = "INSERT INTO oxlite_notification (channel, payload) VALUES (?, ?)";

/// 100,000 notifications are kept, for a day. Every 256th looks for those that are to go: from the beginning to
/// the first that stays.
///
/// Where the table was dropped its numbers come again: that is another epoch.
const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS oxlite_notification_epoch (
  key TEXT NOT NULL,
  can_lose_commits INTEGER NOT NULL
);
DELETE FROM oxlite_notification_epoch WHERE NOT EXISTS
  (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'oxlite_notification');
CREATE TABLE IF NOT EXISTS oxlite_notification (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  channel TEXT NOT NULL
    CHECK (typeof(channel) = 'text' AND length(CAST(channel AS BLOB)) BETWEEN 1 AND 255),
  payload TEXT CHECK (length(CAST(payload AS BLOB)) <= 1048576),
  created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);
CREATE TRIGGER IF NOT EXISTS oxlite_notification_prune AFTER INSERT ON oxlite_notification
WHEN new.id % 256 = 0
BEGIN
  DELETE FROM oxlite_notification WHERE id < new.id AND id < max(new.id - 100000, coalesce(
    (SELECT id FROM oxlite_notification
     WHERE created_at >= CAST((julianday('now') - 2440588.5) * 86400000 AS INTEGER)
     ORDER BY id LIMIT 1), new.id));
END;
INSERT INTO oxlite_notification_epoch (key, can_lose_commits)
SELECT lower(hex(randomblob(8))), 0 WHERE NOT EXISTS (SELECT 1 FROM oxlite_notification_epoch);
";

/// Fails where either table is missing.
const EPOCH: &str = "SELECT key, can_lose_commits, (SELECT id FROM oxlite_notification LIMIT 0) \
                     FROM oxlite_notification_epoch";
const CAN_LOSE: &str = "UPDATE oxlite_notification_epoch SET can_lose_commits = 1";

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
            .contains("no such table: oxlite_notification")
}

/// Makes the table if it is not there, in the transaction that is open or in one of its own; and notes there that
/// commits can be lost with the power if this connection's can.
pub fn prepare(connection: &Connection, locked: &Locked<'_>) -> Result<()> {
    let can_lose = can_lose_commits(connection, locked)?;
    let known = one_row(connection, locked, EPOCH, |row| {
        Ok(integer(row.get(1)?) != 0)
    });
    let is_done = match known {
        Ok(Some(known)) => known || !can_lose,
        Ok(None) => false,
        Err(Error::Sqlite(error)) if is_missing(&error) => false,
        Err(error) => return Err(error),
    };
    if is_done {
        return Ok(());
    }
    let is_own = locked.is_autocommit();
    if is_own {
        connection.run(locked, "BEGIN IMMEDIATE")?;
    }
    let mut outcome = connection.run_script(locked, SCHEMA, false);
    if outcome.is_ok() && can_lose {
        outcome = connection.run(locked, CAN_LOSE);
    }
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

/// Whether a power cut may take back what this connection has committed.
fn can_lose_commits(connection: &Connection, locked: &Locked<'_>) -> Result<bool> {
    let shares = connection.shared_commit_statistics();
    if shares.is_some_and(|shared| shared.shared_commit_unavailable.is_none()) {
        return Ok(false);
    }
    let synchronous = one_row(connection, locked, "PRAGMA synchronous", |row| {
        Ok(integer(row.get(0)?))
    })?;
    Ok(synchronous.is_none_or(|synchronous| synchronous < 2))
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

/// Tells whoever listens to `channel` when the transaction that is open has been committed.
pub fn announce(locked: &Locked<'_>, channel: &Channel, signals: Arc<Signals>) {
    let topics = channel.topics();
    locked.when_transaction_has_ended(move || signals.signal(&topics));
}

/// What there is now; `None` where there is no table yet.
pub(super) fn state(
    connection: &Connection,
    locked: &Locked<'_>,
    path: &Path,
) -> Result<Option<State>> {
    let found = one_row(
        connection,
        locked,
        "SELECT e.key, e.can_lose_commits, \
                coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'oxlite_notification'), 0), \
                (SELECT min(id) FROM oxlite_notification) \
         FROM oxlite_notification_epoch e",
        |row| {
            let key = match row.get(0)? {
                ValueRef::Text(key) => String::from_utf8_lossy(key).into_owned(),
                _ => String::new(),
            };
            let latest = integer(row.get(2)?);
            let first_kept = match row.get(3)? {
                ValueRef::Integer(first) => first,
                _ => latest + 1,
            };
            Ok(State {
                epoch: Epoch::of(path, &key, integer(row.get(1)?) != 0),
                latest,
                first_kept,
            })
        },
    );
    match found {
        Err(Error::Sqlite(error)) if is_missing(&error) => Ok(None),
        found => found,
    }
}

/// Calls `give` with the number, channel and payload of each notification after that number, in their order,
/// until it says `false`.
pub(super) fn read_after(
    connection: &Connection,
    locked: &Locked<'_>,
    number: i64,
    mut give: impl FnMut(i64, &str, ValueRef<'_>) -> bool,
) -> Result<()> {
    const SQL: &str =
        "SELECT id, channel, payload FROM oxlite_notification WHERE id > ? ORDER BY id";
    let failed = |error| connection.explain(locked, error);
    let statement = match connection.statement(locked, SQL) {
        Err(Error::Sqlite(error)) if is_missing(&error) => return Ok(()),
        statement => statement?,
    };
    let Some(mut cached) = statement else {
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
            let channel = match row.get(1)? {
                ValueRef::Text(name) => String::from_utf8_lossy(name),
                // Only who has turned the checks off puts anything else there.
                _ => continue,
            };
            if !give(integer(row.get(0)?), &channel, row.get(2)?) {
                break;
            }
        }
        Ok(())
    };
    let outcome = read();
    // It may have stopped between two rows, and keep a snapshot.
    let _ = cached.statement.reset(locked);
    connection.keep(cached, locked);
    outcome.map_err(failed)
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
