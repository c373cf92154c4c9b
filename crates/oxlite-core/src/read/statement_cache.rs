//! Prepared statements kept for the next time their SQL is executed, least recently used first out.
//!
//! A statement is *taken* while it is used and given back afterwards, so two cursors that run the
//! same SQL at once get two statements, and nobody ever shares one. SQLite re-prepares a kept
//! statement by itself when the schema has changed (`sqlite3_prepare_v3`).

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use oxlite_sqlite::{Locked, Statement};

use crate::read::scripts::Scripts;
use crate::read::sql::StatementKind;

/// Bound text and blobs of more than this many bytes are freed when a statement is given back;
/// smaller ones are left for the next binding to replace, which saves a call.
const KEPT_BINDINGS_BYTES: usize = 4096;

/// For so many texts it is remembered where they are kept, by where they stand in memory.
const REMEMBERED: usize = 16;

/// A prepared statement with what Oxlite knows about it.
pub struct CachedStatement {
    /// The statement itself.
    pub statement: Statement,
    /// Its text, under which it is kept.
    sql: Arc<str>,
    /// Where it was kept last.
    slot: Option<usize>,
    /// What it is for.
    pub kind: StatementKind,
    /// Whether some of its parameters have names (`:name`, `@name`, `$name`).
    pub has_named_parameters: bool,
    /// How many bytes of text and blobs have been bound since it was taken.
    pub bound_bytes: usize,
    /// What the layer above keeps with the statement, such as its column descriptions.
    pub note: Option<Box<dyn Any + Send + Sync>>,
}

impl CachedStatement {
    pub(crate) fn new(statement: Statement, sql: &str, locked: &Locked<'_>) -> Box<Self> {
        let has_named_parameters = (1..=statement.parameter_count()).any(|index| {
            let name = statement.parameter_name(locked, index);
            name.is_some_and(|name| !name.starts_with('?'))
        });
        Box::new(Self {
            statement,
            has_named_parameters,
            sql: sql.into(),
            slot: None,
            kind: StatementKind::of(sql),
            bound_bytes: 0,
            note: None,
        })
    }

    /// Whether it begins with INSERT, UPDATE, DELETE or REPLACE.
    #[inline]
    pub fn is_data_modification(&self) -> bool {
        self.kind == StatementKind::DataModification
    }

    /// Finalises it now.
    #[cold]
    pub(crate) fn finalize(self, locked: &Locked<'_>) {
        let Self {
            statement, note, ..
        } = self;
        statement.finalize(locked);
        drop(note);
    }

    /// The SQL text it was prepared from.
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

/// A place in the cache. It stays reserved for its SQL while the statement is taken.
struct Slot {
    sql: Arc<str>,
    at_rest: Option<Box<CachedStatement>>,
    last_used: u64,
}

/// The statements at rest.
pub(crate) struct StatementCache {
    slots: Vec<Slot>,
    by_sql: HashMap<Arc<str>, usize, RandomState>,
    /// Where the text was kept that stood at an address, last time. The same text most often stands
    /// where it did, and comparing it with one other is quicker than its hash.
    remembered: [usize; REMEMBERED],
    capacity: usize,
    clock: u64,
    /// Scripts, which have their statements for themselves.
    pub(crate) scripts: Scripts,
}

impl StatementCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            slots: Vec::new(),
            by_sql: HashMap::default(),
            remembered: [0; REMEMBERED],
            capacity,
            clock: 0,
            scripts: Scripts::default(),
        }
    }

    /// Takes the statement for `sql` out, if one is at rest.
    #[inline]
    pub(crate) fn take(&mut self, sql: &str) -> Option<Box<CachedStatement>> {
        // Whatever allocates memory for texts aligns it to that.
        let remembered = &mut self.remembered[(sql.as_ptr().addr() / 16) % REMEMBERED];
        if let Some(slot) = self.slots.get_mut(*remembered)
            && *slot.sql == *sql
        {
            return slot.at_rest.take();
        }
        *remembered = *self.by_sql.get(sql)?;
        self.slots[*remembered].at_rest.take()
    }

    /// Keeps a statement that has been reset; the longest unused one goes when there are too many.
    /// What goes is returned, for its drop may need the connection's lock.
    #[inline]
    pub(crate) fn put(
        &mut self,
        mut cached: Box<CachedStatement>,
        locked: &Locked<'_>,
    ) -> Option<Box<CachedStatement>> {
        if cached.bound_bytes > KEPT_BINDINGS_BYTES {
            cached.statement.clear_bindings(locked);
        }
        cached.bound_bytes = 0;
        self.clock += 1;
        let index = match cached.slot {
            Some(index) if self.holds(index, &cached.sql) => index,
            _ => match self.slot_for(&cached.sql) {
                Some(index) => index,
                None => return Some(cached),
            },
        };
        cached.slot = Some(index);
        let slot = &mut self.slots[index];
        slot.last_used = self.clock;
        slot.at_rest.replace(cached)
    }

    /// Whether the slot is still reserved for this very text.
    #[inline]
    fn holds(&self, index: usize, sql: &Arc<str>) -> bool {
        let slot = self.slots.get(index);
        slot.is_some_and(|slot| Arc::ptr_eq(&slot.sql, sql))
    }

    /// The slot for `sql`: its own, a new one, or the least recently used one; none if the capacity
    /// is zero.
    fn slot_for(&mut self, sql: &Arc<str>) -> Option<usize> {
        if let Some(index) = self.by_sql.get(sql) {
            return Some(*index);
        }
        let index = if self.slots.len() < self.capacity {
            self.slots.push(Slot {
                sql: Arc::clone(sql),
                at_rest: None,
                last_used: 0,
            });
            self.slots.len() - 1
        } else {
            // A linear search, but only after preparing anew, which costs far more.
            let (index, slot) = self
                .slots
                .iter_mut()
                .enumerate()
                .min_by_key(|(_, slot)| slot.last_used)?;
            self.by_sql.remove(&slot.sql);
            slot.sql = Arc::clone(sql);
            index
        };
        self.by_sql.insert(Arc::clone(sql), index);
        Some(index)
    }

    /// How many statements it keeps.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Lets go of every statement.
    pub(crate) fn clear(&mut self) -> (Vec<CachedStatement>, Scripts) {
        self.by_sql.clear();
        let kept = self.slots.drain(..);
        let kept = kept.filter_map(|slot| slot.at_rest.map(|kept| *kept));
        (kept.collect(), std::mem::take(&mut self.scripts))
    }
}

#[cfg(test)]
mod tests {
    use oxlite_sqlite::{Connection, OpenFlags};

    use super::*;

    fn prepare(locked: &Locked<'_>, sql: &str) -> Box<CachedStatement> {
        let prepared = locked.prepare(sql, true).expect("valid SQL");
        CachedStatement::new(prepared.statement.expect("a statement"), sql, locked)
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
    fn a_text_is_told_from_another_that_stood_in_its_place() {
        let connection = Connection::open(c":memory:", OpenFlags::default()).expect("opens");
        let locked = connection.lock().expect("open");
        let mut cache = StatementCache::new(2);
        let mut text = *b"SELECT 1";
        for digit in *b"12341212" {
            text[7] = digit;
            let sql = std::str::from_utf8(&text).expect("ASCII");
            let kept = cache.take(sql);
            let cached = kept.unwrap_or_else(|| prepare(&locked, sql));
            assert_eq!(cached.sql(), sql);
            drop(cache.put(cached, &locked));
        }
        assert!(!cache.clear().0.is_empty());
        assert!(cache.take("SELECT 2").is_none());
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
