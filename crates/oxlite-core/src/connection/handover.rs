//! A connection handed over to its next user: the database stays open, its statements stay prepared, its functions
//! registered; for the one before it is closed.
//!
//! Invariants:
//! - Whoever has handed it over is refused from then on, as by a closed connection: that is noted under its lock,
//!   and looked at under it.
//! - The next one finds nothing of what the one before has done, but for what no SQLite can take back:
//!   `total_changes()`, `changes()`, and what `PRAGMA data_version` counts. What is not known to be undone
//!   keeps it from being handed over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxlite_sqlite::{Locked, Step, ValueRef};

use super::Connection;
use crate::error::Result;

const HAS_TEMPORARY_TABLES: &str = "SELECT 1 FROM sqlite_temp_schema LIMIT 1";

/// Whether a connection is as it was prepared.
#[derive(Default)]
pub(super) struct Changes {
    has_changed: AtomicBool,
    /// Whether it refused to write when it was prepared, which is asked for and taken back for each transaction
    /// that only reads.
    was_query_only: AtomicBool,
}

impl Changes {
    #[inline]
    pub(super) fn note(&self) {
        self.has_changed.store(true, Ordering::Relaxed);
    }
}

impl Connection {
    /// As it is now it is to be handed over: what was set until now is done again by whoever has it next, or stays.
    /// Whether it refuses to write.
    pub fn note_prepared(&self, locked: &Locked<'_>) -> Result<bool> {
        let was_query_only = self.answer(locked, "PRAGMA query_only")? == Some(1);
        let changes = &self.changes;
        changes
            .was_query_only
            .store(was_query_only, Ordering::Relaxed);
        changes.has_changed.store(false, Ordering::Relaxed);
        Ok(was_query_only)
    }

    /// Hands it over, if nothing stands against that: an open transaction is rolled back, reads in the middle of
    /// their rows are ended. `None` if it had better be closed.
    pub fn hand_over(&self, locked: Locked<'_>) -> Option<Self> {
        if !locked.end_reads() {
            return None;
        }
        let locked = self.lock().ok()?;
        if !locked.is_autocommit() && self.run(&locked, "ROLLBACK").is_err() {
            return None;
        }
        if !self.is_as_prepared(&locked) {
            return None;
        }
        let was_query_only = self.changes.was_query_only.load(Ordering::Relaxed);
        locked.refuse_writes(false).ok()?;
        locked.set_query_only(was_query_only).ok()?;
        locked.set_last_insert_rowid(0);
        let _until_then = self.interrupting.lock();
        self.is_over.store(true, Ordering::Relaxed);
        Some(Self::of(Arc::clone(&self.physical)))
    }

    fn is_as_prepared(&self, locked: &Locked<'_>) -> bool {
        let is_poisoned = || {
            let shared = self.shared.lock().clone();
            shared.is_some_and(|shared| shared.is_poisoned())
        };
        !self.changes.has_changed.load(Ordering::Relaxed)
            && !self.is_in_doubt()
            && locked.path().is_some()
            && !locked.is_in_use()
            && !locked.has_backups()
            && !locked.has_sessions()
            && !locked.has_attached()
            && !is_poisoned()
            && matches!(self.answer(locked, HAS_TEMPORARY_TABLES), Ok(None))
    }

    /// The number in the first row of a statement of ours; `None` if there is no row.
    fn answer(&self, locked: &Locked<'_>, sql: &str) -> Result<Option<i64>> {
        locked.silently(|| {
            let Some(mut cached) = self.statement(locked, sql)? else {
                return Ok(None);
            };
            let outcome = cached.statement.step(locked).and_then(|step| match step {
                Step::Done => Ok(None),
                Step::Row => {
                    let Some(row) = cached.statement.row(locked) else {
                        return Ok(None);
                    };
                    Ok(match row.get(0)? {
                        ValueRef::Integer(number) => Some(number),
                        _ => None,
                    })
                }
            });
            let _ = cached.statement.reset(locked); // it tells of the step once more
            self.keep(cached, locked);
            outcome.map_err(|error| self.explain(locked, error))
        })
    }
}
