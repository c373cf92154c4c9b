//! The policy of Oxlite, without Python: how a database is opened and tuned, how locks are waited
//! for, which statements are kept, when a transaction begins.
//!
//! Bird's-eye view: [`Connection::open`] takes [`OpenOptions`], which name a [`Profile`]; it waits
//! for locks by a [`BusyPolicy`], applies the profile's pragmas, reads every one of them back, and
//! keeps prepared statements in a least-recently-used cache.
//!
//! No unsafe code here: SQLite is reached through `oxlite-sqlite`, the operating system through
//! `rustix`.
//!
//! # For crates that depend on this one
//!
//! SQLite's compile-time options come from `LIBSQLITE3_FLAGS` in *your* workspace's
//! `.cargo/config.toml`; Cargo does not pass ours on. Copy the list from this repository, or you get
//! the bundled defaults (see the documentation of `oxlite-sqlite`).
//!
//! ```
//! use oxlite_core::{Connection, OpenOptions, Profile, ValueRef};
//!
//! let connection = Connection::open(&OpenOptions::new(":memory:", Profile::named("web")?)?)?;
//! let locked = connection.lock().expect("it is open");
//! let mut statement = connection.statement(&locked, "SELECT 6 * 7")?.expect("not empty");
//! statement.statement.step(&locked)?;
//! let row = statement.statement.row(&locked).expect("one row");
//! assert_eq!(row.get(0)?, ValueRef::Integer(42));
//! # Ok::<(), oxlite_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod bell;
mod busy;
mod cannot_open;
mod connection;
mod deadline;
mod dispatcher;
mod error;
mod group_commit;
mod nearest;
mod options;
mod per_file;
mod per_process;
mod pool;
mod pragma;
mod processes;
mod profile;
mod queue;
mod shared_commit;
mod sql;
mod statement_cache;
mod sync;
mod text;
mod transaction;
mod turns;
mod uri;
mod wal;
mod workers;

pub use oxlite_sqlite::{
    Checkpoint, CheckpointMode, Condvar, LockError, Locked, Mutex, MutexGuard, OtherUsers, Step,
    Value, ValueRef, fork_generation,
};

pub use bell::Bell;
pub use busy::{BusyHandler, BusyPolicy};
pub use connection::{Connection, Ticket};
pub use deadline::{Deadline, Stretch};
pub use dispatcher::{Borrower, Dispatcher, DispatcherStatistics, Place, Refusal, Wanted};
pub use error::{Error, Result};
pub use group_commit::{
    Answer, Batch, Line, LineError, LineStatistics, MayBegin, NO_ROWID, Outcome, Parameters,
    Request, Submitted, Unanswered, run_batch, run_batch_unsettled, run_query, run_read,
};
pub use options::{DurableCommit, JournalChoice, OpenOptions, timeout_from_seconds};
pub use per_process::PerProcess;
pub use pool::{Pool, PoolError, PoolStatistics};
pub use pragma::PragmaValue;
pub use profile::{JournalConversion, PROFILES, Profile, Setting};
pub use queue::{Holder, PidNamespace, QueueStatistics};
pub use shared_commit::{SharedCommitGroup, SharedCommitStatistics, shared_commit_group};
pub use sql::StatementKind;
pub use statement_cache::CachedStatement;
pub use text::harmless;
pub use transaction::{IsolationLevel, TransactionControl};
pub use turns::Turns;
pub use wal::{REPEATED, WalStatistics, checkpoint_mode};
