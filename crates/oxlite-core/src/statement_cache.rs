//! Prepared statements kept for the next time their SQL is executed, least recently used first out.
//!
//! A statement is *taken* while it is used and given back afterwards, so two cursors that run the
//! same SQL at once get two statements, and nobody ever shares one. SQLite re-prepares a kept
//! statement by itself when the schema has changed (`sqlite3_prepare_v3`).

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use oxlite_sqlite::{Locked, Statement};

/// Bound text and blobs of more than this many bytes are freed when a statement is given back;
/// smaller ones are left for the next binding to replace, which saves a call.
const KEPT_BINDINGS_BYTES: usize = 4096;

/// A prepared statement with what Oxlite knows about it.
pub struct CachedStatement {
    /// The statement itself.
    pub statement: Statement,
    /// Its text, under which it is kept.
    sql: Arc<str>,
    /// Whether it begins with INSERT, UPDATE, DELETE or REPLACE.
    pub is_data_modification: bool,
    /// How many bytes of text and blobs have been bound since it was taken.
    pub bound_bytes: usize,
    /// What the layer above keeps with the statement, such as its column descriptions.
    pub note: Option<Box<dyn Any + Send + Sync>>,
}

impl CachedStatement {
    pub(crate) fn new(statement: Statement, sql: &str) -> Self {
        Self {
            statement,
            sql: sql.into(),
            is_data_modification: crate::sql::is_data_modification(sql),
            bound_bytes: 0,
            note: None,
        }
    }

    /// The SQL text it was prepared from.
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

struct Kept {
    statement: CachedStatement,
    last_used: u64,
}

/// The statements at rest.
pub(crate) struct StatementCache {
    kept: HashMap<Arc<str>, Kept>,
    capacity: usize,
    clock: u64,
}

impl StatementCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            kept: HashMap::new(),
            capacity,
            clock: 0,
        }
    }

    /// Takes the statement for `sql` out, if one is at rest.
    pub(crate) fn take(&mut self, sql: &str) -> Option<CachedStatement> {
        self.kept.remove(sql).map(|kept| kept.statement)
    }

    /// Keeps a statement that has been reset; the longest unused one goes when there are too many.
    /// What goes is returned, for its drop may need the connection's lock.
    pub(crate) fn put(
        &mut self,
        mut cached: CachedStatement,
        locked: &Locked<'_>,
    ) -> Option<CachedStatement> {
        if self.capacity == 0 {
            return Some(cached);
        }
        if cached.bound_bytes > KEPT_BINDINGS_BYTES {
            cached.statement.clear_bindings(locked);
        }
        cached.bound_bytes = 0;
        self.clock += 1;
        let kept = Kept {
            last_used: self.clock,
            statement: cached,
        };
        let evicted = self.kept.insert(Arc::clone(&kept.statement.sql), kept);
        if self.kept.len() <= self.capacity {
            return evicted.map(|kept| kept.statement);
        }
        // A linear search, but only when something was prepared anew, which costs far more.
        let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.last_used)?;
        let oldest = Arc::clone(oldest.0);
        self.kept.remove(&oldest).map(|kept| kept.statement)
    }

    /// Lets go of every statement.
    pub(crate) fn clear(&mut self) -> Vec<CachedStatement> {
        self.kept.drain().map(|(_, kept)| kept.statement).collect()
    }
}

#[cfg(test)]
mod tests {
    use oxlite_sqlite::{Connection, OpenFlags};

    use super::*;

    fn prepare(locked: &Locked<'_>, sql: &str) -> CachedStatement {
        let prepared = locked.prepare(sql, true).expect("valid SQL");
        CachedStatement::new(prepared.statement.expect("a statement"), sql)
    }

    #[test]
    fn the_least_recently_used_statement_goes() {
        let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
        let locked = connection.lock().expect("open");
        let mut cache = StatementCache::new(2);
        for sql in ["SELECT 1", "SELECT 2"] {
            assert!(cache.put(prepare(&locked, sql), &locked).is_none());
        }
        let first = cache.take("SELECT 1").expect("kept");
        assert!(
            cache.take("SELECT 1").is_none(),
            "a statement is never shared"
        );
        assert!(cache.put(first, &locked).is_none());
        let evicted = cache
            .put(prepare(&locked, "SELECT 3"), &locked)
            .expect("one too many");
        assert_eq!(evicted.sql(), "SELECT 2");
        assert!(cache.take("SELECT 1").is_some());
        assert!(cache.take("SELECT 3").is_some());
    }

    #[test]
    fn capacity_zero_keeps_nothing() {
        let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
        let locked = connection.lock().expect("open");
        let mut cache = StatementCache::new(0);
        assert!(cache.put(prepare(&locked, "SELECT 1"), &locked).is_some());
        assert!(cache.take("SELECT 1").is_none());
    }
}
