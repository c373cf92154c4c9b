//! What stands between a connection and those who want to know what it does: whoever watches the database, and
//! the log of slow statements.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use oxlite_sqlite::{Attention, EndedStatement, Locked, Observer, TransactionState};

use super::Activity;
use super::slow_statements::{SlowStatement, SlowStatements};

/// Has what a connection does noted, if anybody may want to know.
pub(crate) fn observe(
    locked: &Locked<'_>,
    activity: Option<Arc<Activity>>,
    slow: Option<SlowStatements>,
) {
    if activity.is_some() || slow.is_some() {
        locked.set_observer(Box::new(Both {
            activity,
            slow: slow.map(|wanted| Slow {
                wanted,
                database: locked.path(),
                untold: RefCell::default(),
            }),
        }));
    }
}

struct Both {
    activity: Option<Arc<Activity>>,
    slow: Option<Slow>,
}

struct Slow {
    wanted: SlowStatements,
    database: Option<PathBuf>,
    /// Those of a transaction that has the write lock: they are told when it has ended, since telling takes time.
    untold: RefCell<Vec<SlowStatement>>,
}

/// No more of a transaction's slow statements than this are told.
const UNTOLD_AT_MOST: usize = 100;

impl Observer for Both {
    fn used(&self, now_ms: u64) -> Attention {
        let attention = match &self.activity {
            Some(activity) => activity.used(now_ms),
            None => Attention {
                next_ms: u64::MAX,
                times_statements: false,
            },
        };
        Attention {
            times_statements: attention.times_statements || self.slow.is_some(),
            ..attention
        }
    }

    fn ended(&self, locked: &Locked<'_>, statement: &EndedStatement<'_>) {
        if let Some(activity) = &self.activity {
            activity.note_statement(statement);
        }
        if let Some(slow) = &self.slow {
            slow.ended(locked, statement);
        }
    }
}

impl Slow {
    fn ended(&self, locked: &Locked<'_>, statement: &EndedStatement<'_>) {
        let is_slow = statement.took >= self.wanted.over;
        let mut untold = self.untold.borrow_mut();
        if is_slow && untold.len() < UNTOLD_AT_MOST {
            untold.push(SlowStatement::new(
                locked,
                self.database.as_deref(),
                statement,
            ));
        }
        if untold.is_empty() || locked.transaction_state() == TransactionState::Write {
            return;
        }
        let told = std::mem::take(&mut *untold);
        drop(untold); // who is told may use the connection
        locked.leave_write_queue();
        for statement in &told {
            (self.wanted.tell)(statement);
        }
    }
}
