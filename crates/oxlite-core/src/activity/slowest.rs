//! The slowest statements of the last minute, each text once.
//!
//! Most statements are no match for those that are listed: they cost one look at the least of them.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oxlite_sqlite::{EndedStatement, Mutex, coarse_milliseconds};

use super::note::StatementActivity;
use crate::text::{cut, in_a_line};

/// How many are listed, and for how long.
const LISTED: usize = 5;
const LISTED_FOR_MS: u64 = 60_000;

/// No more of a text than this is told, in characters.
const TEXT_AT_MOST: usize = 160;

#[derive(Default)]
pub(super) struct Slowest {
    /// What a statement has to take to be listed, in nanoseconds.
    least_nanoseconds: AtomicU64,
    listed: Mutex<Vec<Slow>>,
}

struct Slow {
    sql: Box<CStr>,
    longest: Duration,
    /// What that one has waited.
    waited: Duration,
    count: u64,
    last_ms: u64,
}

impl Slowest {
    pub(super) fn note(&self, statement: &EndedStatement<'_>) {
        let took = u64::try_from(statement.took.as_nanos()).unwrap_or(u64::MAX);
        if took < self.least_nanoseconds.load(Ordering::Relaxed) {
            return;
        }
        let mut listed = self.listed.lock();
        let now_ms = coarse_milliseconds();
        match listed.iter_mut().find(|slow| *slow.sql == statement.sql) {
            Some(slow) => {
                slow.count += 1;
                slow.last_ms = now_ms;
                if statement.took >= slow.longest {
                    (slow.longest, slow.waited) = (statement.took, statement.waited);
                }
            }
            None => listed.push(Slow {
                sql: statement.sql.into(),
                longest: statement.took,
                waited: statement.waited,
                count: 1,
                last_ms: now_ms,
            }),
        }
        self.tidy(&mut listed);
    }

    /// Those of the last minute, the slowest first.
    pub(super) fn listed(&self, now_ms: u64) -> Vec<StatementActivity> {
        let mut listed = self.listed.lock();
        listed.retain(|slow| slow.last_ms + LISTED_FOR_MS >= now_ms);
        self.tidy(&mut listed);
        let told = listed.iter().map(|slow| StatementActivity {
            sql: cut(in_a_line(&slow.sql.to_string_lossy()), TEXT_AT_MOST),
            longest: slow.longest,
            waited: slow.waited,
            count: slow.count,
            last_ms: slow.last_ms,
        });
        told.collect()
    }

    pub(super) fn clear(&self) {
        let mut listed = self.listed.lock();
        listed.clear();
        self.tidy(&mut listed);
    }

    fn tidy(&self, listed: &mut Vec<Slow>) {
        listed.sort_by_key(|slow| std::cmp::Reverse(slow.longest));
        listed.truncate(LISTED);
        let least = match listed.get(LISTED - 1) {
            Some(slow) => u64::try_from(slow.longest.as_nanos()).unwrap_or(u64::MAX),
            None => 0,
        };
        self.least_nanoseconds.store(least, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(slowest: &Slowest, sql: &CStr, milliseconds: u64) {
        slowest.note(&EndedStatement {
            sql,
            took: Duration::from_millis(milliseconds),
            waited: Duration::ZERO,
        });
    }

    #[test]
    fn the_slowest_of_each_text_are_listed_for_a_minute() {
        let slowest = Slowest::default();
        let texts = [c"A", c"B", c"C", c"D", c"E", c"F", c"G"];
        for (text, took) in texts.into_iter().zip([5, 1, 7, 3, 6, 4, 2]) {
            note(&slowest, text, took);
        }
        note(&slowest, c"D", 9);
        note(&slowest, c"C", 1);
        let now_ms = coarse_milliseconds();
        let told: Vec<_> = slowest
            .listed(now_ms)
            .into_iter()
            .map(|told| (told.sql, told.longest.as_millis(), told.count))
            .collect();
        let expected = [
            ("D", 9, 2),
            ("C", 7, 1),
            ("E", 6, 1),
            ("A", 5, 1),
            ("F", 4, 1),
        ];
        assert_eq!(
            told,
            expected.map(|(sql, took, count)| (sql.into(), took, count))
        );

        assert!(slowest.listed(now_ms + LISTED_FOR_MS + 1000).is_empty());
        note(&slowest, c"B", 1);
        assert_eq!(
            slowest.listed(now_ms).len(),
            1,
            "what is quick is listed again"
        );
    }
}
