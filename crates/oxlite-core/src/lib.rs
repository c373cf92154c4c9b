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

mod activity;
mod cache;
mod connection;
mod error;
mod file;
mod notifications;
mod open;
mod process;
mod read;
mod request;
mod signals;
mod sync;
mod text;
mod wait;
mod write;

pub use oxlite_sqlite::{
    Checkpoint, CheckpointMode, Condvar, LockError, Locked, Mutex, MutexGuard, OtherUsers, Step,
    Value, ValueRef, fork_generation,
};

pub use activity::{
    ActivityWatcher, ProcessActivity, ReadingActivity, SlowStatement, SlowStatements,
    StatementActivity,
};
pub use cache::{SealKey, Seals, number_of};
pub use connection::{Connection, Ticket};
pub use error::{Error, Result};
pub use file::network::{NETWORK_FILE_SYSTEMS, NetworkFileSystem};
pub use notifications::{
    CHANNEL_BYTES_AT_MOST, Channel, End, Feed, Hearing, INSERT, Lost, Notification,
    PAYLOAD_BYTES_AT_MOST, Pattern, Position, Subscription, announce, check_payload, is_missing,
    notifying, prepare,
};
pub use open::options::{
    DROP_IN_PROFILE, DurableCommit, LEGACY_TRANSACTION_CONTROL, OPTIONS, OpenOptions, option,
    options, slow_statement, statement_timeout, timeout_from_seconds, unexpected,
};
pub use open::pragma::PragmaValue;
pub use open::profile::{PROFILES, Profile};
pub use open::schema::{Door, Kind, OpenOption, OptionValue};
pub use open::setting::Setting;
pub use open::settings::{JournalChoice, JournalConversion};
pub use process::namespace::PidNamespace;
pub use process::per_process::PerProcess;
pub use read::requests::{run_query, run_read};
pub use read::sql::StatementKind;
pub use read::statement_cache::CachedStatement;
pub use request::{Announcement, Answer, NO_ROWID, Parameters, Request};
pub use signals::{Listener, Signals, Topic};
pub use text::{cut, harmless, in_a_line};
pub use wait::baton::Baton;
pub use wait::bell::Bell;
pub use wait::busy::{BusyHandler, BusyPolicy};
pub use wait::deadline::{Deadline, Stretch};
pub use wait::dispatcher::{Borrower, Dispatcher, DispatcherStatistics, Place, Refusal, Wanted};
pub use wait::pool::{Pool, PoolError, PoolStatistics};
pub use write::group_commit::{
    Batch, Line, LineError, LineStatistics, MayBegin, Outcome, Submitted, Unanswered, run_batch,
    run_batch_unsettled,
};
pub use write::queue::{Holder, QueueStatistics};
pub use write::shared_commit::{SharedCommitGroup, SharedCommitStatistics, shared_commit_group};
pub use write::transaction::{IsolationLevel, TransactionControl};
pub use write::wal::{REPEATED, WalStatistics, checkpoint_mode};
